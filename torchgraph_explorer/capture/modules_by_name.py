"""The modules of a model by name, each once.

Names are the keys, and never modules: a module may be equal to another one, or have no hash.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

from torch import nn

from torchgraph_explorer.capture.keras_layers import KERAS, is_layer, named_layers
from torchgraph_explorer.console import reason, warn_once

ModulesByName: TypeAlias = "dict[str, nn.Module]"


def modules_by_name(model: nn.Module) -> ModulesByName:
    """The modules of `named_modules()`, and those that it leaves out: equal to others, or layers that Keras lists."""
    if not model._modules and KERAS not in sys.modules:
        return {"": model}
    found: ModulesByName = {}
    _add_modules(model, "", found, set())
    return _with_layers(model, found) if KERAS in sys.modules and any(map(is_layer, found.values())) else found


def _add_modules(  # noqa: PLR0917  # called for every module
    module: nn.Module, name: str, found: ModulesByName, seen: set[int]
) -> None:
    """Add `module` and those within it, as torch's `named_modules` gives them, in half its time.

    A module within the model may have its own `named_modules`, which is called. That of the model itself may take no
    arguments. `seen` are the ids of those that were added.
    """
    if id(module) in seen:
        return
    if name and (type(module).named_modules is not nn.Module.named_modules or "named_modules" in module.__dict__):
        memo = _ByIdentity(seen)
        found.update(module.named_modules(memo, name))
        seen.update(memo)
        return
    seen.add(id(module))
    found[name] = module
    for key, inner in module._modules.items():
        if inner is not None:
            _add_modules(inner, f"{name}.{key}" if name else key, found, seen)


def _with_layers(model: nn.Module, found: ModulesByName) -> ModulesByName:
    try:
        return dict(named_layers(model))
    except Exception as fault:  # Keras may have changed
        warn_once(f"Layers of Keras are not recorded, but for those that torch finds ({reason(fault)}).")
        return found


def parameters_within(model: nn.Module) -> list[nn.Parameter]:
    """The parameters of the model and of all modules within it, each once."""
    own = (module._parameters.values() for module in modules_by_name(model).values())
    return list({id(one): one for some in own for one in some if one is not None}.values())


class _ByIdentity(set[Any]):
    """A set for the walk, which compares modules by `is`."""

    def add(self, module: nn.Module) -> None:
        super().add(id(module))

    def __contains__(self, module: object) -> bool:
        return super().__contains__(id(module))
