"""Operations that are compiled into a model, and show its tensors from inside the compiled code.

Each is an opaque call: what it is given comes back to Python, and is measured there as in a step that runs as written.
The hooks that site them ask `_looking` first, which is a constant to the compiler. So there are two compiled forms of
the model: one with them, for the steps that are logged, and one without, which is what it would be unwatched.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.tensor_tree import tensors
from torchgraph_explorer.errors import OptionError

VALUE, GRADIENT = 0, 1
"""What an operation shows of its site."""


@dataclass(frozen=True, slots=True)
class ProbeSite:
    """Where an operation sits in the compiled code.

    Attributes:
        number: Tells it apart from all others. A module that is called twice has its sites twice.
        module: Name of the module.
        role: `input` or `output`.
        path: Which of the module's inputs or outputs.
    """

    number: int
    module: str
    role: str
    path: str


class ProbeListener(Protocol):
    """Whoever reads what the probes show."""

    def __call__(self, site: ProbeSite, what: int, tensor: Tensor) -> None:
        """`tensor` is the value or the gradient at `site`."""


Fail: TypeAlias = "Callable[[str, Exception], object]"
"""Told the name of a module that cannot be looked at, and why."""


class InlineProbes:
    """Places the operations in a model that is going to be compiled, until `close`."""

    def __init__(self, model: nn.Module, listener: ProbeListener, *, kinds: frozenset[str], fail: Fail) -> None:
        """Show to `listener` the tensors of every module of `model`, with gradients of inputs if `kinds` has `io_grad`.

        `fail` is told what `listener` raises, and what goes wrong while an operation is placed.

        Raises:
            OptionError: This torch cannot keep such operations in compiled code.
        """
        _operator()
        self.listener, self.fail = listener, fail
        self._exits = ExitStack()
        key = next(_keys)
        _probes_of[key] = self
        for name, module in model.named_modules():
            site = _Insertion(key, name, gradients="io_grad" in kinds)
            self._exits.callback(module.register_forward_pre_hook(_Before(site), with_kwargs=True).remove)
            self._exits.callback(module.register_forward_hook(_After(site)).remove)

    @interrupts.guarded
    def show(self, site: ProbeSite, what: int, tensor: Tensor) -> None:
        """An operation shows its tensor, in the middle of the user's compiled code."""
        try:
            self.listener(site, what, tensor)
        except Exception as fault:
            self.fail(site.module, fault)

    def close(self) -> None:
        """Take the hooks off. May be called again."""
        self._exits.close()


class InlineWindow:
    """From `begin` to `end`, the compiled code that runs is the form with the operations in it."""

    def __init__(self, *, whole: bool) -> None:
        """Those for the model itself are among them only if `whole`.

        Where its hooks are not compiled with the rest, each would become a compiled piece of its own.
        """
        self._whole = whole
        self._before: tuple[bool, bool] | None = None

    def begin(self) -> None:
        """From now on."""
        self._before = _looking.on, _looking.whole
        _looking.on, _looking.whole = True, self._whole

    def end(self) -> None:
        """Until now. May be called again."""
        if self._before is not None:
            _looking.on, _looking.whole = self._before


class _OpenWindow:
    """Whether a step that runs now is looked into."""

    def __init__(self) -> None:
        self.on, self.whole = False, False


_looking = _OpenWindow()
_keys = itertools.count()
_probes_of: weakref.WeakValueDictionary[int, InlineProbes] = weakref.WeakValueDictionary()
_places: list[tuple[int, ProbeSite]] = []
_lock = interrupts.lock()


def _new_site(key: int, module: str, role: str, path: str) -> int:  # noqa: PLR0917  # keywords are no constants
    """The number of a new site. Called while the model is compiled, and a constant ever after."""
    with _lock:
        number = len(_places)
        _places.append((key, ProbeSite(number, module, role, path)))
        return number


_new_site._dynamo_marked_constant = True  # type: ignore[attr-defined]  # `torch.compiler.assume_constant_result`


def _not_inserted(key: int, module: str) -> None:
    """An operation could not be placed. Called while the model is compiled, which goes on without it."""
    if (probes := _probes_of.get(key)) is not None:
        probes.fail(module, RuntimeError("what shows its tensors could not be compiled into it"))


_not_inserted._dynamo_marked_constant = True  # type: ignore[attr-defined]  # as above


@cache
def _operator() -> Callable[[Tensor, int, int], None]:
    """The operation. It returns nothing; that it has an effect keeps it, in its order."""
    try:
        from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
    except ImportError as fault:
        raise OptionError(
            f"compiled='inline' needs a newer torch than {torch.__version__}. Leave it out: steps that are logged then "
            f"run uncompiled."
        ) from fault

    def look(tensor: Tensor, site: int, what: int) -> None:
        key, where = _places[site]
        if (probes := _probes_of.get(key)) is not None:
            probes.show(where, what, tensor)

    operator = torch.library.custom_op("torchgraph::look", look, mutates_args=())
    operator.register_fake(lambda tensor, site, what: None)
    _register_effectful_op("torchgraph::look", _EffectType.ORDERED)
    return torch.ops.torchgraph.look


class _Insertion:
    """Places operations for one module. All of this is run by the compiler, not by Python."""

    def __init__(self, key: int, module: str, *, gradients: bool) -> None:
        self.key, self.module, self.gradients = key, module, gradients

    def outputs(self, output: object) -> None:
        """Show the tensors in `output`."""
        for path, tensor in tensors(output, "output"):
            site = _new_site(self.key, self.module, "output", path)
            torch.ops.torchgraph.look(tensor.detach(), site, VALUE)
            if tensor.requires_grad:
                tensor.register_hook(lambda gradient, site=site: torch.ops.torchgraph.look(gradient, site, GRADIENT))

    def input(self, value: Any, path: str) -> Any:
        """Show the tensors in an argument; returns what to go on with.

        That is another listener of it: the gradient of it is what comes back through this module alone.
        """
        for inner, tensor in tensors(value, path):
            site = _new_site(self.key, self.module, "input", inner)
            torch.ops.torchgraph.look(tensor.detach(), site, VALUE)
            if tensor is value and tensor.requires_grad and self.gradients:
                value = tensor.view_as(tensor)
                value.register_hook(lambda gradient, site=site: torch.ops.torchgraph.look(gradient, site, GRADIENT))
        return value


class _Unpickled:
    """A hook that is copied and pickled as nothing, as `hooks.Hook` is, and like that never raises."""

    def __init__(self, insertion: _Insertion) -> None:
        self._placing = insertion

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, str]]:
        return getattr, (nullcontext(), "__exit__")


class _Before(_Unpickled):
    def __call__(self, _module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Show the inputs, where it is compiled into a step that is looked into."""
        if not torch.compiler.is_compiling() or not _looking.on or not (self._placing.module or _looking.whole):
            return None
        try:
            placed = tuple(self._placing.input(value, f"input[{i}]") for i, value in enumerate(args))
            return placed, {name: self._placing.input(value, f"input[{name!r}]") for name, value in kwargs.items()}
        except Exception:  # ours, in the middle of the user's compilation
            _not_inserted(self._placing.key, self._placing.module)
            return None


class _After(_Unpickled):
    def __call__(self, _module: nn.Module, _args: object, output: object) -> None:
        """Show the outputs, where it is compiled into a step that is looked into."""
        if torch.compiler.is_compiling() and _looking.on and (self._placing.module or _looking.whole):
            try:
                self._placing.outputs(output)
            except Exception:
                _not_inserted(self._placing.key, self._placing.module)
