"""What `calls.c` notes of ordinary calls is what Python notes of them."""

from __future__ import annotations

import dataclasses
import functools
import gc
import sys
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from tests.processes import wait_for
from tests.tables import matrix
from torchgraph_explorer import Keep, open_run, watch
from torchgraph_explorer.capture import call_costs, current_step, native_calls
from torchgraph_explorer.capture.gradient_hooks import GradientHooks
from torchgraph_explorer.capture.observation import Observation
from torchgraph_explorer.capture.recorded_calls import RecordedCalls
from torchgraph_explorer.reduce.batch import Batch
from torchgraph_explorer.reduce.row_buffer import RowBuffer
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import Frame

pytestmark = pytest.mark.slow

STEPS = 4


class Skip(nn.Module):
    """A sum around a layer, and an in-place operation on it."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 6)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.act(self.inner(x) + x)
        return out


class Reused(nn.Module):
    """One layer, called in a loop, with gradients and without."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            x = x + self.cell(x)
        for _ in range(3):
            x = torch.tanh(self.cell(x)) + x
        return x


class Odd(nn.Module):
    """Calls with two inputs, with keywords, that return a view, several tensors, their input, or nothing at all."""

    def __init__(self) -> None:
        super().__init__()
        self.bilinear, self.same, self.flat = nn.Bilinear(6, 6, 6), nn.Identity(), nn.Flatten()
        self.cell, self.raises = nn.GRUCell(6, 6), Raises()
        self.frozen = nn.Linear(6, 6).requires_grad_(requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        made = self.bilinear(x, input2=self.frozen(x))
        made = self.same(self.flat(made.view(-1, 2, 3)))
        try:
            self.raises(made)
        except ValueError:
            made = made * 2
        out: Tensor = self.cell(made, x)
        return out


class Views(nn.Module):
    """Gives views to its layers: of a result, of its input, made without gradient, written to since, and halves."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(6, 6) for _ in range(3))
        self.same, self.act, self.halves = nn.Identity(), nn.ReLU(inplace=True), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        made = self.first(x.unsqueeze(0)[0])
        turned = self.same(made.t()).t()
        stale = turned[1:]
        turned.mul_(2.0)
        with torch.no_grad():
            without = turned[:1]
        ends = self.second(stale).sum() + self.third(without).sum()
        made = self.act(self.second(made * 1.0).view(-1, 6))
        out: Tensor = torch.cat([self.halves(half) for half in made.chunk(2, dim=1)], 1) + ends
        return out


class Several(nn.Module):
    """Calls modules with several tensors, some within containers or objects, that return several or none."""

    def __init__(self) -> None:
        super().__init__()
        self.parts, self.again, self.objects, self.turn = Parts(), Parts(), Parts(), nn.Flatten(0)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.lstm, self.layer = nn.LSTM(6, 6, batch_first=True), nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        found = self.parts(x, [x * 2, (x.detach(), None)], more={"a": x.t(), 3: torch.arange(2)}, flag=True)
        again = self.again(found["sum"], [found["halves"][0], found["halves"][1]], more=None, flag=found)
        self.objects(x, [], more=Held(again["sum"]), flag=Empty())
        self.objects(x, [nn.Parameter(x.detach())], more=[], flag=0.5)
        written = x * 1.0
        turned = self.turn(written)
        written.add_(1.0)  # the view that was returned is stale now
        rows = again["sum"].unsqueeze(0)
        seen, weights = self.attention(rows, rows, rows, need_weights=True)
        out, (hidden, _) = self.lstm(seen + weights.mean())
        made: Tensor = self.layer(out, src_mask=None, is_causal=False).squeeze(0) + hidden.squeeze(0)
        return made + turned.mean()


class Parts(nn.Module):
    """Returns a dictionary: parts of one tensor, a view of what it was given, that itself, what has no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: Tensor, others: Any, *, more: Any, flag: object) -> dict[str, Any]:
        made = self.layer(x)
        for other in others:
            made = made + (other if isinstance(other, Tensor) and other.shape == made.shape else 0)
        halves = tuple(torch.cat([made, made], 0).chunk(2))
        return {
            "sum": made + x,
            "halves": halves,
            "turned": x.t(),
            "same": (x, x),
            "none": None,
            "most": made.argmax(1),
        }


class Empty:
    """Holds no tensor."""


@dataclasses.dataclass
class Held:
    """Holds a tensor."""

    value: Tensor


class Raises(nn.Module):
    """Fails within a call that it makes."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        raise ValueError(self.inner(x).shape)


class ManyParameters(nn.Module):
    """Has more parameters of its own than most modules."""

    def __init__(self) -> None:
        super().__init__()
        for number in range(300):
            self.register_parameter(f"p{number}", nn.Parameter(torch.full((6,), number / 300)))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.stack(list(self.parameters())).mean(0)


class ManySources(nn.Module):
    """Calls a module that also uses very many tensors which it was not given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.gather = nn.Linear(6, 6), Gather()

    def forward(self, x: Tensor) -> Tensor:
        self.gather.others = [self.layer(x) * number for number in range(90)]
        out: Tensor = self.gather(x)
        self.gather.others = []
        return out


class Gather(nn.Module):
    """Adds up what it is given and what it was handed before."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        for other in self.others[:45]:
            x = x + other
        return x + torch.stack(self.others[45:]).sum(0)


def scripted() -> nn.Module:
    """Has a module whose parameters are no dictionary."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return nn.Sequential(nn.Linear(6, 6), torch.jit.script(nn.Linear(6, 6)), nn.Tanh())


class OddGradients(nn.Module):
    """Has gradients that are sparse, not in order in memory, or missing, and parameters large and not in order."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 6, sparse=True)
        self.wide, self.narrow = nn.Linear(6, 400), nn.Linear(400, 6)
        self.turned = nn.Parameter(torch.randn(40, 60).t())
        self.unused, self.frozen = nn.Parameter(torch.ones(3, 2)), nn.Parameter(torch.ones(6), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        rows = self.table(torch.arange(4) % 3) * self.frozen
        out: Tensor = self.narrow(torch.tanh(self.wide(x + rows))) * self.turned.mean()
        return out


class LargeLayers(nn.Module):
    """Has parameters of which a sample shows how far they are moved, and one that is smaller."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow, self.last = nn.Linear(6, 400), nn.Linear(400, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.narrow(torch.relu(self.wide(x))))
        return out


def half() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 6), nn.Tanh()).to(torch.bfloat16)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "layers in layers": lambda: nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(3))),
    "skips and in-place operations": lambda: nn.Sequential(Skip(), Skip(), nn.Dropout(0.5)),
    "a layer called often": lambda: nn.Sequential(nn.Linear(6, 6), Reused()),
    "calls that Python takes": lambda: nn.Sequential(nn.Linear(6, 6), Odd()),
    "views": lambda: nn.Sequential(nn.Linear(6, 6), Views()),
    "several inputs and results": lambda: nn.Sequential(nn.Linear(6, 6), Several(), nn.Linear(6, 6)),
    "gradients that Python takes": lambda: nn.Sequential(nn.Linear(6, 6), OddGradients()),
    "large layers": LargeLayers,
    "half precision": half,
    "a scripted module": scripted,
    "very many parameters": lambda: nn.Sequential(nn.Linear(6, 6), ManyParameters()),
    "very many tensors from outside": lambda: nn.Sequential(nn.Linear(6, 6), ManySources()),
}


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is recorded, as it is handed on: observations, and the arrays of their rows."""
    found: list[Any] = []

    def observation(*args: Any, **kwargs: Any) -> Observation:
        made = Observation(*args, **kwargs)
        found.append((made.step, [*made.rows.items()], made.graph, made.facts))
        return made

    def finish(batch: Batch) -> Callable[[], Any]:
        part = plain(batch)()
        found.append([part.statistics, part.fingerprints, *dataclasses.astuple(part.histograms)])
        return lambda: part

    plain = Batch.finish
    monkeypatch.setattr(current_step, "Observation", observation)
    monkeypatch.setattr(Batch, "finish", finish)
    monkeypatch.setattr(call_costs, "perf_counter_ns", lambda: 0)
    return found


@pytest.fixture
def without_c(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes Python do it all: hooks, parameters, and what finds the elements of tensors."""

    def switch_off() -> None:
        monkeypatch.setattr(native_calls, "makers", lambda: None)
        monkeypatch.setattr(RowBuffer, "begin", lambda *_, **__: None)

    return switch_off


def train(model: nn.Module, folder: Path, keep: Keep | None = None) -> str:
    """A few steps; returns the run's folder."""
    torch.manual_seed(1)
    dtype = next(model.parameters()).dtype
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, logdir=folder, log_freq=1, backend="record", verbose=False, keep=keep) as watcher:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.randn(4, 6, dtype=dtype)).float().pow(2).mean().backward()
            optimizer.step()
    return str(watcher.run_dir)


def needs_c() -> None:
    if native_calls.makers() is None:
        pytest.skip("calls.c is not built for this system")


@pytest.mark.parametrize("name", MODELS)
def test_calls_noted_in_c_are_recorded_as_python_records_them(
    name: str, observed: list[Any], tmp_path: Path, without_c: Callable[[], None]
) -> None:
    needs_c()
    found: list[list[Any]] = []
    switches: list[Callable[[], None]] = [lambda: None, without_c]
    for begin in switches:
        begin()
        torch.manual_seed(0)
        train(MODELS[name](), tmp_path / str(len(found)))
        found.append([*observed])
        observed.clear()
    assert len(found[0]) == 2 * STEPS
    for one, other in zip(*found, strict=True):
        if isinstance(one, tuple):
            assert one == other
        else:
            for array, reference in zip(one, other, strict=True):
                np.testing.assert_array_equal(array, reference)


@pytest.mark.parametrize(
    ("name", "keep"),
    matrix(
        [name for name in MODELS if name != "large layers"],
        [Keep("*", "*:input", samples=2), Keep("1*", samples=None)],
    ),
)
def test_tensors_of_calls_noted_in_c_are_kept_as_python_keeps_them(
    name: str, keep: Keep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_c()
    found: list[dict[Any, Any]] = []
    for makers in (native_calls.makers, lambda: None):
        monkeypatch.setattr(native_calls, "makers", makers)
        torch.manual_seed(0)
        found.append(kept(open_run(train(MODELS[name](), tmp_path / str(len(found)), keep)).model()))
    assert found[0]
    assert found[0] == found[1]


def kept(model: Model) -> dict[Any, Any]:
    """All that is kept, by series, step and whether it is a gradient."""
    found, kept = {}, model.kept
    for series in kept.series:
        for step in kept.steps:
            value = model.tensor(series, step)
            for one in (value, *([] if value.gradient is None else [value.gradient])):
                statistics = [each.tobytes() for each in (one.mean, one.std, one.largest) if each is not None]
                found[series, step, one is value] = one.values.tobytes(), tuple(one.samples), one.dtype, statistics
    return found


@pytest.mark.parametrize("keep", [None, Keep("*", "*:input")], ids=["logged", "kept"])
def test_ordinary_calls_are_noted_in_c(keep: Keep | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_c()
    in_python: Counter[str] = Counter()
    for kind, act in ((RecordedCalls, "begin"), (RecordedCalls, "end"), (GradientHooks, "_take")):
        monkeypatch.setattr(kind, act, counted(getattr(kind, act), in_python))
    train(MODELS["layers in layers"](), tmp_path, keep)
    calls = 10 + (STEPS - 1)  # all of the step that is traced, and of each other one the model's own
    assert in_python["begin"] == in_python["end"] == calls
    assert in_python["_take"] <= STEPS  # the first gradient of each pass


def counted(function: Callable[..., Any], counts: Counter[str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        counts[function.__name__] += 1
        return function(*args)

    return call


def test_nothing_of_a_step_outlives_it(tmp_path: Path) -> None:
    model = MODELS["skips and in-place operations"]()
    dead = weakref.ref(model)
    train(model, tmp_path)
    del model
    gc.collect()
    assert dead() is None


def test_no_object_is_left_by_a_logged_step(tmp_path: Path) -> None:
    model, steps, written = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), 40, Counting()

    def objects_after(steps: int) -> int:
        """How many there are when all steps are written: the last one is held until nothing has come for a while."""
        expected, counts = written.frames + steps, [-1]
        for _ in range(steps):
            model(torch.randn(3, 4)).square().mean().backward()
            model.zero_grad()
        assert wait_for(lambda: written.frames == expected)

        def are_settled() -> bool:
            counts.append(tracked())
            return counts[-1] == counts[-2]

        assert wait_for(are_settled)
        return counts[-1]

    with watch(model, backend=["record", written], logdir=tmp_path, log_freq=1, verbose=False):
        objects_after(10)
        before = objects_after(10)
        assert objects_after(steps) - before < steps / 2


class Counting:
    """A sink that keeps nothing."""

    frames = 0

    def write(self, record: object) -> None:
        self.frames += isinstance(record, Frame)

    def close(self) -> None:
        pass


def tracked() -> int:
    gc.collect()
    return len(gc.get_objects())


class Mark:
    """Something that a hook of the user's refers to."""


def ignore(*_: object) -> None:
    """A hook that does nothing."""


def hook_the_output(output: Tensor, hook: Callable[..., None]) -> RemovableHandle:
    return output.register_hook(hook)


def hook_the_node(output: Tensor, hook: Callable[..., None]) -> RemovableHandle:
    node = output.grad_fn
    assert node is not None
    return node.register_hook(hook)


@pytest.mark.parametrize("put_on", [hook_the_output, hook_the_node])
def test_a_users_hook_in_a_cycle_is_collected_although_ours_was_beside_it(
    put_on: Callable[[Tensor, Callable[..., None]], RemovableHandle], tmp_path: Path
) -> None:
    model, marks = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), []

    def add(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        referred: list[object] = [Mark()]
        marks.append(weakref.ref(referred[0]))
        referred.append(put_on(output, functools.partial(ignore, referred)).hooks_dict_ref())

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, backend="record", logdir=tmp_path, log_freq=1, verbose=False):
        for _ in range(4):  # in the first one, which is traced, Python notes the calls
            model(torch.randn(3, 4))  # puts our hooks on, so that those of the next line are called after them
            handles = [part.register_forward_hook(add) for part in model]
            model(torch.randn(3, 4)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            for handle in handles:
                handle.remove()
        model(torch.randn(3, 4))
        gc.collect()
        assert [mark() for mark in marks] == [None] * 12


def test_what_cannot_be_made_keeps_nothing_of_what_it_was_given() -> None:
    made, one = native_calls.makers(), object()
    if made is None:
        pytest.skip("calls.c is not built for this system")
    before = sys.getrefcount(one)
    for make, more in ((made.calls, (5,)), (made.gradients, ()), (made.parameters, ())):
        with pytest.raises(IndexError):
            make((one,), *more)
    assert sys.getrefcount(one) == before
