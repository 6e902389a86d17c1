"""Describes a model's modules without running them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from torch import nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from torchgraph_explorer.capture.module_selection import ModuleSelection
from torchgraph_explorer.capture.modules_by_name import ModulesByName, modules_by_name, parameters_within
from torchgraph_explorer.capture.random_state import random_state
from torchgraph_explorer.capture.signatures import Signatures
from torchgraph_explorer.capture.tensor_tree import tensor_info
from torchgraph_explorer.schema import Module
from torchgraph_explorer.unvisited import unvisited

Rows: TypeAlias = "tuple[tuple[str, str], ...]"
"""What a module prints of itself, as (key, value)."""

EVERYTHING = ModuleSelection()

MOST_REPEATED = 64
"""Most names of entries of a list that are one module."""

OPENING, CLOSING = "([{", ")]}"

PLAIN = (bool, int, float, str, tuple)
"""Types of the arguments that a module prints in its `extra_repr`."""


def module_facts(
    model: nn.Module,
    selection: ModuleSelection = EVERYTHING,
    *,
    begun_with: ModulesByName | None = None,
    printed: Mapping[int, Rows] | None = None,
    asks: bool = True,
) -> tuple[Module, ...]:
    """One record for each module of `model` that `selection` chooses, in `named_modules()` order.

    Args:
        model: The model.
        selection: Which of its modules.
        begun_with: Those that a step began with: they are described also where the training loop has removed or
            replaced them since.
        printed: What `printed_by_users` has found.
        asks: Whether modules that are not in `printed` may be asked what they print: not in another thread than the
            training's.
    """
    modules = modules_by_name(model)
    if not selection.is_all:
        chosen = selection.chosen(modules)
        modules = {name: module for name, module in modules.items() if name in chosen}
    if begun_with is not None:
        is_whole = begun_with.keys() <= modules.keys()
        modules = modules | begun_with if is_whole else begun_with | modules | begun_with
    signatures = Signatures()

    def rows(module: nn.Module) -> Rows:
        known = (printed or {}).get(id(module))
        if known is None:
            known = extra_repr_rows(module) if asks or _prints_by_torch_alone(type(module)) else ()
        return _named(module, known, signatures.of_class(type(module)))

    return tuple(_facts(name, module, rows(module), signatures) for name, module in modules.items())


def printed_by_users(modules: Iterable[nn.Module]) -> dict[int, Rows]:
    """What modules print by code that is not torch's, by their ids. For the training's thread.

    That code may draw random numbers, so the generators are set back after it, which would undo what the training draws
    meanwhile in its own thread.
    """
    return {id(one): extra_repr_rows(one) for one in modules if not _prints_by_torch_alone(type(one))}


def _facts(  # noqa: PLR0917  # called for every module
    name: str, module: nn.Module, printed: Rows, signatures: Signatures
) -> Module:
    own = [(key, p) for key, p in nn.Module.named_parameters(module, recurse=False) if has_values(p)]
    everything = [p for p in parameters_within(module) if has_values(p)]
    return Module(
        name=name,
        class_name=type(module).__name__,
        class_path=f"{type(module).__module__}.{type(module).__qualname__}",
        extra_repr=printed + _order(module) + _repeated(module),
        params=unvisited(tuple(tensor_info(key, p) for key, p in own)),
        own_params=sum(p.numel() for _, p in own),
        total_params=sum(p.numel() for p in everything),
        trainable_params=sum(p.numel() for p in everything if p.requires_grad),
        forward_parameters=signatures.of_forward(module),
    )


def _order(module: nn.Module) -> Rows:
    """Whether an attention takes samples first, which torch does not print, as a row of `extra_repr`."""
    is_first = getattr(module, "batch_first", None) if isinstance(module, nn.MultiheadAttention) else None
    return (("batch_first", str(is_first)),) if isinstance(is_first, bool) else ()


def _repeated(module: nn.Module) -> Rows:
    """The names of entries of a list of modules that are one module with parameters, as a row of `extra_repr`.

    `named_modules()` has only the first of these names.
    """
    if not isinstance(module, (nn.ModuleList, nn.Sequential)):
        return ()
    names: dict[int, list[str]] = {}
    for name, entry in vars(module).get("_modules", {}).items():
        names.setdefault(id(entry), []).append(name)
    for same in names.values():
        entry = vars(module)["_modules"][same[0]]
        if len(same) > 1 and entry is not None and any(True for _ in parameters_within(entry)):
            return (("same_module", ", ".join(same[:MOST_REPEATED])),)
    return ()


def has_values(parameter: nn.Parameter) -> bool:
    """Whether it has a shape yet; a lazy module's has none until the first call."""
    return type(parameter) is nn.Parameter or not is_lazy(parameter)


def extra_repr_rows(module: nn.Module) -> Rows:
    """`module.extra_repr()` as (key, value) rows; a value without a name has an empty key."""
    restore = None if _prints_by_torch_alone(type(module)) else random_state()  # which other code may draw from
    try:
        text = module.extra_repr()
    except Exception as fault:  # the user's code: an unprintable module is still a module
        return (("", f"extra_repr() raised {type(fault).__name__}"),)
    finally:
        if restore is not None:
            restore()
    return tuple(_row(part) for part in _split(text) if part.strip())


def _prints_by_torch_alone(kind: type[nn.Module]) -> bool:
    """Whether torch wrote `extra_repr` and the attributes it reads, which a subclass or parametrization may compute."""
    if kind.extra_repr is nn.Module.extra_repr:
        return True
    return kind.__module__.startswith("torch.") and kind.__module__ != parametrize.__name__


def _named(module: nn.Module, rows: Rows, parameters: tuple[str, ...]) -> Rows:
    """`rows`, with values that have no name under the names of the class's parameters, in their order.

    A value belongs to a parameter if the module has it as an attribute of that name, as `in_channels` of a convolution.
    """
    names = iter(parameters)
    return tuple((key or next((name for name in names if _has(module, name, value)), ""), value) for key, value in rows)


def _has(module: nn.Module, name: str, value: str) -> bool:
    try:
        found = vars(module).get(name, getattr(type(module), name, None))
        return isinstance(found, PLAIN) and str(found) == value  # to print a tensor would take long
    except Exception:  # the user's code: a value that cannot be printed
        return False


def _row(part: str) -> tuple[str, str]:
    key, equals, value = part.strip().partition("=")
    return (key, value) if equals and key.isidentifier() else ("", part.strip())


def _split(text: str) -> list[str]:
    """The parts between commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in OPENING) - (letter in CLOSING)
        if letter in ",\n" and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
