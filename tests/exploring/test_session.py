"""Names, edits, comparisons, saved cases, and what a session says where it cannot answer."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.exploring.models import Attention, Convolutions, Recurrent, Repeated, hidden, mlp
from torchgraph_explorer import NotFoundError, OptionError, RecordError
from torchgraph_explorer.exploring.case import Case, load
from torchgraph_explorer.exploring.session import Session
from torchgraph_explorer.exploring.words import LONGEST, vocabulary


def attention() -> Session:
    return Session(Attention(), torch.randn(2, 5, 8), loss=torch.sum)


def test_tensors_stand_in_the_order_of_execution_each_once() -> None:
    assert attention().tensors == ("input[0]", "norm", "project", "mixed", "merge:input[0]", "merge", "output")
    assert Session(Repeated(), torch.randn(2, 5), loss=torch.sum).tensors[:5] == (
        *("input[0]", "mix#0", "drop#0", "mix#1:input[0]", "mix#1"),
    )


@pytest.mark.parametrize(
    ("name", "means"),
    [
        pytest.param("norm:input", "input[0]", id="what a module is given"),
        pytest.param("norm:output", "norm", id="what it returns"),
        pytest.param(":output", "output", id="what the model returns"),
        pytest.param("output", "output", id="the same"),
        pytest.param("input", "input[0]", id="the only argument"),
        pytest.param("project:input[0]", "norm", id="the same tensor by another name"),
        pytest.param("norm#0", "norm", id="the first call"),
    ],
)
def test_a_tensor_has_the_names_that_it_has_elsewhere(name: str, means: str) -> None:
    session = attention()
    assert session.find(name).key == session.find(means).key


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        pytest.param("nrom", NotFoundError, "has no tensor 'nrom'. It has 'norm'", id="unknown"),
        pytest.param("norm#1", NotFoundError, "has no tensor 'norm#1'. It has 'norm'", id="no such call"),
        pytest.param(3, OptionError, "3 is not the name of a tensor. Pass a str", id="no text"),
    ],
)
def test_a_name_that_is_wrong_is_answered_with_near_ones(name: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        attention().value(name)


def test_several_calls_must_be_told_apart() -> None:
    session = Session(Repeated(), torch.randn(2, 5), loss=torch.sum)
    with pytest.raises(OptionError, match="'mix' is the name of 3 tensors: 'mix#0', 'mix#1', 'mix#2'"):
        session.gradient("mix")


ERRORS: dict[str, tuple[Callable[[], object], str]] = {
    "order": (lambda: attention().contributions("merge", "norm"), "'merge' comes after 'norm'"),
    "element": (
        lambda: attention().contributions("norm", "merge", to=(0, 9, 0)),
        r"There is no element \(0, 9, 0\) in a tensor of shape \(2, 5, 8\)",
    ),
    "integers": (
        lambda: Session(nn.Embedding(5, 2), torch.tensor([1]), loss=torch.sum).gradient("input"),
        r"No gradient can reach 'input\[0\]': it holds int64",
    ),
    "no scalar": (
        lambda: Session(mlp(), torch.randn(2, 6)).gradient("0"),
        "returns no scalar whose gradient could flow",
    ),
    "loss of several numbers": (
        lambda: Session(mlp(), torch.randn(2, 6), loss=lambda output: output).gradient("0"),
        r"must be a tensor with one element, but it is \(2, 3\)",
    ),
    "no tensor": (lambda: Session(mlp(), 3), "The inputs hold no tensor"),
    "not an input": (lambda: attention().edit("norm", 0, 1.0), "'norm' is not an input that can be edited"),
    "no such value": (lambda: attention().edit("input", (0, 0), "x"), "cannot be done"),
    "a fraction of a token": (
        lambda: Session(nn.Embedding(4, 3), torch.tensor([1, 2])).edit("input", 0, 1.5),
        r"cannot be done: int64 cannot be 1\.5\.",
    ),
    "no such token": (
        lambda: Session(nn.Embedding(4, 3), torch.tensor([1, 2])).edit("input", [0, 1], torch.tensor([0.5, 1])),
        "cannot be done: int64 cannot be tensor",
    ),
    "scripted": (
        lambda: Session(nn.Sequential(torch.jit.script(nn.Linear(2, 1))), torch.ones(1, 2)),
        "Module '0' is scripted or traced",
    ),
    "traced": (
        lambda: Session(torch.jit.trace(nn.Linear(2, 1), torch.ones(1, 2)), torch.ones(1, 2)),
        "Module '' is scripted or traced",
    ),
    "large": (
        lambda: Session(nn.Tanh(), torch.randn(1, 9000), loss=torch.sum).matrix("input", "output"),
        "has 81,000,000 elements; at most 67,108,864",
    ),
    "when": (lambda: attention().value("norm", when="then"), "when='then' is not allowed"),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize(("ask", "text"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_says_what_is_allowed(ask: Callable[[], object], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        ask()


class FullyShardedDataParallel(nn.Module):
    """By its name, which is how it is known without torch.distributed."""


def test_a_model_that_is_divided_among_ranks_is_refused_with_the_reason() -> None:
    with pytest.raises(OptionError, match="Module '0' is divided among ranks"):
        Session(nn.Sequential(FullyShardedDataParallel()), torch.ones(1))


def test_a_model_that_was_made_in_inference_mode_is_refused_with_the_reason() -> None:
    with torch.inference_mode():
        model = nn.Linear(2, 1)
    with pytest.raises(OptionError, match="Parameter 'weight' was made in inference mode"):
        Session(model, torch.ones(1, 2))


def test_a_column_that_cannot_be_computed_is_refused_with_the_reason() -> None:
    class Wide(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return hidden(x)

    session = Session(Wide(), torch.randn(5000), loss=torch.sum)
    with pytest.raises(OptionError, match=r"has more than 4,096 elements\. Select an element of 'output' instead"):
        session.contributions("input", "output", from_=0)


def test_edits_are_run_undone_and_done_again() -> None:
    model, x = Convolutions().eval(), torch.randn(1, 2, 8, 8)
    session = Session(model, x, loss=torch.sum)
    session.edit("input", (0, 1, 2, 3), 5.0)
    edited = x.clone()
    edited[0, 1, 2, 3] = 5
    expected = Session(model, edited, loss=torch.sum)
    torch.testing.assert_close(session.run(), expected.run())
    torch.testing.assert_close(session.gradient("first"), expected.gradient("first"))
    torch.testing.assert_close(session.value("first", when="before"), model.first(x))
    difference = session.value("first", when="difference")
    torch.testing.assert_close(difference, model.first(edited) - model.first(x))
    assert session.undo()
    torch.testing.assert_close(session.run(), model(x))
    assert session.redo()
    torch.testing.assert_close(session.value("input"), edited)
    session.reset()
    assert not session.edits.is_edited
    assert session.undo()
    assert (session.edits.undoable, session.edits.redoable, session.redo(), session.redo()) == (1, 1, True, False)


def test_whole_numbers_are_edited_by_equal_ones() -> None:
    session = Session(nn.Embedding(4, 3), torch.tensor([1, 2]))
    for value in (3, 3.0, torch.tensor([3.0]), True):
        session.edit("input", [0], value)
    assert session.value("input").tolist() == [1, 2]


def test_the_inputs_that_were_given_are_not_changed() -> None:
    x = torch.randn(1, 2, 8, 8)
    kept = x.clone()
    session = Session(nn.Sequential(nn.ReLU(inplace=True), Convolutions().eval()), x, loss=torch.sum)
    session.edit("input", 0, 1.0)
    session.gradient("input")
    assert torch.equal(x, kept)
    assert (x.requires_grad, x.grad) == (False, None)


def test_inputs_may_be_keyword_arguments_and_nested() -> None:
    class Pair(nn.Module):
        def forward(self, *, x: dict[str, Tensor], scale: float) -> Tensor:
            return x["left"] * scale + x["right"]

    session = Session(Pair(), {"x": {"left": torch.ones(2), "right": torch.ones(2)}, "scale": 3.0}, loss=torch.sum)
    assert session.inputs == ("input['x']['left']", "input['x']['right']")
    assert session.gradient("input['x']['left']").tolist() == [3.0, 3.0]


def test_random_numbers_are_the_same_in_each_run() -> None:
    session = Session(Repeated(), torch.randn(4, 5), loss=torch.sum)
    assert torch.equal(session.run(), session.run())


def test_a_saved_case_holds_what_was_computed(tmp_path: Path) -> None:
    session = Session(mlp(), torch.randn(2, 6), loss=torch.sum)
    matrix = session.matrix("0", "2")
    session.save(tmp_path / "case.npz")
    case = load(tmp_path / "case.npz")
    assert case.tensors == session.tensors
    np.testing.assert_array_equal(case.gradient("0"), session.gradient("0"))
    np.testing.assert_array_equal(case.matrix("0", "2"), matrix)
    with pytest.raises(NotFoundError, match="computing them needs the model"):
        case.matrix("0", "4")
    assert [one.name for one in tmp_path.iterdir()] == ["case.npz"]


def test_types_that_numpy_does_not_have_are_saved_as_float32(tmp_path: Path) -> None:
    session = Session(mlp(torch.bfloat16), torch.randn(2, 6, dtype=torch.bfloat16), loss=torch.sum)
    session.save(tmp_path / "case.npz")
    assert load(tmp_path / "case.npz").value("0").dtype == np.float32


def test_complex_tensors_are_followed() -> None:
    class Spectrum(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.view_as_real(nn.Identity()(torch.fft.rfft(x)) ** 2)

    model = nn.Sequential(Spectrum(), nn.Flatten())
    session = Session(model, torch.randn(2, 4), loss=torch.sum)
    assert session.contributions("input", "0", to=(0, 1, 0)).shape == (2, 4)


def test_an_estimate_has_the_row_sums_of_the_gradient() -> None:
    gradients = {"a": np.array([1.0, -2.0]), "b": np.array([3.0, 1.0, 0.0])}
    estimate = Case(gradients=gradients).estimate("a", "b")
    np.testing.assert_allclose(estimate.sum(1), gradients["a"])
    np.testing.assert_allclose(estimate[1], [-1.8, -0.2, 0.0])


def written(path: Path, case: object, **arrays: object) -> Path:
    np.savez(path, case=np.frombuffer(json.dumps(case).encode(), dtype=np.uint8), **arrays)  # type: ignore[arg-type]
    return path


EMPTY = {"version": 1, "values": [], "gradients": [], "matrices": []}


@pytest.mark.parametrize(
    ("case", "arrays", "text"),
    [
        pytest.param({**EMPTY, "version": 2}, {}, "has version 2, and this release reads 1", id="newer"),
        pytest.param({**EMPTY, "values": ["a"]}, {}, "value_0", id="an array is missing"),
        pytest.param(
            {**EMPTY, "values": ["a"]}, {"value_0": np.array(["x"])}, "value_0 holds <U1, no numbers", id="text"
        ),
        pytest.param(
            {**EMPTY, "values": ["a"]}, {"value_0": np.array([object()])}, "allow_pickle=False", id="a pickle"
        ),
        pytest.param(
            {**EMPTY, "gradients": ["a"], "matrices": [["a", "a"]]},
            {"gradient_0": np.ones(2), "matrix_0": np.ones(3)},
            r"has shape \(3,\), and needs \(2, 2\)",
            id="a matrix of another shape",
        ),
        pytest.param([], {}, "is not a case", id="no case"),
    ],
)
def test_a_file_that_is_no_case_is_refused(case: object, arrays: dict[str, object], text: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=text):
        load(written(tmp_path / "case.npz", case, **arrays))


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "case.npz").write_bytes(b"no")
    with pytest.raises(RecordError, match="is not a case"):
        load(tmp_path / "case.npz")
    with pytest.raises(NotFoundError, match="There is no file"):
        load(tmp_path / "none.npz")


def packed(described: bytes, *, method: int = zipfile.ZIP_STORED) -> bytes:
    """A case's file, whose description is these bytes."""
    array, file = io.BytesIO(), io.BytesIO()
    np.save(array, np.frombuffer(described, np.uint8))
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("case.npy", array.getvalue())
    return file.getvalue()


def with_flag(data: bytes, offset: int, value: int) -> bytes:
    """With another number in the archive's directory: 8 is its flags, of which 1 is encryption, 10 its method."""
    at = data.index(b"PK\x01\x02") + offset
    return data[:at] + bytes([value]) + data[at + 1 :]


def scrambled(data: bytes) -> bytes:
    return data[:60] + b"\xff" * 40 + data[100:]


DAMAGED = {
    "nested too deeply": packed(b"[" * 200_000),
    "encrypted": with_flag(packed(b"{}"), 8, 1),
    "packed by an unknown method": with_flag(packed(b"{}"), 10, 93),
    "scrambled inside": scrambled(packed(bytes(range(256)), method=zipfile.ZIP_DEFLATED)),
    "scrambled inside, lzma": scrambled(packed(bytes(range(256)), method=zipfile.ZIP_LZMA)),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_case_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "case.npz").write_bytes(data)
    with pytest.raises(RecordError, match="is not a case, or is damaged"):
        load(tmp_path / "case.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_is_no_case_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "case.npz")
    for place in (tmp_path, tmp_path / "case.npz"):
        with pytest.raises(RecordError, match=r"is not a case\. A case is an \.npz file"):
            load(place)


def test_an_estimate_of_numbers_that_are_not_finite_warns_of_nothing() -> None:
    estimate = Case(gradients={"a": np.array([1.0, np.inf]), "b": np.array([np.nan, 1e300])}).estimate("a", "b")
    assert np.isnan(estimate).all()


def test_a_recurrent_cell_is_followed_through_its_calls() -> None:
    session = Session(Recurrent(), torch.randn(2, 4, 3), loss=torch.sum)
    torch.testing.assert_close(
        session.contributions("cell#0", "cell#1") + session.past("cell#0", "cell#1"), session.gradient("cell#0")
    )


WORDS: dict[str, tuple[object, list[str]]] = {
    "a list": (["the", "cat", "sat"], ["cat", "sat", "", ""]),
    "a dict, as of a tokenizer": ({"the": 0, "cat": 1, "sat": 2}, ["cat", "sat", "", ""]),
    "a function, which may fail": (lambda number: ["the", "cat", "sat"][number], ["cat", "sat", "", "sat"]),
}


@pytest.mark.parametrize(("words", "expected"), WORDS.values(), ids=WORDS)
def test_tokens_have_words(words: Any, expected: list[str]) -> None:
    known = vocabulary(words)
    assert known is not None
    assert [known.spell(number) for number in (1, 2, 9, -1)] == expected


def test_a_word_is_short_and_can_be_shown() -> None:
    known = vocabulary(lambda number: "\x00" + 200 * str(number))
    assert known is not None
    assert len(known.spell(7)) < 2 * LONGEST
    assert "\x00" not in known.spell(7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("cat", [2, 5, 4, 1, 3, 0], id="equal, then longer ones, then those that contain it"),
        pytest.param("CATS", [1], id="another case"),
        pytest.param("Cat", [4, 2, 5, 1, 3, 0], id="the same case first"),
        pytest.param(" \n", [], id="nothing"),
        pytest.param("dog", [], id="no such word"),
    ],
)
@pytest.mark.parametrize("kind", [list, dict, "function"], ids=str)
def test_tokens_are_found_by_their_words(kind: Any, text: str, expected: list[int]) -> None:
    words = ["concatenate", "cats", "cat", "catalogue", "Cat", " cat"]
    given = {word: number for number, word in enumerate(words)} if kind is dict else words
    known = vocabulary(words.__getitem__ if kind == "function" else given, size=7)
    assert known is not None
    assert [number for number, _ in known.search(text, most=20)] == expected
    assert [number for number, _ in known.search(text, most=2)] == expected[:2]


@pytest.mark.parametrize("words", [3, "text"], ids=repr)
def test_words_that_say_nothing_are_refused(words: Any) -> None:
    with pytest.raises(
        OptionError, match=r"does not say what tokens stand for\. Pass the word of each number in a list"
    ):
        vocabulary(words)
