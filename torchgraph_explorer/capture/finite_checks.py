"""Looks between logged steps whether what a model returns, and what an optimizer gets, is finite.

Only one number of one tensor is looked at, at most for a small share of the training's time, and nothing is waited for:
from a GPU, the number is read when it has come to the host. Nothing is put on the user's tensors. When the number is
not finite, and in host memory, what it came from is looked at, too.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from torchgraph_explorer.capture import nonfinite_origin
from torchgraph_explorer.capture.call_context import is_captured, is_no_step
from torchgraph_explorer.capture.mode_stack import are_modes_on
from torchgraph_explorer.capture.no_dispatch import FLOATS, ORDINARY, NoDispatch, gradient_of, has_memory, is_readable
from torchgraph_explorer.capture.tensor_tree import tensors
from torchgraph_explorer.schema import NotFiniteOrigin

SHARE = 0.003
"""Share of the time that each of the two is given, at most. In fast trainings, only some steps are looked at."""

MOST_LEFT_OUT = 100
"""Steps between two looks."""

LARGEST = 1 << 16
"""Elements of a gradient. One of the first parameters with no more is looked at: NaN goes back through all of them."""

FEW = 8
"""Tensors of an output, and parameters of an optimizer, that may be chosen from."""

Found: TypeAlias = "Callable[[int, str, NotFiniteOrigin | None], object]"
"""Called with a step, what was not finite in it, and what else was not."""

IsFinite: TypeAlias = "Callable[[Tensor, bool], bool | None]"
"""Whether a tensor is finite, with the second argument apart from minus infinity; None if that is left to torch."""

Origin: TypeAlias = "Callable[[], NotFiniteOrigin | None]"
"""Looks at what else is not finite now."""


class FiniteChecks:
    """Looks at outputs and gradients until the first of each was not finite."""

    def __init__(self, found: Found, is_finite: IsFinite | None) -> None:
        """Call `found` once for an output, and once for a gradient. Without `is_finite`, torch reads all tensors."""
        self._found, self._is_finite = found, is_finite
        self._over: set[str] = set()
        self._late: dict[str, _Late] = {}
        self._paces = {"output": _Pace(), "gradient": _Pace()}
        self._latest = -1  # the step whose output was looked at last
        self._between = -1  # the latest step that is not logged; -1 if a logged one came after it
        self._passed: _Passed | None = None

    def look_at_output(
        self, output: object, step: int, *, model: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """The model, called with `args` and `kwargs`, has returned. Minus infinity may be meant, where it masks."""
        pace, self._between = self._paces["output"], step
        if "output" in self._over:
            return
        if not pace.is_due():
            self._pass_by(output, step, given=args if len(args) == 1 and not kwargs else ())
        elif not is_no_step():
            self._passed = None
            with NoDispatch():
                trained = [one for _, one in tensors(output, "")[:FEW] if one.requires_grad]
            self._look("output", step, trained, origin=lambda: nonfinite_origin.of_output(model, args, kwargs))
            pace.looked()
            self._latest = step

    def look_at_gradient(self, optimizer: Optimizer, step: int, *, model: nn.Module, is_updated: bool = False) -> None:
        """An optimizer is about to move `model`, or has called it and moved it if `is_updated`.

        One that a scaler tells of infinity moves nothing then.

        It is looked at where the output was, too: a gradient that is not finite then comes from behind that.
        """
        pace = self._paces["gradient"]
        is_due = pace.is_due() or step == self._latest
        if "gradient" not in self._over and getattr(optimizer, "found_inf", None) is None and is_due:
            few = optimizer.param_groups[0]["params"][:FEW]
            with NoDispatch():
                found = map(gradient_of, few)
                gradients = [one for one in found if one is not None and one.numel() <= LARGEST]
            self._look(
                "gradient", step, gradients, origin=lambda: nonfinite_origin.of_gradient(model, is_updated=is_updated)
            )
            pace.looked()

    def _pass_by(self, output: object, step: int, *, given: tuple[object, ...]) -> None:
        """Remember the latest output that is not looked at, without keeping it alive."""
        first = output[0] if isinstance(output, (tuple, list)) and output else output
        if type(first) is Tensor:
            known = weakref.ref(given[0]) if given and type(given[0]) is Tensor else None
            self._passed = _Passed(step, weakref.ref(first), known)

    def forget(self) -> None:
        """A step is logged: what came before it needs no look any more."""
        self._passed, self._between = None, -1

    def look_back(self, model: nn.Module, step: int, *, has_failed: bool) -> None:
        """The training has ended, in this step: look at what it last left, if its latest step was not logged.

        That is the output of its last step, if it was not looked at and is still there, and one of the first
        parameters, which updates may have made not finite, if it is in host memory. If an exception has ended the
        training (`has_failed`), it is also a gradient: NaN may have led to it. Else, that may be infinite because a
        scaler has skipped the update.
        """
        passed, self._passed = self._passed, None
        if self._between < 0:
            return
        output = None if passed is None else passed.output()
        if passed is not None and output is not None and "output" not in self._over and output.requires_grad:
            self._look("output", passed.step, [output], origin=lambda: _origin_of(passed, model))
        with NoDispatch():
            known = nonfinite_origin.parameters_of(model)
            trained = [one for _, one in known if one.requires_grad and one.numel() <= LARGEST]
            gradients = [one for one in map(gradient_of, trained) if one is not None]
        if has_failed and not self._over:
            self._look("gradient", self._between, gradients[:FEW], origin=lambda: nonfinite_origin.of_gradient(model))
        if not self._over:
            some = [one for one in trained[:FEW] if one.is_cpu and _can_be_read(one)]
            self._look("parameter", step, some, origin=lambda: nonfinite_origin.of_output(model, (), {}))

    def stop(self) -> None:
        """Look at no output and no gradient from now on."""
        self._over |= {"output", "gradient"}

    def _look(self, what: str, step: int, some: Sequence[Tensor], *, origin: Origin) -> None:
        known = self._read(some[0], may_mask=what == "output") if some and not self._late else None
        if known is None:
            self._look_by_torch(what, step, some, origin=origin)
        elif not known:
            with NoDispatch():
                self._judge(what, step, is_bad=True, origin=origin)

    def _read(self, tensor: Tensor, *, may_mask: bool) -> bool | None:
        """Whether it is finite; None if that is left to torch. In a few microseconds, at most steps of the training."""
        if self._is_finite is None or are_modes_on() or torch._C._is_torch_function_mode_enabled():
            return None
        return self._is_finite(tensor, may_mask)

    def _look_by_torch(self, what: str, step: int, some: Sequence[Tensor], *, origin: Origin) -> None:
        if is_captured():  # asking whether a number has come would end the capture
            return
        with NoDispatch():
            if (late := self._late.get(what)) is not None:
                if not late.is_there:
                    return
                del self._late[what]
                self._judge(what, late.step, is_bad=_is_bad(late.value), origin=lambda: None)
            if what in self._over or (tensor := next(filter(_can_be_read, some), None)) is None:
                return
            number = torch.amax(tensor.detach()) if what == "output" else _largest(tensor.detach())
            if number.is_cpu:
                self._judge(what, step, is_bad=_is_bad(number.item()), origin=origin)
            else:
                self._late[what] = _Late(number, step)

    def _judge(self, what: str, step: int, *, is_bad: bool, origin: Origin) -> None:
        if is_bad:
            self._over.add(what)
            self._found(step, what, origin())


class _Passed(NamedTuple):
    """An output that was not looked at.

    Attributes:
        step: Its step.
        output: The first tensor that the model returned.
        given: The tensor that it was given, if that was all.
    """

    step: int
    output: weakref.ref[Tensor]
    given: weakref.ref[Tensor] | None


def _origin_of(passed: _Passed, model: nn.Module) -> NotFiniteOrigin | None:
    """As `nonfinite_origin.of_output`. That all was finite is only known where the input is still there."""
    given = None if passed.given is None else passed.given()
    found = nonfinite_origin.of_output(model, () if given is None else (given,), {})
    return None if found is not None and not found.count and given is None else found


class _Pace:
    """At which calls to look, so that this takes no more than its share of the time.

    The shortest of the latest times counts, of steps and of looks: others had to wait for the processor.
    """

    def __init__(self) -> None:
        self._left, self._last = 0, 0.0
        self._between = self._taken = math.inf

    def is_due(self) -> bool:
        now = time.perf_counter()
        self._between, self._last = min(1.01 * self._between, now - self._last), now
        self._left -= 1
        return self._left < 0

    def looked(self) -> None:
        taken = time.perf_counter() - self._last
        shortest, self._taken = min(taken, self._taken), taken
        self._left = min(int(shortest / (SHARE * max(self._between, 1e-9))), MOST_LEFT_OUT)


class _Late:
    """A number on a GPU, on its way to the host.

    Attributes:
        step: The step that it is of.
    """

    def __init__(self, number: Tensor, step: int) -> None:
        self.step = step
        self._host = torch.empty((), dtype=number.dtype, pin_memory=True)
        self._host.copy_(number, non_blocking=True)
        self._copied = torch.cuda.Event()
        self._copied.record(torch.cuda.current_stream(number.device))

    @property
    def is_there(self) -> bool:
        """Whether the number has come to the host."""
        return bool(self._copied.query())

    @property
    def value(self) -> float:
        """The number, once it has come."""
        return self._host.item()


def _is_bad(value: float) -> bool:
    return math.isnan(value) or value == math.inf


def _largest(gradient: Tensor) -> Tensor:
    """The largest magnitude; NaN if there is one."""
    largest: Tensor = torch.linalg.vector_norm(gradient, math.inf)
    return largest


def _can_be_read(tensor: Tensor) -> bool:
    """Whether torch alone can tell its largest element, here or on a GPU, now."""
    if type(tensor) not in ORDINARY or tensor.dtype not in FLOATS or tensor.layout is not torch.strided:
        return False
    if not tensor.numel() or not is_readable(tensor) or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return False
    return has_memory(tensor) and (tensor.is_cpu or tensor.is_cuda)
