"""Looks between logged steps whether what a model returns, and what an optimizer gets, is finite.

Only one number of one tensor is looked at, at most for a small share of the training's time, and nothing is waited for:
from a GPU, the number is read when it has come to the host. Nothing is put on the user's tensors. When the number is
not finite, and in host memory, what it came from is looked at, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

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

    def look_at_output(
        self, output: object, step: int, *, model: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> None:
        """The model, called with `args` and `kwargs`, has returned. Minus infinity may be meant, where it masks."""
        pace = self._paces["output"]
        if "output" not in self._over and pace.is_due() and not is_no_step():
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
