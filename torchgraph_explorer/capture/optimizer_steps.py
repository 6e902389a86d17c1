"""The steps of all optimizers in the process, seen by torch's global hooks: a step of a model is one update by them."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any, Protocol, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from torchgraph_explorer.capture.call_stack import users_frame
from torchgraph_explorer.capture.facts.late import HeldGradient
from torchgraph_explorer.capture.facts.leftover import UpdateWitnesses
from torchgraph_explorer.capture.facts.snapshot import version_of
from torchgraph_explorer.capture.module_info import has_values
from torchgraph_explorer.capture.modules_by_name import parameters_within
from torchgraph_explorer.capture.no_dispatch import NoDispatch
from torchgraph_explorer.capture.parameter_places import ParameterPlace, parameter_places
from torchgraph_explorer.capture.safe_hook import Hook
from torchgraph_explorer.capture.skipped_updates import SkippedUpdates
from torchgraph_explorer.capture.uncompiled import uncompiled

ASK_AGAIN = 20
"""Steps after which it is asked again whether an optimizer has parameters of the model."""


MOST_WITHIN_STEP = 10
"""Writes into parameters by uncompiled code that are not taken for updates, if no hook has shown an update yet."""


class OptimizerListener(Protocol):
    """Takes the steps of every optimizer in the process."""

    def before_step(self, optimizer: Optimizer) -> None:
        """`optimizer` is about to move its parameters. Called for optimizers within other ones, too."""

    def after_step(self, optimizers: tuple[Optimizer, ...]) -> None:
        """An optimizer has moved its parameters. With it are those whose steps it called."""

    def has(self, optimizer: Optimizer) -> bool:
        """Whether it is known that `optimizer` moves the listener's model."""

    def fail_at_step(self, fault: Exception) -> None:
        """One of the methods above raised `fault`."""


_FrameMark: TypeAlias = "tuple[int, CodeType]"
"""Identifies a frame of Python without keeping it alive, and with it what the user's functions have made.

Once the frame is gone, another one may have its number.
"""


def _mark_of(frame: Any) -> _FrameMark:
    return id(frame), frame.f_code


class _OpenSteps(threading.local):
    """The optimizer steps that are being executed in this thread.

    Torch calls no hook when a step raises. So what is here may be left over from one that did, until the next step
    begins: nothing in it keeps the optimizer or its parameters alive.

    Attributes:
        frames: That of torch's function around each step, the innermost last.
        optimizers: Those that have begun to step.
    """

    def __init__(self) -> None:
        self.frames: list[_FrameMark] = []
        self.optimizers: list[weakref.ref[Optimizer]] = []

    def take_optimizers(self) -> tuple[Optimizer, ...]:
        """Each of `optimizers` once. From now on there are none."""
        found, self.optimizers = tuple(_alive(self.optimizers)), []
        return found


class OptimizerSteps:
    """Torch's two global hooks on optimizers, which are on while somebody listens."""

    def __init__(self) -> None:
        """Begin without a listener, and with no hook on."""
        self._listeners: dict[OptimizerListener, None] = {}
        self._handles: tuple[Any, ...] = ()
        self._open = _OpenSteps()
        self._walks: list[None] = []  # one for each that is going on, in any thread; a sum would not be atomic

    def add(self, listener: OptimizerListener) -> None:
        """Call `listener` from now on."""
        self._listeners[listener] = None
        if not self._handles:

            def fail(fault: Exception) -> None:
                self._fail(fault)

            self._handles = (
                register_optimizer_step_pre_hook(Hook(uncompiled(self._before), fail)),
                register_optimizer_step_post_hook(Hook(uncompiled(self._after), fail)),
            )

    def remove(self, listener: OptimizerListener) -> None:
        """Call `listener` no more. May be called again.

        The hooks stay on while torch iterates over them, and are removed with the next listener.
        """
        self._listeners.pop(listener, None)
        if not self._listeners and not self._walks:
            handles, self._handles = self._handles, ()
            for handle in handles:
                handle.remove()
            self._open = _OpenSteps()

    def clear(self) -> None:
        """Remove all listeners."""
        for listener in tuple(self._listeners):
            self.remove(listener)

    def are_watched(self, optimizers: Iterable[Optimizer]) -> bool:
        """Whether somebody's model is moved by one of these."""
        return any(listener.has(each) for listener in tuple(self._listeners) for each in optimizers)

    def open_here(self) -> tuple[Optimizer, ...]:
        """Those that are stepping in this thread, and call a closure that calls the model."""
        self._leave_failed(users_frame())
        return tuple(_alive(self._open.optimizers))

    def _leave_failed(self, frame: Any) -> None:
        """An exception may have ended open steps, in which case torch called no hook. Those that call `frame` go on."""
        here = self._open
        while here.frames and not _is_called_by(here.frames[-1], frame):
            here.frames.pop()
        if not here.frames:
            here.optimizers.clear()

    def _before(self, optimizer: Optimizer, *_: object) -> None:
        here, frame = self._open, users_frame()
        self._leave_failed(frame)
        here.frames.append(_mark_of(frame))
        here.optimizers.append(weakref.ref(optimizer))
        self._tell(lambda each: each.before_step(optimizer))

    def _after(self, *_: object) -> None:
        here, mark = self._open, _mark_of(users_frame())
        while here.frames and here.frames.pop() != mark:
            """Steps within this one that an exception has ended."""
        if here.frames:
            return
        optimizers = here.take_optimizers()
        self._tell(lambda each: each.after_step(optimizers))

    def _tell(self, act: Callable[[OptimizerListener], None]) -> None:
        self._walks.append(None)
        try:
            for listener in tuple(self._listeners):
                try:
                    act(listener)
                except Exception as fault:  # one that fails must not keep the others from it
                    listener.fail_at_step(fault)
        finally:
            self._walks.pop()

    def _fail(self, fault: Exception) -> None:
        """A fault of ours that is nobody's in particular: nobody is called any more."""
        listeners, self._listeners = tuple(self._listeners), {}
        for listener in listeners:
            listener.fail_at_step(fault)


def _alive(optimizers: Iterable[weakref.ref[Optimizer]]) -> Iterator[Optimizer]:
    """The optimizers that are still alive, each once."""
    found = (reference() for reference in optimizers)
    return iter(dict.fromkeys(one for one in found if one is not None))


def _is_called_by(outer: _FrameMark, frame: Any) -> bool:
    """Whether `frame` is being executed within the frame `outer`, and is not that one itself."""
    caller = frame.f_back
    while caller is not None and _mark_of(caller) != outer:
        caller = caller.f_back
    return caller is not None


class ModelOptimizers:
    """Which optimizers move the parameters of one model, and which gradient scalers may keep them from it.

    Attributes:
        witnesses: Tell whether the gradients of their last updates are still there.
        held_gradient: Tells whether a gradient is changed after an update.
        skipped_updates: How many were skipped so far.
        without: Parameters that none holds, as far as was asked for, by `id`.
    """

    def __init__(self, model: nn.Module) -> None:
        """None is known. The parameters are those that `model` has now: in a call by `torch.func` it has others."""
        self._places = {id(each): place for each, place in parameter_places(model)}
        self._own: WeakSet[Optimizer] = WeakSet()
        self._names: WeakKeyDictionary[Optimizer, str] = WeakKeyDictionary()
        self._others: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        self._of_class: Counter[str] = Counter()
        self._scalers = SkippedUpdates()
        self.witnesses, self.held_gradient = UpdateWitnesses(), HeldGradient()
        self.skipped_updates = 0
        self.without: set[int] = set()

    def moves(self, optimizer: Optimizer, model: nn.Module) -> bool:
        """Whether `optimizer` has a parameter of `model`. One that has none may get some, and is asked again."""
        if optimizer in self._own:
            return True
        asked = self._others.get(optimizer, 0)
        if asked % ASK_AGAIN == 0 and self._has_parameters(optimizer, model):
            self._own.add(optimizer)
            return True
        self._others[optimizer] = asked + 1  # last: an interrupt may come in between
        return False

    @property
    def known(self) -> list[Optimizer]:
        """The optimizers of which it is known that they move the model."""
        return list(self._own)

    def has(self, optimizer: Optimizer) -> bool:
        """Whether `optimizer` is known to move the model."""
        return optimizer in self._own

    def _has_parameters(self, optimizer: Optimizer, model: nn.Module) -> bool:
        now = {id(parameter) for parameter in parameters_within(model)}
        return any(self._is_known(each) or id(each) in now for each in parameters_of(optimizer))

    def name_of(self, optimizer: Optimizer) -> str:
        """Its class, with a number for each of the same class but the first one that has stepped."""
        name = self._names.get(optimizer)
        if name is None:
            kind = type(optimizer).__name__
            self._of_class[kind] += 1
            number = self._of_class[kind]
            name = self._names[optimizer] = kind if number == 1 else f"{kind} #{number}"
        return name

    def _is_known(self, parameter: Tensor) -> bool:
        place = self._places.get(id(parameter))
        if place is None:
            return False
        now = place.parameter
        stands_for_it = now is not None and not isinstance(now, nn.Parameter)  # in a call by `torch.func`
        return now is parameter or stands_for_it  # of one that is gone, another tensor may have the id

    def look(self, model: nn.Module) -> None:
        """Find the optimizers and the gradient scalers that there are.

        Python has no list of objects by class, but the garbage collector finds, in some 20 milliseconds, what refers to
        a class, as its objects do.
        """
        for each in gc.get_referrers(*_subclasses(Optimizer), *_subclasses(GradScaler)):
            if isinstance(each, GradScaler):
                self._scalers.add(each)
            elif isinstance(each, Optimizer) and "param_groups" in vars(each) and self._has_parameters(each, model):
                self._own.add(each)

    def exist(self, model: nn.Module) -> bool:
        """Whether there is an optimizer that moves `model`."""
        if not self._own:
            self.look(model)
        return bool(self._own)

    def without_optimizer(self, parameters: set[int], model: nn.Module) -> set[int]:
        """Those of `parameters` of `model`, by `id`, that no optimizer holds. Looks for one once for each."""
        without = parameters - held_by(self._own)
        if not without <= self.without:
            self.look(model)
            without -= held_by(self._own)
            self.without |= without
        return without

    @property
    def scalers(self) -> list[GradScaler]:
        """The gradient scalers that are in use for these optimizers, as far as that is known."""
        return self._scalers.in_use

    def scaler_of(self, optimizer: Optimizer) -> GradScaler | None:
        """The gradient scaler that has `optimizer`, which is about to step, do so; None without one."""
        return self._scalers.scaler_of(optimizer)

    @property
    def may_skip(self) -> bool:
        """Whether a gradient scaler may keep them from an update."""
        return bool(self._scalers)

    def skipped(self) -> list[Optimizer]:
        """Those of which a gradient scaler has skipped an update since this was last asked."""
        if not self._scalers:
            return []
        found = self._scalers.new({id(each) for each in self._own})
        return [each for each in self._own if id(each) in found]


def _subclasses(kind: type) -> Iterator[type]:
    """`kind`, and all classes that inherit from it."""
    yield kind
    inheriting: type
    for inheriting in type.__subclasses__(kind):
        yield from _subclasses(inheriting)


def parameters_of(optimizer: Optimizer) -> list[Tensor]:
    """All parameters that `optimizer` moves."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def held_by(optimizers: Iterable[Optimizer]) -> set[int]:
    """The ids of the parameters that `optimizers` hold."""
    return {id(each) for one in optimizers for group in one.param_groups for each in group["params"]}


class ParameterWrites:
    """Whether the parameters of a model were written to, for updates by an optimizer whose step is compiled.

    Torch calls no hook in compiled code. It counts what is written into each tensor.

    Code that is not compiled writes into parameters between two passes of a step, too: the first half of a
    sharpness-aware step climbs, and an initialisation may wait for data. Such writes are taken for updates only if many
    of them come before any update that a hook shows.
    """

    def __init__(self) -> None:
        """Begin with no parameter noted."""
        self._noted: tuple[tuple[ParameterPlace, int, int], ...] = ()
        self._untaken = 0
        self._has_told = False

    def are_update(self) -> bool:
        """Whether what was written since `note` is an update that no hook shows. Asked once for each `note`."""
        if not self._are_new():
            return False
        if has_compiled():
            return True
        self._untaken += 1
        return self._untaken > MOST_WITHIN_STEP

    def take_earlier(self) -> int:
        """How many earlier writes were updates as well, as it turns out once many have come. Told once."""
        if self._has_told or self._untaken <= MOST_WITHIN_STEP:
            return 0
        self._has_told = True
        return MOST_WITHIN_STEP

    def note(self, model: nn.Module) -> None:
        """Look for new ones from now on, in the first and the last parameter that is trained."""
        with NoDispatch():
            trained = [found for found in parameter_places(model) if has_values(found[0]) and found[0].requires_grad]
            self._noted = tuple((place, id(each), version_of(each)) for each, place in trained[:1] + trained[-1:])

    def _are_new(self) -> bool:
        """Whether a noted parameter was written to since `note`."""
        with NoDispatch():
            noted = [(place.parameter, number, version) for place, number, version in self._noted]
            return any(now is not None and id(now) == number and version_of(now) != old for now, number, old in noted)


def has_compiled() -> bool:
    """Whether torch has compiled anything in this process. Where this release of torch cannot say, it may have."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    if dynamo is None:
        return False
    counters = getattr(dynamo, "counters", None)
    return counters is None or bool(counters.get("frames"))
