"""Ctrl-C at any instruction of ours leaves torch as it was, and the training and the record go on after it."""

from __future__ import annotations

import copy
import gc
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

import torchgraph_explorer
from tests.listening import Listening
from tests.processes import wait_for as eventually
from tests.tables import every, stood_for
from torchgraph_explorer import attach, interrupts, watch
from torchgraph_explorer.capture import compiled_entry
from torchgraph_explorer.capture.forward_recorder import ForwardRecorder
from torchgraph_explorer.capture.safe_hook import SafeHook
from torchgraph_explorer.training.watcher import Watcher

pytestmark = pytest.mark.slow

OURS = str(Path(torchgraph_explorer.__file__).parent)
STEPS = 6
NOT_LOGGED = 2
NTH = 5
"""Of the instructions that are interrupted, every so manieth stands for those up to the next."""
LAST_INTERRUPTED = 3
"""The steps after it show whether all goes on."""

Instruction = tuple[CodeType, int]
"""An instruction: its code, and where in it."""


@dataclass(frozen=True)
class Target:
    """An instruction that is interrupted.

    Attributes:
        step: In which step.
        place: Which it is.
        time: The how manieth time in the step.
    """

    step: int
    place: Instruction
    time: int

    def __str__(self) -> str:
        code, at = self.place
        return f"step {self.step}, {Path(code.co_filename).stem}.{code.co_qualname}, {at}, time {self.time}"


def raise_interrupt() -> None:
    raise KeyboardInterrupt


@dataclass
class Tracer:
    """Counts the instructions of ours that this thread executes, and interrupts one.

    Attributes:
        target: The instruction to interrupt; None for none.
        seen: How often each was executed.
        met: Whether it was interrupted.
        act: What the interrupt does, as a signal's handler; by default, it raises `KeyboardInterrupt`.
    """

    target: Target | None = None
    seen: Counter[Instruction] = field(default_factory=Counter)
    met: bool = False
    act: Callable[[], object] = raise_interrupt

    def __call__(self, frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        is_wanted = frame.f_code is self.target.place[0] if self.target else frame.f_code.co_filename.startswith(OURS)
        if not is_wanted:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.within

    def within(self, frame: FrameType, event: str, _arg: object) -> Callable[..., Any]:
        if event == "opcode":
            place = frame.f_code, frame.f_lasti
            self.seen[place] += 1
            if self.target is not None and place == self.target.place and self.seen[place] == self.target.time:
                self.met = True
                self.act()
        return self.within

    def __enter__(self) -> None:
        sys.settrace(self)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)


class Net(nn.Module):
    """Does what makes us do much: in place, twice, by a view, by keyword, attached, with buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 2)
        self.norm, self.twice = nn.BatchNorm1d(6), nn.ReLU(inplace=True)

    def forward(self, x: Tensor, *, scale: Tensor) -> Tensor:
        x = self.twice(self.norm(self.first(x)))
        x = attach(x * scale, self, "scaled")
        x.view(-1)[:2].mul_(2)
        result: Tensor = self.last(self.twice(x))
        return result


@dataclass
class Training:
    """A model, and what one step of it does."""

    model: nn.Module
    called: nn.Module
    optimizer: torch.optim.Optimizer
    options: dict[str, Any] = field(default_factory=dict)

    def step(self, number: int) -> Tensor:
        torch.default_generator.manual_seed(number)  # `torch.manual_seed` notes the whole stack for other devices
        x, scale = torch.randn(3, 4, requires_grad=True), torch.randn(6)
        self.optimizer.zero_grad()
        loss: Tensor = self.called(x, scale=scale).square().sum()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def state(self) -> Any:
        return copy.deepcopy((self.model.state_dict(), self.optimizer.state_dict()))

    def set_state(self, state: Any) -> None:
        self.model.load_state_dict(state[0])
        self.optimizer.load_state_dict(state[1])


def plain() -> Training:
    torch.manual_seed(0)
    model = Net()
    return Training(model, model, torch.optim.SGD(model.parameters(), 0.05, momentum=0.9))


def wrapped(backend: str = "eager", **options: Any) -> Training:
    training = plain()
    torch.compiler.reset()
    called: Any = torch.compile(training.model, backend=backend)
    return replace(training, called=called, options=options)


def in_place() -> Training:
    training = plain()
    torch.compiler.reset()
    training.model.compile(backend="eager")
    return training


def inline() -> Training:
    return wrapped(compiled="inline")


def inline_with_autograd() -> Training:
    """What is compiled into the model is also traced by autograd, ahead of time."""
    return wrapped("aot_eager", compiled="inline")


@dataclass
class Trained:
    """What a training left behind."""

    told: list[bytes]
    heard: Listening


def train(make: Callable[[], Training], *, watched: bool, target: Target | None = None, skip: int | None = None) -> Any:
    """Train, interrupted at `target` or without the step `skip`."""
    training, heard = make(), Listening()
    watcher = listened(training, heard) if watched else None
    told = []
    for number in range(STEPS):
        state, torchs = training.state(), state_of_torch()
        if number == skip:
            continue
        tracer = Tracer(target)
        try:
            if target is not None and number == target.step:
                with tracer:
                    training.step(number)
            else:
                told.append(training.step(number).numpy().tobytes())
        except KeyboardInterrupt:
            restored = state_of_torch() == torchs
            assert restored or comes_back(target), f"{torchs} was changed to {state_of_torch()}"
            wait_for(torchs)
            assert not held()
        if target is not None and number == target.step:
            if not tracer.met:
                pytest.skip("not executed this time")
            training.set_state(state)
    if watcher is not None:
        watcher.close()
        assert hooks_on(training.model) == 0
    return Trained(told + left_behind(training), heard)


def left_behind(training: Training) -> list[bytes]:
    told = [tensor.numpy().tobytes() for tensor in training.model.state_dict().values()]
    return told + [each["momentum_buffer"].numpy().tobytes() for each in training.optimizer.state.values()]


def comes_back(target: Target | None) -> bool:
    """Whether torch may be put right a moment later: it was at an end of a function that is called from outside."""
    if target is None:
        return False
    return target.place[0] in {*interrupts._process.entries, attach.__code__} or is_after_compiled_code(target)


def wait_for(expected: dict[str, object]) -> None:
    deadline = time.monotonic() + 20
    while (found := state_of_torch()) != expected:
        assert time.monotonic() < deadline, f"{expected} was changed to {found}"
        time.sleep(0.002)


def listened(training: Training, heard: Listening) -> Watcher:
    return watch(
        training.called,
        backend=heard,
        log_freq=lambda step: step != NOT_LOGGED,
        sample_n=None,
        optimizer=training.optimizer,
        verbose=False,
        **training.options,
    )


def state_of_torch() -> dict[str, object]:
    """All that is global, or of this thread."""
    dynamo: Any = sys.modules.get("torch._dynamo.eval_frame")
    c: Any = torch._C
    return {
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": (
            torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"),
            torch.is_autocast_cache_enabled(),
        ),
        "dispatch modes": _get_current_dispatch_mode_stack(),
        "function modes": c._len_torch_function_stack(),
        "dispatch keys": (str(c._dispatch_tls_local_include_set()), str(c._dispatch_tls_local_exclude_set())),
        "functions": str(c._get_torch_function_state()),
        "transforms": c._functorch.get_dynamic_layer_stack_depth(),
        "stance": dynamo and dynamo._stance,
        "saved tensors": c._autograd._saved_tensors_hooks_is_enabled(),
        "deterministic": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        "anomalies": torch.is_anomaly_enabled(),
        "type": torch.get_default_dtype(),
        "garbage": gc.isenabled(),
        "changed": list(interrupts.this_thread.changed),
    }


def held() -> list[Any]:
    """Locks of ours that another thread cannot have."""
    found: list[Any] = []

    def try_all() -> None:
        for lock in tuple(interrupts._process.locks):
            if lock.acquire(timeout=5):
                lock.release()
            else:
                found.append(lock)

    other = threading.Thread(target=try_all)
    other.start()
    other.join()
    return found


def hooks_on(model: nn.Module) -> int:
    return sum(
        len(hooks)
        for module in model.modules()
        for name, hooks in vars(module).items()
        if name.endswith(("hooks", "hooks_with_kwargs", "hooks_always_called")) and hooks
    )


@cache
def executed(make: Callable[[], Training]) -> tuple[Target, ...]:
    """Every instruction of ours that a training executes, at the first, a middle and the last time in each step."""
    training = make()
    watcher = listened(training, Listening())
    targets = []
    for number in range(LAST_INTERRUPTED + 1):
        tracer = Tracer()
        with tracer:
            training.step(number)
        for place, times in tracer.seen.items():
            targets += [Target(number, place, time) for time in sorted({1, (times + 1) // 2, times})]
    watcher.close()
    return tuple(targets)


@cache
def unwatched(skip: int) -> Trained:
    """Neither is it compiled: the backends used here compute as torch itself does."""
    trained: Trained = train(plain, watched=False, skip=skip)
    return trained


@cache
def uninterrupted(make: Callable[[], Training], skip: int) -> Trained:
    trained: Trained = train(make, watched=True, skip=skip)
    return trained


def check(make: Callable[[], Training], target: Target, expected: Callable[[], Training] | None = None) -> None:
    """Interrupt a training, which then leaves the record that an uninterrupted one of `expected` leaves."""
    done: Trained = train(make, watched=True, target=target)
    assert done.told == unwatched(target.step).told
    assert_same_last_frame(done.heard, uninterrupted(expected or make, target.step).heard)
    steps = [frame.step for frame in done.heard.frames]
    notes = done.heard.finished.notes
    assert all("interrupted" in note for note in notes), notes
    counted = STEPS if steps[-1] == STEPS - 1 else STEPS - 1  # an interrupt may come before the step is counted
    missing = set(range(counted)) - set(steps) - {NOT_LOGGED}
    assert missing <= {target.step, target.step - 1}
    assert notes or not missing or is_before_the_call(target), f"{missing} are missing, and nothing is said"


def is_before_the_call(target: Target) -> bool:
    """Whether the model may not have been called at all, so that there is nothing to record."""
    code, _ = target.place
    return code.co_name == "gate" or (code.co_filename == compiled_entry.__file__ and code.co_name != "_leave")


def assert_same_last_frame(heard: Listening, expected: Listening) -> None:
    assert heard.recorded() == expected.recorded()
    assert {frame.graph for frame in heard.frames} - {None} <= {graph.id for graph in heard.graphs}
    for key in expected.recorded():
        told, whole = heard.row(key), expected.row(key)
        assert repr(told[0]) == repr(whole[0]), key  # NaN is equal to NaN
        assert told[1].buckets.tobytes() == whole[1].buckets.tobytes(), key


def test_what_an_interrupt_has_left_on_is_left_when_the_watcher_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the user goes on for long in the forward pass that was interrupted, it is not tried any more by then."""
    monkeypatch.setattr(interrupts, "MOST_SECONDS", 0.0)
    inner = next(one for one in executed(plain) if one.place[0] is ForwardRecorder._enter.__code__ and one.time > 1)
    training, torchs = plain(), state_of_torch()
    watcher = listened(training, Listening())
    with pytest.raises(KeyboardInterrupt), Tracer(inner):
        training.step(0)
    watcher.close()
    wait_for(torchs)


@pytest.mark.parametrize("part", every(NTH, range(CLOSED := 60)))
def test_a_watcher_that_is_closed_at_any_instruction_of_ours_leaves_torch_as_it_was(part: int) -> None:
    """As by a signal's handler. The code that it interrupted goes on first."""
    target, training, heard = spread(executed(plain), part, CLOSED), plain(), Listening()
    watcher, torchs = listened(training, heard), state_of_torch()
    tracer = Tracer(target, act=watcher.close)
    told = []
    for number in range(target.step):
        told.append(training.step(number).numpy().tobytes())
    with tracer:
        told.append(training.step(target.step).numpy().tobytes())
    if not tracer.met:
        pytest.skip("not executed this time")
    assert eventually(lambda: watcher.finished)
    wait_for(torchs)
    assert hooks_on(training.model) == 0
    assert not held()
    told.append(training.step(target.step + 1).numpy().tobytes())
    alone = plain()
    assert told == [alone.step(number).numpy().tobytes() for number in range(target.step + 2)]
    assert eventually(lambda: heard.closed)
    assert not heard.finished.notes or heard.finished.notes[0].count("no step was recorded")
    assert {frame.step for frame in heard.frames} >= set(range(target.step)) - {NOT_LOGGED}


def evaluated(model: nn.Module) -> None:
    """What a signal's handler does that looks how good the model is."""
    model.eval()
    with torch.no_grad():
        model(torch.ones(3, 4), scale=torch.ones(6))
    model.train()


@pytest.mark.parametrize("part", every(NTH, range(EVALUATED := 60)))
def test_a_model_that_is_called_at_any_instruction_of_ours_is_recorded_all_the_same(part: int) -> None:
    """As by a signal's handler."""
    target, training, heard = spread(executed(plain), part, EVALUATED), plain(), Listening()
    watcher, tracer = listened(training, heard), Tracer(target, act=lambda: evaluated(training.model))
    told = []
    for number in range(STEPS):
        with tracer if number == target.step else nullcontext():
            told.append(training.step(number).numpy().tobytes())
    if not tracer.met:
        pytest.skip("not executed this time")
    watcher.close()
    alone = uninterrupted(plain, STEPS)
    assert told + left_behind(training) == unwatched(STEPS).told
    assert not heard.finished.notes
    assert [frame.step for frame in heard.frames] == [frame.step for frame in alone.heard.frames]
    assert_same_last_frame(heard, alone.heard)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)], ids=["an interrupt", "an exit with its code"])
def test_what_a_handler_raises_while_a_put_off_close_is_made_reaches_the_training(error: BaseException) -> None:
    def close() -> None:
        raise error

    inner = next(one for one in executed(plain) if one.place[0] is ForwardRecorder._enter.__code__)
    training = plain()
    watcher = listened(training, Listening())

    def train_on() -> None:
        with Tracer(inner, act=lambda: interrupts.call_when_left(close)):
            for number in range(1_000):
                training.step(number)

    with pytest.raises(type(error)) as raised:
        train_on()
    assert raised.value is error
    interrupts._process.waiting.acts.clear()
    watcher.close()


MANY = 200
"""How many of the instructions are interrupted in the plain model."""

COMPILED = {wrapped: 16, in_place: 16, inline: 8}
"""How many in each way to compile it."""


@pytest.mark.parametrize("part", every(NTH, range(MANY)))
def test_an_interrupt_at_any_instruction_of_ours_leaves_torch_as_it_was(part: int) -> None:
    check(plain, spread(executed(plain), part, MANY))


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
@pytest.mark.parametrize(
    ("part", "make"),
    [
        pytest.param(
            part,
            make,
            id=f"{part}-{make.__name__}",
            marks=[pytest.mark.xdist_group(make.__name__), *stood_for(part % 5 != 0)],
        )
        for make, parts in COMPILED.items()
        for part in range(parts)
    ],
)
def test_an_interrupt_in_a_step_of_a_compiled_model_leaves_torch_as_it_was(
    part: int, make: Callable[[], Training]
) -> None:
    """Every second one is at an instruction that the plain model does not execute."""
    targets = executed_only_by(make) if part % 2 else executed(make)
    way = inline_with_autograd if make is inline and part in WITH_AUTOGRAD else make
    check(way, spread(targets, part, COMPILED[make]), expected=inline if make is inline else plain)


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
@pytest.mark.parametrize(
    "make",
    [pytest.param(make, id=make.__name__, marks=pytest.mark.xdist_group(make.__name__)) for make in (wrapped, inline)],
)
@pytest.mark.parametrize("first", every(4, (1, 2, 3, 4)))
def test_an_interrupt_as_any_hook_of_a_compiled_model_begins_leaves_torch_as_it_was_a_moment_later(
    make: Callable[[], Training], first: int
) -> None:
    """There, nothing of ours can catch it. The hook that it keeps from being called may be the one after the call."""
    hooks = [
        one for one in executed(make) if one.step == LAST_INTERRUPTED and one.place[0] is SafeHook.__call__.__code__
    ]
    times = max(one.time for one in hooks)
    assert times > 1
    for number in range(first, times + 1, 4):
        check(
            make,
            Target(LAST_INTERRUPTED, min((one.place for one in hooks), key=lambda place: place[1]), number),
            expected=make,
        )


WITH_AUTOGRAD = (1, 3, 6)
"""Parts in which what is compiled is traced by autograd too."""


@cache
def executed_only_by(make: Callable[[], Training]) -> tuple[Target, ...]:
    """The instructions that a training executes, and that of the plain model does not."""
    known = {target.place for target in executed(plain)}
    return tuple(target for target in executed(make) if target.place not in known)


def is_after_compiled_code(target: Target) -> bool:
    """Whether it is between the end of code that is compiled in place and our hook after it."""
    code, _ = target.place
    return code.co_filename == compiled_entry.__file__ and code.co_name in ("entry", "_leave")


def spread(targets: tuple[Target, ...], part: int, parts: int) -> Target:
    """One of so many that lie evenly among all."""
    return targets[part * len(targets) // parts]


SIGNALS = 40
"""Steps that a signal may end."""


def test_a_lock_that_was_taken_twice_is_free_after_an_interrupt() -> None:
    lock = interrupts.lock()

    @interrupts.guarded
    def interrupted() -> None:
        lock.acquire()
        lock.acquire()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not lock._is_owned()  # type: ignore[attr-defined]


@pytest.mark.filterwarnings(  # Python prints one that comes in the callback of a weak reference, and goes on
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_signal_at_any_time_leaves_torch_as_it_was() -> None:
    """Also in torch's code that ours calls, and in the user's, where it is put right a moment later."""
    told, interrupted = train_with_signals()
    assert interrupted
    assert told == train_without(interrupted)


def train_with_signals() -> tuple[list[bytes], set[int]]:
    training, times, told, interrupted = plain(), random.Random(1), [], set()
    watcher = listened(training, Listening())
    for number in range(SIGNALS):
        state, torchs = training.state(), state_of_torch()
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 10 ** times.uniform(-3.7, -1.3))  # of which a step takes some part
            loss = training.step(number)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupted.add(number)
            wait_for(torchs)
            assert not held()
            training.set_state(state)
        else:
            told.append(loss.numpy().tobytes())
        signal.signal(signal.SIGALRM, before)
    watcher.close()
    assert hooks_on(training.model) == 0
    return told + left_behind(training), interrupted


def train_without(skipped: set[int]) -> list[bytes]:
    training = plain()
    told = [training.step(number).numpy().tobytes() for number in range(SIGNALS) if number not in skipped]
    return told + left_behind(training)
