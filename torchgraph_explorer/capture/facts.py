"""What can be said of a model's modules without running them."""

from __future__ import annotations

from torch import nn
from torch.nn.parameter import is_lazy

from torchgraph_explorer.capture.leaves import tensor_info
from torchgraph_explorer.records import Module

OPENING, CLOSING = "([{", ")]}"


def module_facts(model: nn.Module) -> tuple[Module, ...]:
    """One record for each module of `model`, in `named_modules()` order."""
    return tuple(_facts(name, module) for name, module in model.named_modules())


def _facts(name: str, module: nn.Module) -> Module:
    own = [(key, p) for key, p in module.named_parameters(recurse=False) if has_values(p)]
    everything = [p for p in module.parameters() if has_values(p)]
    return Module(
        name=name,
        class_name=type(module).__name__,
        class_path=f"{type(module).__module__}.{type(module).__qualname__}",
        extra_repr=extra_repr_rows(module),
        params=tuple(tensor_info(key, p) for key, p in own),
        own_params=sum(p.numel() for _, p in own),
        total_params=sum(p.numel() for p in everything),
        trainable_params=sum(p.numel() for p in everything if p.requires_grad),
    )


def has_values(parameter: nn.Parameter) -> bool:
    """Whether it has a shape yet; a lazy module's has none until the first call."""
    return not bool(is_lazy(parameter))


def extra_repr_rows(module: nn.Module) -> tuple[tuple[str, str], ...]:
    """`module.extra_repr()` as (key, value) rows; a positional fact has an empty key."""
    try:
        text = module.extra_repr()
    except Exception as fault:  # the user's code: an unprintable module is still a module
        return (("", f"extra_repr() raised {type(fault).__name__}"),)
    return tuple(_row(part) for part in _split(text) if part.strip())


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
