"""Which tensors are kept, at which steps, and what is said of those that are not."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from torchgraph_explorer import Keep, NotFoundError, OptionError, attach, open_run, watch
from torchgraph_explorer.run import Model
from torchgraph_explorer.tensors import copies, step_tensors
from torchgraph_explorer.tensors.patterns import Place, parsed


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6))
        self.head = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(attach(self.encoder(x), self, "features"))


def run(
    folder: Path, keep: Keep | None, *, steps: int = 3, batch: int = 5, model: nn.Module | None = None, **options: Any
) -> Model:
    model = model or Net()
    with watch(
        model, log_freq=1, backend="record", logdir=folder, run="run", keep=keep, verbose=False, **options
    ) as watcher:
        train(model, steps=steps, batch=batch)
    return open_run(str(watcher.run_dir)).model()


def train(model: nn.Module, *, steps: int, batch: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(batch, 4)).square().sum().backward()
        optimizer.step()


PLACES = {
    "encoder:output": Place("encoder", "output", "output"),
    "encoder:input": Place("encoder", "input", "input[0]"),
    "encoder.0:output": Place("encoder.0", "output", "output"),
    "encoder.0.weight": Place("encoder.0", "param", "weight"),
    "root:output": Place("", "output", "output"),
    "root:input": Place("", "input", "input[0]"),
    "features": Place("", "attached", "features"),
    "features again": Place("block", "attached", "features #2[0]"),
}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("encoder", ["encoder:output"]),
        ("encoder:input", ["encoder:input"]),
        ("encoder:output", ["encoder:output"]),
        ("encoder.*", ["encoder.0:output", "encoder.0.weight"]),
        ("encoder.?:param", ["encoder.0.weight"]),
        ("encoder.[0-9]:output", ["encoder.0:output"]),
        ("*.weight", ["encoder.0.weight"]),
        (":output", ["root:output"]),
        ("*:input", ["encoder:input", "root:input"]),
        ("features", ["features", "features again"]),
        ("block.features", ["features again"]),
        ("*", [name for name in PLACES if not name.endswith(":input")]),
        ("Encoder", []),
    ],
)
def test_a_pattern_selects_by_qualified_names(pattern: str, expected: list[str]) -> None:
    assert [name for name, place in PLACES.items() if parsed(pattern).matches(place)] == expected


@pytest.mark.parametrize(
    ("arguments", "options", "expected"),
    [
        ((), {}, "Keep() names no tensor"),
        (("",), {}, "names no tensor"),
        ((3,), {}, "Keep(3) names no tensor"),
        (("head:weights",), {}, "input, output, param"),
        (("a:b:input",), {}, "Write ? for a colon"),
        (("head",), {"samples": 0}, "samples=0"),
        (("head",), {"samples": True}, "samples=True"),
        (("head",), {"log_freq": 1.5}, "log_freq=1.5"),
        (("head",), {"megabytes": 0}, "megabytes=0"),
        (("head",), {"megabytes": float("nan")}, "megabytes=nan"),
        (("head",), {"batch_dim": "0"}, "batch_dim='0'"),
    ],
)
def test_an_argument_that_is_not_allowed_is_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(OptionError) as refusal:
        Keep(*arguments, **options)
    assert expected in str(refusal.value)


def test_watch_takes_only_a_keep(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="keep='head'"):
        watch(Net(), keep="head", backend="record", logdir=tmp_path)  # type: ignore[arg-type]


def test_nothing_is_kept_by_default(tmp_path: Path) -> None:
    with mock.patch.object(copies, "copied", side_effect=AssertionError):
        model = run(tmp_path, None)
    assert (model.kept.steps.tolist(), model.kept.series, model.kept.bytes) == ([], (), 0)
    assert not list(tmp_path.rglob("tensors"))
    with pytest.raises(NotFoundError, match=r"No tensor was kept. Pass keep="):
        model.tensor(0, 0)


def test_only_what_is_selected_is_copied(tmp_path: Path) -> None:
    model = run(tmp_path, Keep("head", "head:input", "features", "*.0.weight"))
    names = {(one.module, one.role, one.kind) for one in model.kept.series}
    assert names == {
        ("head", "output", "value"),
        ("head", "output", "grad_norm"),
        ("head", "input", "value"),
        ("head", "input", "grad_norm"),
        ("", "attached", "value"),
        ("", "attached", "grad_norm"),
        ("encoder.0", "param", "value"),
        ("encoder.0", "param", "grad"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("log", [(), ("io",), ("params_grad",)], ids=str)
def test_what_is_kept_does_not_depend_on_what_is_measured(log: tuple[str, ...], tmp_path: Path) -> None:
    torch.manual_seed(0)
    first = Net()
    torch.manual_seed(0)
    second = Net()
    everything, some = tmp_path / "everything", tmp_path / "some"
    torch.manual_seed(1)
    expected = run(everything, Keep("*", "*:input"), model=first)
    torch.manual_seed(1)
    found = run(some, Keep("*", "*:input"), model=second, log=log)
    by_key = {one.key: one for one in found.kept.series}
    assert set(by_key) == {one.key for one in expected.kept.series}
    for series in expected.kept.series:
        one, other = expected.tensor(series, 2), found.tensor(by_key[series.key], 2)
        np.testing.assert_array_equal(one.values, other.values)
    assert {one.kind for one in found.series} <= {"value", "grad"}


def test_one_in_so_many_logged_steps_is_kept(tmp_path: Path) -> None:
    assert run(tmp_path, Keep("head", log_freq=3), steps=8).kept.steps.tolist() == [0, 3, 6]


def test_samples_are_along_the_dimension_that_is_said(tmp_path: Path) -> None:
    model = run(tmp_path, Keep("head", batch_dim=-1, samples=1), batch=5)
    tensor = model.tensor(model.find("head", role="output", kind="value")[0], 0)
    assert (tensor.batch_dim, tensor.values.shape, tensor.samples.tolist()) == (1, (5, 1), [0])
    assert tensor.mean is not None
    assert tensor.mean.shape == (5,)


def test_a_pattern_that_selects_nothing_is_said_once_with_what_is_near(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="selects no tensor") as caught:
        model = run(tmp_path, Keep("haed", "encoder"))
    said = [str(one.message) for one in caught if "selects no tensor" in str(one.message)]
    assert len(said) == 1
    assert "'haed'" in said[0]
    assert "'head'" in said[0]
    assert model.finished is not None
    assert any("'haed'" in note for note in model.finished.notes)


class Forked(nn.Module):
    """A tensor goes two ways, one of them through no module, so that an edge has a gradient of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.left = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.stem(x)
        out: Tensor = self.left(y) + y
        return out


def test_a_pattern_that_selects_nothing_is_not_said_to_be_near_an_edge(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="selects no tensor") as caught:
        model = run(tmp_path, Keep("0.stem ->", "0.stem"), model=nn.Sequential(Forked()))
    assert "->" not in str(caught[0].message).partition("Similar names")[2]
    assert len(model.kept.steps) == 3


class Strange(nn.Module):
    """Returns tensors of kinds that cannot be kept, and some that can."""

    def __init__(self) -> None:
        super().__init__()
        self.odd = Odd()

    def forward(self, x: Tensor) -> Tensor:
        self.odd(x)
        return x


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x.mul_(1)
        return {
            "sparse": x.detach().to_sparse(),
            "sparse rows": x.detach().to_sparse_csr(),
            "meta": torch.empty(3, 4, device="meta"),
            "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            "quantized": torch.quantize_per_tensor(x.detach(), 0.1, 0, torch.qint8),
            "float8": x.detach().to(torch.float8_e4m3fn),
            "float8 other": x.detach().to(torch.float8_e5m2),
            "uint16": torch.arange(8, dtype=torch.int32).reshape(2, 4).to(torch.uint16),
            "expanded": x.detach()[:, :1].expand(-1, 1000),
            "negative": torch.imag(torch.complex(x.detach(), x.detach()).conj()),
            "no samples": x.detach()[:0],
            "not finite": torch.tensor([[1.0, float("nan")], [2.0, float("inf")]]),
        }


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested", "ignore:.*torch.quantize")
def test_tensors_of_every_kind_are_kept_right_or_said_not_to_be(tmp_path: Path) -> None:
    model, x = Strange(), torch.arange(8.0).reshape(2, 4) - 3.5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with watch(
            model, log_freq=1, backend="record", logdir=tmp_path, keep=Keep("odd", samples=1), verbose=False
        ) as watcher:
            for _ in range(2):
                model(x + model.odd.weight).sum().backward()
    read = open_run(str(watcher.run_dir)).model()
    said = sorted(str(one.message) for one in caught if "is not kept" in str(one.message))
    assert len(said) == 3, said
    for name, why in {
        "meta": "no values",
        "nested": "nested",
        "quantized": "quantized",
    }.items():
        assert any(f"['{name}']" in one and why in one for one in said), (name, said)
    found = {one.path[8:-2]: read.tensor(one, 0) for one in read.kept.series if one.kind == "value"}
    seen = x + 1
    np.testing.assert_array_equal(found["float8"].values, seen[:1].to(torch.float8_e4m3fn).float().numpy())
    np.testing.assert_array_equal(found["float8 other"].values, seen[:1].to(torch.float8_e5m2).float().numpy())
    np.testing.assert_array_equal(found["sparse"].values, seen[:1].numpy())
    np.testing.assert_array_equal(found["sparse rows"].values, seen[:1].numpy())
    assert found["uint16"].values.tolist() == [[0, 1, 2, 3]]
    assert found["uint16"].values.dtype == np.uint16
    np.testing.assert_array_equal(found["expanded"].values, seen[:1, :1].expand(-1, 1000).numpy())
    np.testing.assert_array_equal(found["negative"].values, -seen[:1].numpy())
    assert (found["no samples"].values.shape, found["no samples"].samples.tolist()) == ((0, 4), [])
    assert np.isnan(found["no samples"].mean).all()  # type: ignore[arg-type]
    assert found["not finite"].mean is not None
    assert found["not finite"].mean[0] == 1.5
    assert np.isnan(found["not finite"].mean[1])


@pytest.mark.parametrize("dtype", sorted(map(str, copies.DTYPES)))
def test_every_element_type_is_read_as_it_was(dtype: str) -> None:
    from torchgraph_explorer.record.tensors.dtypes import SIZES, as_array

    name = dtype.removeprefix("torch.")
    kind = getattr(torch, name)
    assert SIZES[name] == torch.empty(0, dtype=kind).element_size()
    codes = torch.randint(0, 256, (512,), dtype=torch.uint8)
    if name.startswith("float8"):
        codes = torch.arange(256, dtype=torch.uint8)
    tensor = (codes % 2).view(torch.bool) if name == "bool" else codes.view(kind)
    expected = tensor.float() if name.startswith(("float8", "bfloat16")) else tensor
    np.testing.assert_array_equal(
        as_array(codes.numpy().tobytes(), name) if name != "bool" else tensor, expected.numpy()
    )


@pytest.mark.slow
def test_kept_tensors_stay_within_their_space(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="kept half as often"):
        model = run(tmp_path, Keep("*", samples=None, megabytes=0.05), steps=60)
    assert model.kept.bytes <= 50_000
    steps = model.kept.steps
    gaps = np.diff(steps)
    assert gaps[0] == 1
    assert (np.diff(gaps) >= 0).all()
    assert gaps[-1] >= 2


def test_the_warning_that_steps_become_rare_says_how_large_one_is(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r" of 0\.05 MB \(Keep\(megabytes=\)\), and a step up to 0\.00\d+ MB\."):
        run(tmp_path, Keep("*", samples=None, megabytes=0.05), steps=60)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*recorded again", "ignore:.*half as often", "ignore:.*does not fit")
def test_a_resumed_run_shares_the_space_and_replaces_steps(tmp_path: Path) -> None:
    keep = Keep("head", samples=None, megabytes=0.01)
    first = run(tmp_path, keep, steps=4, batch=3)
    series = first.kept.series[0]
    before = [first.tensor(series, step).values for step in first.kept.steps]
    again = run(tmp_path, keep, steps=2, batch=4)
    assert again.tensor(series, 0).shape == (4, 2)
    assert again.tensor(series, 1).shape == (4, 2)
    np.testing.assert_array_equal(again.tensor(series, 3).values, before[3])
    for _ in range(4):
        again = run(tmp_path, keep, steps=20)
    assert again.kept.bytes <= 10_000


@pytest.mark.slow
def test_no_more_is_in_memory_than_a_bound(tmp_path: Path) -> None:
    with (
        mock.patch.object(step_tensors, "MOST_WAITING", 1_000),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        model = run(tmp_path, Keep("*"))
    (said,) = (str(one.message) for one in caught if "MB of memory" in str(one.message))
    assert "is not kept, and neither are others: those of its step would take" in said
    assert 0 < len(model.kept.series) < len(run(tmp_path / "without", Keep("*")).kept.series)


def test_sinks_without_keep_never_see_tensors(tmp_path: Path) -> None:
    sink = Listening()
    model = Net()
    with watch(model, log_freq=1, backend=["record", sink], logdir=tmp_path, keep=Keep("*"), verbose=False) as watcher:
        train(model, steps=2, batch=3)
    assert {type(one).__name__ for one in sink.records} == {"Session", "ModuleGraph", "tuple", "Frame", "Finished"}
    assert open_run(str(watcher.run_dir)).model().kept.steps.tolist() == [0, 1]


def test_an_error_names_what_was_kept(tmp_path: Path) -> None:
    model = run(tmp_path, Keep("head"))
    with pytest.raises(NotFoundError, match=r"encoder'.*These were kept: head:output output value"):
        model.tensor(model.find("encoder", role="output", kind="value")[0], 0)
    with pytest.raises(
        NotFoundError, match=r"No tensor was kept at step 9. 3 steps were kept, from 0 to 2; nearest: 2"
    ):
        model.tensor(model.kept.series[0], 9)
    with pytest.raises(NotFoundError, match="no series 999"):
        model.tensor(999, 0)
    with pytest.raises(NotFoundError, match=r"Rank 3 kept no tensor at step 0. Ranks that did: 0"):
        model.tensor(model.kept.series[0], 0, rank=3)
