"""Training with watch() is bit for bit training without it, and nothing of it is left on the model."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from tests.listening import Listening
from tests.models import CASES, Digits, loss_of
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.capture.path_gradients import is_stale

STEPS = 20


@dataclass
class Trained:
    """All that a training leaves behind."""

    losses: list[Tensor]
    parameters: list[Tensor]
    buffers: list[Tensor]
    gradients: list[Tensor | None]
    momenta: list[Tensor]
    random_state: Tensor


def train(case: str, *, watched: bool) -> Trained:
    torch.manual_seed(7)
    make, arguments = CASES[case]
    model = make()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
    watcher = watch(model, backend=Listening(), log_freq=1, sample_n=16) if watched else None
    losses = []
    for _ in range(STEPS):
        args, kwargs = arguments()
        loss = loss_of(model(*args, **kwargs))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    if watcher is not None:
        watcher.close()
    momenta = [each["momentum_buffer"] for each in optimizer.state.values()]
    parameters: list[Tensor] = list(model.parameters())
    gradients = [p.grad for p in parameters]
    return Trained(losses, parameters, list(model.buffers()), gradients, momenta, torch.get_rng_state())


def assert_identical(one: list[Tensor | None], other: list[Tensor | None]) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert (a is None and b is None) or (
            a is not None and b is not None and a.detach().numpy().tobytes() == b.detach().numpy().tobytes()
        )


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_watching_leaves_training_bit_identical(case: str) -> None:
    plain, watched = train(case, watched=False), train(case, watched=True)
    assert_identical([*plain.losses], [*watched.losses])
    assert_identical([*plain.parameters], [*watched.parameters])
    assert_identical([*plain.buffers], [*watched.buffers])
    assert_identical(plain.gradients, watched.gradients)
    assert_identical([*plain.momenta], [*watched.momenta])
    assert torch.equal(plain.random_state, watched.random_state)


@pytest.mark.slow  # imports dynamo
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_a_compiled_model_is_neither_broken_nor_compiled_again() -> None:
    from torch._dynamo.utils import counters

    def train_compiled(*, watched: bool) -> tuple[list[float], Listening]:
        torch.manual_seed(0)
        torch._dynamo.reset()
        counters.clear()
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        assert isinstance(compiled, nn.Module)
        heard = Listening()
        watcher = watch(compiled, log_freq=2, backend=heard) if watched else None
        losses = []
        for _ in range(4):
            loss = compiled(torch.randn(3, 4)).square().sum()
            loss.backward()
            losses.append(loss.item())
        if watcher is not None:
            watcher.close()
        return losses, heard

    plain, _ = train_compiled(watched=False)
    watched, heard = train_compiled(watched=True)
    assert watched == plain
    assert (counters["stats"]["unique_graphs"], dict(counters["graph_break"])) == (1, {})
    assert [frame.step for frame in heard.frames] == [0, 2]
    assert [call.module for call in heard.graphs[0].calls] == ["", "0", "1"]


def hooks_on(model: nn.Module) -> int:
    return sum(
        len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) + len(m._backward_pre_hooks)
        for m in model.modules()
    )


def test_closing_removes_every_hook() -> None:
    model = Digits()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, backend=Listening(), log_freq=1):
        model(torch.randn(2, 1, 8, 8)).sum().backward()
        optimizer.step()
        assert hooks_on(model) == 2, "between steps there are two, on the model itself"
    assert hooks_on(model) == 0
    assert all(not p._backward_hooks for p in model.parameters())


def test_no_hook_stays_on_a_tensor_that_the_training_keeps() -> None:
    model, kept = Digits(), []
    model.head.register_forward_hook(lambda _module, _inputs, output: kept.append(output))
    with watch(model, backend=Listening(), log_freq=1):
        for _ in range(2):  # the first one is traced, and the second is not
            model(torch.randn(2, 1, 8, 8)).sum().backward(retain_graph=True)
        assert kept[-1]._backward_hooks, "its gradient is recorded"
    assert [bool(each._backward_hooks) for each in kept] == [False, False]


def test_a_step_that_is_not_logged_has_two_hooks_on_the_model() -> None:
    model = Digits()
    seen = []
    model.head.register_forward_hook(lambda *_: seen.append(hooks_on(model)))
    with watch(model, backend=Listening(), log_freq=2):
        for _ in range(2):
            model(torch.randn(2, 1, 8, 8)).sum().backward()
    logged, unlogged = seen
    assert logged > 10
    assert unlogged == 3, "the test's own, that which begins steps, and that which sees a result that is not finite"


@pytest.mark.parametrize("mid_step", [False, True], ids=["between steps", "mid-step"])
def test_a_watched_model_copies_and_pickles_as_an_unwatched_one(mid_step: bool) -> None:
    model = Digits()
    heard = Listening()
    with watch(model, backend=heard, log_freq=1):
        output = model(torch.randn(2, 1, 8, 8))
        if not mid_step:
            output.sum().backward()
        copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        frames = len(heard.frames)
        for one in copies:
            one(torch.randn(2, 1, 8, 8)).sum().backward()
        assert b"torchgraph" not in pickle.dumps(model).replace(b"tests.models", b"")
        assert len(heard.frames) == frames, "a copy is not watched"
        assert list(model.state_dict()) == list(Digits().state_dict())
        assert repr(model) == repr(Digits())


def test_torch_warns_of_no_hook_where_a_loss_is_saved() -> None:
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.criterion = nn.Linear(4, 2), nn.MSELoss()

        def forward(self, inputs: Tensor) -> Tensor:
            loss: Tensor = self.criterion(self.layer(inputs), inputs[:, :2])
            return loss

    model = WithLoss()
    with watch(model, backend=Listening(), log_freq=1):
        loss = model(torch.ones(3, 4))
        saved = pickle.dumps({"model": model.state_dict(), "loss": loss})  # a warning is an error here
        loss.backward()
    assert pickle.loads(saved)["loss"].item() == loss.item()
    assert not pickle.loads(saved)["loss"]._backward_hooks


def test_a_watched_model_can_be_freed() -> None:
    model = Digits()
    heard = Listening()
    watch(model, backend=heard, log_freq=1)
    model(torch.randn(2, 1, 8, 8)).sum().backward()
    model(torch.randn(2, 1, 8, 8)).sum().backward()
    gone = weakref.ref(model)
    deadline = torch.tensor(0)
    del model, deadline
    wait_until(lambda: gc.collect() is not None and gone() is None)
    wait_until(lambda: heard.closed)
    assert len(heard.frames) == 2, "what was at hand was written"


def test_a_model_that_gives_a_parameter_to_a_module_is_recorded_in_inference_mode(tmp_path: Path) -> None:
    class Viewing(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return x @ same(self.weight.t()) + same(self.bias)

    same = nn.Identity()
    model = nn.Sequential(weight_norm(nn.Linear(4, 4)), Viewing(4, 2), same)
    with watch(
        model, backend="record", logdir=tmp_path, run="run", log_freq=1, phases=("train", "eval"), verbose=False
    ):
        for _ in range(3):
            model(torch.randn(3, 4)).sum().backward()
            with torch.inference_mode():
                model(torch.randn(3, 4))
    recorded = open_run(tmp_path / "run").model("Sequential (eval)")
    assert len(recorded.steps) == 3
    assert {"0.parametrizations.weight.0", "2"} <= {one.module for one in recorded.series if one.role == "input"}


def test_a_stale_view_that_is_given_to_a_module_is_used_no_sooner_than_unwatched() -> None:
    class Stale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.same = nn.Identity()

        def forward(self, x: Tensor) -> Tensor:
            view = x[:, :4]
            x.mul_(2)
            view = self.same(view)
            return 0.5 * x + (0.3 * x).sin() + nn.functional.pad(view, (0, 4))  # three summands, whose order matters

    def gradients(*, watched: bool) -> list[Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), Stale(), nn.Linear(8, 3))
        with watch(model, backend=Listening(), log_freq=1, verbose=False) if watched else nullcontext():
            for _ in range(3):
                model(torch.randn(6, 8)).square().sum().backward()
        return [one.grad for one in model.parameters() if one.grad is not None]

    assert_identical([*gradients(watched=True)], [*gradients(watched=False)])


def test_views_that_a_module_keeps_are_not_used() -> None:
    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept: list[Tensor] = []

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                memory = torch.zeros_like(x)
                forbidden = memory[0]  # torch raises at its next use, after the write to `memory`
            memory.add_(x)
            stale = x[0]
            x.mul_(2)
            self.kept = [stale, forbidden]
            return x + memory

    model = nn.Sequential(nn.Linear(8, 8), Keeps())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with (
        warnings.catch_warnings(record=True) as told,
        watch(model, backend=Listening(), log_freq=1, verbose=False),
    ):
        warnings.simplefilter("always")
        for _ in range(3):
            model(torch.randn(6, 8)).square().sum().backward()
            optimizer.step()
            assert is_stale(cast("Keeps", model[1]).kept[0])
    assert [*map(str, told)] == []


def wait_until(claim: object, seconds: float = 5.0) -> None:
    import time

    assert callable(claim)
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_an_exception_in_forward_is_the_users_own() -> None:
    class Fails(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.fail = True

        def forward(self, x: Tensor) -> Tensor:
            x = self.inner(x)
            if self.fail:
                raise ValueError("the user's")
            return x

    model = Fails()
    heard = Listening()
    with watch(model, backend=heard, log_freq=1):
        with pytest.raises(ValueError, match="the user's"):
            model(torch.randn(1, 2))
        model.fail = False
        model(torch.randn(1, 2)).sum().backward()
    assert [frame.step for frame in heard.frames] == [0, 1]
    assert ("inner", 0, "output", "output", "value") in heard.recorded(0)
    assert ("", 0, "output", "output", "value") in heard.recorded(1)


def test_an_interrupt_in_forward_leaves_the_next_step_whole() -> None:
    class Interrupted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.interrupt = True

        def forward(self, x: Tensor) -> Tensor:
            x = self.inner(x)
            if self.interrupt:
                raise KeyboardInterrupt
            return x

    model = Interrupted()
    heard = Listening()
    with watch(model, backend=heard, log_freq=1):
        with pytest.raises(KeyboardInterrupt):
            model(torch.randn(1, 2))
        model.interrupt = False
        for _ in range(2):
            model(torch.randn(1, 2)).sum().backward()
    assert ("", 0, "output", "output", "value") in heard.recorded(-1)
    assert heard.graphs[-1].calls[1].parent == 0
