"""Leaves a model, and torch's random numbers, as they were before a pass."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from torchgraph_explorer.capture.modules_by_name import modules_by_name
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.capture.random_state import random_state
from torchgraph_explorer.capture.safe_hook import SafeHook

Copies: TypeAlias = "dict[int, Tensor]"
"""Copies of a model's buffers, by the id of the buffer. The buffers live as long as the model does."""

HOOKS = (
    *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"),
    *("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    *("_backward_pre_hooks", "_backward_hooks"),
)
"""The attributes of a module that hold its hooks, and the options of hooks."""

STORES = ("_parameters", "_buffers", "_modules", *HOOKS)
"""The attributes of a module that are dictionaries."""

SYMBOLIC = "_compiled_call_impl"
"""The attribute of a module that `module.compile()` sets: what is called in its place."""


@contextmanager
def restoring(model: nn.Module, copies: Copies) -> Iterator[None]:
    """Restore everything about `model` at the end of the block, also after an exception.

    Within the block, gradients are enabled, buffers are copies, all floating-point parameters require gradients,
    compiled modules run as they were written, and hooks of `watch` are off. Afterwards modes, hooks, attributes,
    buffers, `.grad`, `requires_grad` and the state of random number generators are as before. Values of parameters that
    the model itself changes within the block are not restored.

    Args:
        model: Its modules are restored, too.
        copies: The copies of buffers that the model works on. Missing ones are added.
    """
    with ExitStack() as stack:
        stack.callback(random_state())
        _pause_attaching(stack)
        for module in modules_by_name(model).values():
            stack.callback(_restore_module, module, _state_of(module))
        for parameter in model.parameters():
            stack.callback(_restore_parameter, parameter, parameter.grad, parameter.requires_grad)
            parameter.grad = None
            if parameter.is_leaf and (parameter.is_floating_point() or parameter.is_complex()):
                parameter.requires_grad_(True)
        for module in modules_by_name(model).values():
            _prepare(module, copies)
        stack.enter_context(_as_written())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        yield


@dataclass(frozen=True, slots=True)
class ModuleState:
    """The attributes of a module.

    Attributes:
        attributes: All of them.
        stores: The contents of those that are dictionaries.
    """

    attributes: Mapping[str, Any]
    stores: Mapping[str, Mapping[Any, Any]]


def _state_of(module: nn.Module) -> ModuleState:
    attributes = dict(vars(module))
    return ModuleState(attributes, {name: dict(attributes[name]) for name in STORES if name in attributes})


def _restore_module(module: nn.Module, state: ModuleState) -> None:
    now = vars(module)
    for name in now.keys() - state.attributes.keys():
        del now[name]
    for name, value in state.attributes.items():
        if name not in now or now[name] is not value:
            now[name] = value
    for name, contents in state.stores.items():
        store = now[name]
        if not _is_same(store, contents):
            store.clear()
            store.update(contents)


def _is_same(store: Mapping[Any, Any], contents: Mapping[Any, Any]) -> bool:
    return list(store) == list(contents) and all(store[name] is value for name, value in contents.items())


def _restore_parameter(parameter: nn.Parameter, grad: Tensor | None, requires_grad: bool) -> None:
    parameter.grad = grad
    if parameter.requires_grad is not requires_grad:
        parameter.requires_grad_(requires_grad)


def _prepare(module: nn.Module, copies: Copies) -> None:
    """Give `module` copies of its buffers, and take off what is not its own code."""
    buffers, attributes = module._buffers, vars(module)
    for store in (buffers, attributes):
        for name, value in list(store.items()):
            if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
                store[name] = _copy(value, copies)
    for name in HOOKS:
        hooks = attributes.get(name, {})
        for key in [key for key, hook in hooks.items() if isinstance(hook, SafeHook)]:
            del hooks[key]
    if attributes.get(SYMBOLIC) is not None:
        attributes[SYMBOLIC] = None


def _copy(tensor: Tensor, copies: Copies) -> Tensor:
    if id(tensor) not in copies:
        copies[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
    return copies[id(tensor)]


def _pause_attaching(stack: ExitStack) -> None:
    """Steps and trainings that are recorded get no tensors that are attached in the block."""
    targets = process_state.attach_targets
    for loop in targets.loops:
        targets.leave_loop(loop)
        stack.callback(targets.watch_loop, loop)
    for step in targets.open_steps():
        targets.leave(step)
        stack.callback(targets.enter, step)


def _as_written() -> AbstractContextManager[Any]:
    """Runs compiled modules as they were written. Where nothing was compiled, dynamo is not imported."""
    if "torch._dynamo" not in sys.modules:
        return ExitStack()
    stance: AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance


def mode_of_thread() -> Callable[[], AbstractContextManager[None]]:
    """Makes contexts with the autocast of this thread, to be entered in any thread."""
    devices = [name for name in ("cpu", "cuda", "mps") if torch.amp.is_autocast_available(name)]
    found = [(name, torch.get_autocast_dtype(name)) for name in devices if torch.is_autocast_enabled(name)]

    @contextmanager
    def enter() -> Iterator[None]:
        with ExitStack() as stack:
            for name, dtype in found:
                stack.enter_context(torch.autocast(name, dtype=dtype))
            yield

    return enter
