"""Names that UTF-8 cannot hold, control characters and megabytes, and numbers out of range: none ends a recording."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from tests.record.examples import GRAPH, SERIES, SESSION, frame
from torchgraph_explorer import OptionError, attach, open_run, watch
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.printable import LONGEST, printable, printable_path
from torchgraph_explorer.record.discovery import list_runs
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import Finished
from torchgraph_explorer.server.export import export_page

NAMES = {
    "half a surrogate pair": "lay\ud800er",
    "both halves": "a\ud83d\ude00b",
    "an undecodable byte": "lay\udcffer",
    "a NUL": "lay\0er",
    "a newline": "lay\ner",
    "a terminal's escape": "\x1b[31mred\x1b[0m",
    "right to left": "lay\u202eer",
    "a line separator": "a\u2028b",
    "very long": "x" * 1_000_000,
    "long and bad": "\udfff" * 20_000,
    "markup": "<img src=x onerror=alert(1)>",
    "another script": "\u0441\u043b\u043e\u0439-層-\u0644\u0627\u06cc\u0647\u200c\u0647\u0627-😀",
}


class Net(nn.Module):
    """Two layers whose names are as given; what it returns, and keeps, has such names too."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.register_module(name, nn.Linear(3, 3))
        self.inner = nn.Sequential()
        self.inner.register_module(name, nn.Linear(3, 3))
        self.register_parameter(name + "!", nn.Parameter(torch.ones(3)))

    def extra_repr(self) -> str:
        return f"{self.name}={self.name}"

    def forward(self, *, x: Tensor, **others: Tensor) -> dict[object, Tensor]:
        layer = dict(self.named_children())[self.name]
        x = attach(layer(x) * dict(self.named_parameters())[self.name + "!"], self, self.name)
        for other in others.values():
            x = x + other
        return {self.name: self.inner(x), Key(self.name): x}


class Key:
    """A key whose own words are what it was given."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __repr__(self) -> str:
        return self._words


def train(model: nn.Module, name: str) -> list[float]:
    torch.manual_seed(2)
    losses = []
    for _ in range(3):
        loss = sum(one.square().mean() for one in model(x=torch.randn(2, 3), **{name: torch.randn(2, 3)}).values())
        loss.backward()
        losses.append(loss.item())
    return losses


def made(name: str) -> nn.Module:
    torch.manual_seed(1)
    class_name = name.replace("\0", "0").encode(errors="replace").decode()  # all that a class' own name may be
    return type(class_name, (Net,), {"__module__": name, "__qualname__": name})(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_any_name_is_recorded_and_can_be_shown(name: str, tmp_path: Path) -> None:
    class Often:
        __qualname__ = name

        def __call__(self, _: int) -> bool:
            return True

    expected = train(made(name), name)
    model = made(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with watch(
            model,
            log_freq=Often(),
            backend="record",
            logdir=tmp_path,
            run=name.replace("/", "-"),
            name=name,
            time_log=(name, lambda _model, step: step),
            verbose=False,
        ) as watcher:
            assert train(model, name) == expected
        run = open_run(str(watcher.run_dir))
    shown = run.model()
    assert (shown.steps.tolist(), len(shown.graphs), shown.clock.tolist()) == ([0, 1, 2], 1, [0, 1, 2])
    modules = {module.name for module in shown.graphs[0].modules}
    assert modules == {printable_path(each) for each, _ in model.named_modules()}
    assert {one.module for one in shown.series} <= modules
    paths = {one.path for one in shown.series}
    assert {printable(name), printable(name + "!"), printable(f"output[{name!r}]")} <= paths
    for text in (*modules, *paths, shown.name, run.name, shown.session.class_name, str(shown.session.clock)):
        assert text.isprintable() or "\u200c" in text
        assert json.loads(json.dumps(text).encode()) == text
    assert [info.error for info in list_runs(tmp_path)] == [None]
    assert export_page(run, tmp_path / "page.html")


ALIKE = {
    "escaped by hand": ("a\0b", "a\\x00b"),
    "different halves": ("a\ud800", "a\ud801"),
    "long, and different at the end": ("x" * 5_000, "x" * 5_000 + "y"),
    "long and short": ("x" * LONGEST, "x" * (LONGEST + 1)),
    "the halves of one letter, and the letter": ("\ud83d\ude00", "😀"),
}


@pytest.mark.parametrize("names", ALIKE.values(), ids=ALIKE)
def test_names_that_differ_still_do(names: tuple[str, str], tmp_path: Path) -> None:
    model = nn.Sequential()
    for name in names:
        model.register_module(name, nn.Linear(2, 2))
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, verbose=False) as watcher:
        model(torch.randn(2, 2)).sum().backward()
    shown = open_run(str(watcher.run_dir)).model()
    written = {printable_path(name) for name in names}
    assert len(written) == 2
    assert {module.name for module in shown.graphs[0].modules} == {"", *written}
    assert [len(shown.find(name, role="param", path="weight", kind="value")) for name in written] == [1, 1]


def test_a_part_of_a_module_with_an_odd_name_is_still_a_part_of_it() -> None:
    whole, part = printable_path("la\0yer"), printable_path("la\0yer.inner.0")
    assert part == f"{whole}.inner.0"
    assert printable_path("encoder.0.attention") == "encoder.0.attention"


@pytest.mark.parametrize("letters", list(product("a\0\ud800\n", repeat=3)), ids=lambda letters: ascii("".join(letters)))
def test_what_is_printable_stays_as_it_is(letters: tuple[str, ...]) -> None:
    name = "".join(letters)
    once = printable(name)
    assert printable(once) == once
    assert once.encode()
    assert (once == name) == name.isprintable()


NUMBERS: dict[str, Callable[[], Any]] = {
    "infinite": lambda: math.inf,
    "not a number": lambda: math.nan,
    "too large": lambda: 10**400,
    "a text": lambda: "three",
    "nothing": lambda: None,
    "complex": lambda: 1j,
    "a tensor of several": lambda: torch.ones(3),
}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_a_number_of_the_users_that_is_none_is_left_out_and_said_once(
    number: Callable[[], Any], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    class Scaler:
        def get_scale(self) -> Any:
            return number()

    model = nn.Linear(3, 2)
    with watch(
        model,
        log_freq=1,
        backend="record",
        logdir=tmp_path,
        verbose=False,
        time_log=("epoch", lambda _model, _step: number()),
        scaler=Scaler(),
    ) as watcher:
        for _ in range(3):
            model(torch.randn(4, 3)).sum().backward()
    said = [str(one.message) for one in recwarn if issubclass(one.category, TorchgraphWarning)]
    assert ["time axis 'epoch'" in one for one in said] == [False, True]
    shown = open_run(str(watcher.run_dir)).model()
    assert shown.steps.tolist() == [0, 1, 2]
    assert np.isnan(shown.clock).all()
    assert shown.finished is not None
    assert set(shown.finished.notes) == set(said)


@pytest.mark.parametrize("step", [-1, 1.5, 2**63, 10**30, math.inf, math.nan, "3", None, 1j])
def test_a_step_that_is_none_is_refused_and_recording_goes_on(step: Any) -> None:
    model, heard = nn.Linear(3, 2), Listening()
    with watch(model, log_freq=1, backend=heard, verbose=False) as watcher:
        with pytest.raises(OptionError, match=r"is not a step\. Set a whole number from 0 to 4503599627370496"):
            watcher.step = step
        model(torch.randn(4, 3)).sum().backward()
    assert [each.step for each in heard.frames] == [0]


@pytest.mark.parametrize("step", [7, 7.0, np.int64(7), torch.tensor(7), True, 2**52])
def test_a_whole_number_of_any_kind_is_a_step(step: Any, tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, verbose=False) as watcher:
        watcher.step = step
        for _ in range(2):
            model(torch.randn(4, 3)).sum().backward()
    assert open_run(str(watcher.run_dir)).model().steps.tolist() == [int(step), int(step) + 1]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RecordWriter]:
    writer = RecordWriter(tmp_path)
    for record in (SESSION, GRAPH, SERIES, frame(0)):
        writer.write(record)
    yield writer
    writer.close()


UNWRITABLE = {
    "a step beyond 64 bits": (replace(frame(1), step=2**70), "Step 1180591620717411303424 cannot be recorded"),
    "a negative step": (replace(frame(1), step=-1), "Step -1 cannot be recorded"),
    "a time that is none": (replace(frame(1), time="now"), "Step 1 cannot be recorded"),  # type: ignore[arg-type]
    "a graph that nobody can number": (replace(GRAPH, id=2**40), "A module graph cannot be recorded"),
    "a series of an unknown kind": ((replace(SERIES[0], id=9, kind="smell"),), "1 series cannot be recorded"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("record", "message"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_a_record_that_the_format_cannot_hold_costs_itself_alone(
    record: Any, message: str, writer: RecordWriter, tmp_path: Path
) -> None:
    with pytest.warns(TorchgraphWarning, match=message):
        writer.write(record)
    writer.write(frame(2))
    assert open_run(tmp_path).model().steps.tolist() == [0, 2]


def test_steps_that_the_format_cannot_hold_are_said_once_and_counted(
    tmp_path: Path, writer: RecordWriter, recwarn: pytest.WarningsRecorder
) -> None:
    for step in (-3, -2, 5, -1):
        writer.write(frame(0, seed=1) if step == 5 else replace(frame(1), step=step))
    writer.write(Finished(9.0))
    [sentence] = [str(one.message) for one in recwarn if issubclass(one.category, TorchgraphWarning)]
    assert sentence.startswith("Step -3 cannot be recorded (ValueError: ")
    finished = open_run(tmp_path).model().finished
    assert finished is not None
    assert finished.notes == ("3 logged steps (-3 to -2, -1) could not be recorded.",)
