"""Operations that are compiled into a model, and show its tensors from inside the compiled code.

Each is an opaque call: its tensor comes back to Python, and is measured there as in a step that runs as it was written.
The hooks that insert the operations read `_window`, which is a constant to the compiler. So the model has two compiled
forms: one with the operations, for logged steps, and one without them, the same as that of an unwatched model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.inline.registry import ProbeSite
from torchgraph_explorer.capture.module_selection import ModuleSelection
from torchgraph_explorer.capture.modules_by_name import modules_by_name
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.capture.safe_hook import Unpickled
from torchgraph_explorer.capture.tensor_tree import tensors

VALUE, GRADIENT = 0, 1
"""What an operation shows: the tensor at its site, or the gradient of that."""


class ProbeListener(Protocol):
    """Takes what the operations show."""

    def __call__(self, site: ProbeSite, what: int, tensor: Tensor) -> None:
        """`tensor` is the value or the gradient at `site`."""


Fail: TypeAlias = "Callable[[str, Exception], object]"
"""Called with the name of a module that cannot be captured, and the exception."""


class InlineProbes:
    """Inserts the operations into a model that is compiled later, until `close`."""

    def __init__(
        self,
        model: nn.Module,
        listener: ProbeListener,
        *,
        kinds: frozenset[str],
        selection: ModuleSelection,
        fail: Fail,
    ) -> None:
        """Show to `listener` the tensors of the modules of `model` that `selection` chooses.

        Gradients of inputs are shown if `kinds` has `io_grad`.

        `fail` is called with what `listener` raises, and with what goes wrong while an operation is inserted. Ask
        `why_not_inline` before.
        """
        _operator()
        process_state.compilation_limit.take_over()
        self.listener, self.fail = listener, fail
        key = next(_registry.keys)
        _registry.probes[key] = self
        modules = modules_by_name(model)
        chosen = modules.keys() if selection.is_all else selection.chosen(modules)
        with ExitStack() as exits:  # if a module refuses a hook, the others have none either
            for name, module in modules.items():
                if name not in chosen or isinstance(module, torch.jit.ScriptModule):  # which refuses hooks
                    continue
                insertion = _Insertion(key, name, gradients="io_grad" in kinds)
                exits.callback(module.register_forward_pre_hook(_Before(insertion), with_kwargs=True).remove)
                exits.callback(module.register_forward_hook(_After(insertion)).remove)
            self._exits = exits.pop_all()

    @interrupts.guarded
    def show(self, site: ProbeSite, what: int, tensor: Tensor) -> None:
        """An operation shows its tensor, in the middle of the user's compiled code."""
        try:
            self.listener(site, what, tensor)
        except Exception as fault:
            self.fail(site.module, fault)

    def close(self) -> None:
        """Remove the hooks. May be called again."""
        self._exits.close()


class InlineWindow:
    """Has compiled code run in the form with the operations in it, from `begin` to `end`."""

    def __init__(self, *, whole: bool) -> None:
        """If `whole`, there are operations for the model itself, too.

        Not if its hooks are outside of the compiled code: each would then be compiled by itself.
        """
        self._whole = whole

    def begin(self) -> None:
        """Switch to the form with the operations."""
        _window.hold(self, whole=self._whole)

    def end(self) -> None:
        """Switch back. May be called again."""
        _window.release(self)


_registry = process_state.inline
_window = _registry.window


def _new_site(key: int, module: str, role: str, path: str) -> int:  # noqa: PLR0917  # keywords are no constants
    """The number of a new site. Called while the model is compiled; in the compiled code it is a constant."""
    with _registry.lock:
        number = len(_registry.sites)
        _registry.sites.append((key, ProbeSite(number, module, role, path)))
        return number


_new_site._dynamo_marked_constant = True  # type: ignore[attr-defined]  # `torch.compiler.assume_constant_result`


def _not_inserted(key: int, module: str) -> None:
    """Report that an operation could not be inserted. Called while the model is compiled, which goes on without it."""
    if (probes := _registry.probes.get(key)) is not None:
        probes.fail(module, RuntimeError("what shows its tensors could not be compiled into it"))


_not_inserted._dynamo_marked_constant = True  # type: ignore[attr-defined]  # as of `_new_site`


@cache
def _operator() -> Callable[[Tensor, int, int], None]:
    """The operation. It returns nothing; the compiler keeps it, in its order, because it is said to have an effect."""
    from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

    def look(tensor: Tensor, site: int, what: int) -> None:
        key, where = _registry.sites[site]
        if (probes := _registry.probes.get(key)) is not None:
            probes.show(where, what, tensor)

    operator = torch.library.custom_op("torchgraph::look", look, mutates_args=())
    operator.register_fake(lambda tensor, site, what: None)
    _register_effectful_op(torch.ops.torchgraph.look.default, _EffectType.ORDERED)
    torch.compiler.allow_in_graph(_look_at_gradient)
    return torch.ops.torchgraph.look


def why_not_inline() -> str | None:
    """Why operations cannot be compiled into a model; None if they can."""
    try:
        _operator()
    except Exception as fault:  # torch says nothing of its own functions from release to release
        return (
            f"compiled='inline' does not work with torch {torch.__version__} ({type(fault).__name__}: {fault}). Logged "
            f"steps run uncompiled instead."
        )
    return None


def _look_at_gradient(tensor: Tensor, site: int) -> None:
    """Show the gradient of `tensor`. The compiler calls this, and does not look into it.

    What it makes of `tensor.register_hook` differs between releases of torch: in 2.8 the model falls in two there, and
    in 2.11 no in-place operation can follow.
    """
    if tensor.requires_grad:  # not where the compiler finds that nothing needs a gradient
        tensor.register_hook(lambda gradient: torch.ops.torchgraph.look(gradient, site, GRADIENT))


class _Insertion:
    """Inserts operations for one module. The compiler runs all of this, not Python."""

    def __init__(self, key: int, module: str, *, gradients: bool) -> None:
        self.key, self.module, self.gradients = key, module, gradients

    def outputs(self, output: object) -> None:
        """Show the tensors in `output`."""
        for path, tensor in tensors(output, "output"):
            site = _new_site(self.key, self.module, "output", path)
            torch.ops.torchgraph.look(tensor.detach(), site, VALUE)
            if tensor.requires_grad:
                _look_at_gradient(tensor, site)

    def input(self, value: Any, path: str) -> Any:
        """Show the tensors in an argument; returns the argument to go on with.

        That is a view of it, whose gradient is what comes back through this module alone.
        """
        for inner, tensor in tensors(value, path):
            site = _new_site(self.key, self.module, "input", inner)
            torch.ops.torchgraph.look(tensor.detach(), site, VALUE)
            if tensor is value and tensor.requires_grad and self.gradients:
                value = tensor.view_as(tensor)
                _look_at_gradient(value, site)
        return value


class _Hook(Unpickled):
    def __init__(self, insertion: _Insertion) -> None:
        self._insertion = insertion


class _Before(_Hook):
    def __call__(self, _module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Show the inputs, if the form with the operations is being compiled."""
        if not torch.compiler.is_compiling() or not _window.on or not (self._insertion.module or _window.whole):
            return None
        try:
            shown = tuple(self._insertion.input(value, f"input[{i}]") for i, value in enumerate(args))
            return shown, {name: self._insertion.input(value, f"input[{name!r}]") for name, value in kwargs.items()}
        except Exception:  # ours, in the middle of the user's compilation
            _not_inserted(self._insertion.key, self._insertion.module)
            return None


class _After(_Hook):
    def __call__(self, _module: nn.Module, _args: object, output: object) -> None:
        """Show the outputs, if the form with the operations is being compiled."""
        if torch.compiler.is_compiling() and _window.on and (self._insertion.module or _window.whole):
            try:
                self._insertion.outputs(output)
            except Exception:
                _not_inserted(self._insertion.key, self._insertion.module)
