"""`compiled="inline"`: a model that stays compiled in logged steps tells what it tells when it runs as written."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.compatibility.case import call, loss_of, sgd
from tests.compatibility.cases.compiled import NO_COMPILER, in_place, with_autograd, wrapped
from tests.compatibility.same_record import assert_same_frames
from tests.listening import Listening
from tests.models import CASES
from tests.tables import every
from torchgraph_explorer import watch
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.errors import OptionError, TorchgraphWarning

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch's own, when it imports the default backend
]

STEPS = 6


class Tangled(nn.Module):
    """In-place, reused and nested, with a dict as its output."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Linear(6, 6)
        self.d = nn.Sequential(nn.LayerNorm(6), nn.GELU())

    def forward(self, x: Tensor) -> dict[str, Any]:
        z = self.c(self.b(self.a(x)))
        return {"out": self.d(z) + self.c(x), "more": [z]}


@dataclass
class Trained:
    heard: Listening
    losses: list[float]
    graphs: list[int]
    breaks: int


Compiling = Callable[[Any], Any]


def tangled() -> tuple[nn.Module, Callable[[], Any]]:
    return Tangled(), lambda: ((torch.randn(4, 6),), {})


def trained(make: Callable[[], tuple[nn.Module, Callable[[], Any]]], compiling: Compiling, **options: Any) -> Trained:
    """Trains what `compiling` makes of a model after it is watched, logging every other step."""
    import torch._dynamo
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(3)
    model, arguments = make()
    done = Trained(Listening(), [], [], 0)
    watcher = watch(model, backend=done.heard, log_freq=2, sample_n=None, verbose=False, **options)
    compiled, optimizer = compiling(model), sgd(model.parameters())
    for _ in range(STEPS):
        args, kwargs = arguments()
        loss = loss_of(call(lambda *positional: compiled(*positional, **kwargs), args))  # noqa: B023  # called at once
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done.losses.append(loss.item())
        done.graphs.append(counters["stats"]["unique_graphs"])
    watcher.close()
    done.breaks = sum(counters["graph_break"].values())
    return done


def assert_same_record(inline: Listening, eager: Listening) -> None:
    assert [frame.step for frame in eager.frames] == [0, 2, 4]
    assert inline.graphs == eager.graphs
    assert_same_frames(inline, eager)


@pytest.mark.parametrize(
    "compiling",
    [
        pytest.param(with_autograd, id="wrapped"),
        pytest.param(in_place, id="in place"),
        pytest.param(
            lambda model: wrapped(model, backend="inductor"),
            id="default backend",
            marks=[pytest.mark.skipif(bool(NO_COMPILER), reason=NO_COMPILER), pytest.mark.exhaustive],
        ),
    ],
)
def test_inline_records_what_an_uncompiled_step_records_from_one_unbroken_graph(compiling: Compiling) -> None:
    inline, eager = trained(tangled, compiling, compiled="inline"), trained(tangled, compiling)
    assert_same_record(inline.heard, eager.heard)
    np.testing.assert_allclose(inline.losses, eager.losses, rtol=1e-5)
    assert inline.breaks == 0
    assert inline.graphs[1] == eager.graphs[-1] == 1, "unlogged steps run the graph of the unwatched model"
    assert inline.graphs[2] == inline.graphs[-1] == 2, "and all logged ones another"
    assert not inline.heard.finished.notes


@pytest.mark.parametrize(
    "compiling", every(2, [pytest.param(in_place, id="in place"), pytest.param(with_autograd, id="wrapped")])
)
def test_inline_records_the_modules_that_are_chosen(compiling: Compiling) -> None:
    options = {"only": ["d", "c"], "except_": "d.1"}
    inline, eager = (trained(tangled, compiling, compiled=way, **options) for way in ("inline", "eager"))
    assert_same_record(inline.heard, eager.heard)
    assert {key[0] for key in inline.heard.series} == {"", "c", "d", "d.0"}
    np.testing.assert_allclose(inline.losses, eager.losses, rtol=1e-5)
    assert (inline.breaks, inline.heard.finished.notes) == (0, ())


@pytest.mark.parametrize(
    "name", every(2, ["two inputs, in-place, reused", "residual CNN", "chunks and slices", "shared weights"])
)
def test_inline_records_awkward_models(name: str) -> None:
    def make() -> tuple[nn.Module, Callable[[], Any]]:
        return CASES[name][0](), CASES[name][1]

    inline, written = trained(make, with_autograd, compiled="inline"), trained(make, lambda model: model)
    assert_same_record(inline.heard, written.heard)
    assert inline.breaks == 0


def test_a_model_that_was_compiled_before_it_is_watched_is_logged_uncompiled_and_that_is_said() -> None:
    import torch._dynamo

    torch._dynamo.reset()
    model = Tangled()
    compiled, heard = wrapped(model), Listening()
    loss_of(compiled(torch.randn(4, 6))).backward()
    watcher = watch(model, backend=heard, log_freq=1, verbose=False, compiled="inline")

    def train() -> None:
        for _ in range(4):
            loss_of(compiled(torch.randn(4, 6))).backward()

    with pytest.warns(TorchgraphWarning, match=r"the model was called before watch\(\).* Call watch\(\) before"):
        train()
    watcher.close()
    assert [len(frame.series) for frame in heard.frames] == [len(heard.frames[0].series)] * 3


def test_a_watch_that_is_closed_after_ctrl_c_in_compiled_code_leaves_no_operations_in_what_is_compiled_next() -> None:
    import torch._dynamo

    torch._dynamo.reset()
    model, is_pressed = Tangled(), False

    def backend(graph: Any, _inputs: object) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            if is_pressed:
                raise KeyboardInterrupt
            return graph(*args)

        return run

    watcher = watch(model, backend=Listening(), log_freq=1, verbose=False, compiled="inline")
    compiled = wrapped(model, backend=backend)
    for _ in range(2):
        loss_of(compiled(torch.randn(4, 6))).backward()
    is_pressed = True
    with pytest.raises(KeyboardInterrupt):
        compiled(torch.randn(4, 6))
    assert process_state.inline.window.on
    watcher.close()
    assert not process_state.inline.window.on


def test_inline_leaves_nothing_on_the_model() -> None:
    model = Tangled()
    with watch(model, backend=Listening(), verbose=False, compiled="inline"):
        assert model.a._forward_hooks
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())


def test_a_model_with_a_scripted_part_is_recorded_as_without_inline() -> None:
    def make() -> tuple[nn.Module, Callable[[], Any]]:
        traced = torch.jit.trace(nn.Sequential(nn.Linear(6, 6), nn.Tanh()), torch.randn(4, 6))
        return nn.Sequential(nn.Linear(6, 6), traced, nn.Linear(6, 2)), lambda: ((torch.randn(4, 6),), {})

    inline, eager = (trained(make, lambda model: model, compiled=way) for way in ("inline", "eager"))
    assert_same_record(inline.heard, eager.heard)


@pytest.mark.parametrize("broken", ["outputs", "input"])
def test_a_module_whose_tensors_cannot_be_shown_is_named_and_the_model_is_compiled_without(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(tangled, with_autograd, compiled="inline")

    def fail(*_: object) -> None:
        raise RuntimeError("a fault of ours, in the middle of the compilation")

    monkeypatch.setattr(f"torchgraph_explorer.capture.inline.probes._Insertion.{broken}", fail)
    with pytest.warns(TorchgraphWarning, match="what shows its tensors could not be compiled into it"):
        without = trained(tangled, with_autograd, compiled="inline")
    assert (without.losses, without.breaks) == (whole.losses, 0)
    assert all(any(repr(name) in note for note in without.heard.finished.notes) for name in ("a", "d.1"))


def test_the_form_with_operations_has_nothing_else_in_it_that_the_compiler_made_of_them() -> None:
    """What it makes of `register_hook` differs by release: a break, a view that no in-place operation may follow."""
    graphs: list[list[str]] = []

    def backend(graph: Any, _inputs: object) -> Callable[..., Any]:
        graphs.append([getattr(node.target, "__name__", str(node.target)) for node in graph.graph.nodes])
        return graph

    done = trained(tangled, lambda model: wrapped(model, backend=backend), compiled="inline")
    plain, inline = graphs
    more = Counter(inline) - Counter(plain)
    assert done.breaks == 0
    assert more["_look_at_gradient"]
    assert {name.split(".")[0] for name in more} <= {"look", "torchgraph", "detach", "view_as", "_look_at_gradient"}


def test_where_torch_keeps_no_operations_that_is_said_at_once_and_steps_are_logged_uncompiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise AssertionError("changed in this torch")

    monkeypatch.setattr("torchgraph_explorer.capture.inline.probes._operator", fail)
    model, heard = Tangled(), Listening()
    with pytest.warns(TorchgraphWarning, match=r"compiled='inline' does not work with torch .* run uncompiled instead"):
        watcher = watch(model, backend=heard, log_freq=1, verbose=False, compiled="inline")
    for _ in range(2):
        loss_of(wrapped(model)(torch.randn(4, 6))).backward()
    watcher.close()
    assert [frame.step for frame in heard.frames] == [0, 1]


def test_another_way_of_logging_a_compiled_model_is_refused() -> None:
    with pytest.raises(OptionError, match="Pass 'eager', which runs logged steps uncompiled"):
        watch(nn.Linear(2, 2), compiled="inductor")


SIZES = 3
"""Forms that torch compiles of a function, where it may compile one more: eight, if nobody says anything else."""


def lengths() -> tuple[nn.Module, Callable[[], Any]]:
    """A model, and arguments of `SIZES` sizes."""
    sizes = itertools.cycle(range(2, 2 + SIZES))
    return Tangled(), lambda: ((torch.randn(next(sizes), 6),), {})


def losses(watched: bool, *, train: Callable[[Any, Callable[[], Any]], list[float]], log_freq: int = 1) -> list[float]:
    """What `train` makes of a model compiled for each size, as one graph."""
    import torch._dynamo

    torch._dynamo.reset()
    torch.manual_seed(3)
    model, arguments = lengths()
    options: dict[str, Any] = {"log_freq": log_freq, "verbose": False, "compiled": "inline"}
    watching = watch(model, backend=Listening(), **options) if watched else None
    done = train(torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=False), arguments)
    if watching is not None:
        watching.close()
    return done


def test_the_forms_with_operations_do_not_count_among_those_that_torch_may_compile() -> None:
    def train(compiled: Any, arguments: Callable[[], Any]) -> list[float]:
        outputs = []
        for _ in range(2 * SIZES + 1):
            loss = loss_of(call(compiled, arguments()[0]))
            loss.backward()
            outputs.append(loss.item())
        return outputs

    with torch._dynamo.config.patch(cache_size_limit=SIZES + 1):
        assert losses(True, train=train, log_freq=2) == losses(False, train=train)


@pytest.mark.parametrize("forbidden", ["error_on_recompile", "fail_on_recompile"])
def test_where_torch_may_not_compile_again_steps_are_logged_as_they_were_written(forbidden: str) -> None:
    import torch._dynamo

    def forbid() -> Any:
        if forbidden == "error_on_recompile":
            return torch._dynamo.config.patch(error_on_recompile=True)
        return torch.compiler.set_stance("fail_on_recompile")

    def train(compiled: Any, _arguments: Callable[[], Any]) -> list[float]:
        inputs = torch.randn(4, 6)
        first = loss_of(compiled(inputs))
        first.backward()
        if forbidden == "fail_on_recompile":
            loss_of(compiled(inputs)).backward()
        outputs = [first.item()]
        with forbid():
            for _ in range(3):
                loss = loss_of(compiled(inputs))
                loss.backward()
                outputs.append(loss.item())
        return outputs

    assert losses(True, train=train) == losses(False, train=train)
