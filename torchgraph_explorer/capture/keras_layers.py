"""The layers of Keras 3 on its torch backend, which are modules, but of which torch's walk finds few.

A model of Keras has its layers in lists of its own. Registered as submodules are only those that are set as attributes,
and dictionaries of parameters, in each layer with those of all layers within it.

Source: `keras/src/layers/layer.py` and `keras/src/backend/torch/layer.py` of Keras 3.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from torch import nn

KERAS = "keras.src.layers.layer"
"""The module of Keras that defines a layer."""

_PARAMETERS = "_torch_params"
"""The submodule of each layer that has its parameters."""


def is_layer(module: nn.Module) -> bool:
    """Whether it is a layer of Keras, also a model."""
    loaded = sys.modules.get(KERAS)
    return loaded is not None and isinstance(module, loaded.Layer) and hasattr(module, "_flatten_layers")


def named_layers(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The modules of `model`, each once, a parent before its children.

    A layer is called as the attribute that it is set as, or else by its own name.
    """
    found = list(_walk("", model, set()))
    innermost = {name for name, module in found if not _within(module)}
    theirs = {id(one) for name, module in found if name in innermost for one in _parameters(module)}
    for name, module in found:
        yield name, module
        own = _parameters(module)
        if own and (name in innermost or any(id(one) not in theirs for one in own)):
            yield _joined(name, _PARAMETERS), module._modules[_PARAMETERS]  # type: ignore[misc]


def _walk(name: str, module: nn.Module, seen: set[int]) -> Iterator[tuple[str, nn.Module]]:
    if id(module) in seen:
        return
    seen.add(id(module))
    yield name, module
    for each, child in _children(module).items():
        yield from _walk(_joined(name, each), child, seen)


def _children(module: nn.Module) -> dict[str, nn.Module]:
    registered = {name: child for name, child in module._modules.items() if child is not None}
    if not is_layer(module):
        return registered
    attributes = {id(child): name for name, child in registered.items()}
    found: dict[str, nn.Module] = {}
    for child in _within(module):
        name = attributes.get(id(child), child.name)
        while name in found:
            name += "_"
        found[name] = child
    others = {name: child for name, child in registered.items() if not is_layer(child)}
    others.pop(_PARAMETERS, None)
    return found | others


def _within(module: Any) -> list[Any]:
    """The layers directly within a layer."""
    return list(module._flatten_layers(include_self=False, recursive=False)) if is_layer(module) else []


def _parameters(module: nn.Module) -> list[nn.Parameter]:
    own = module._modules.get(_PARAMETERS)
    return [] if own is None else list(own.parameters())


def _joined(name: str, child: str) -> str:
    return f"{name}.{child}" if name else child
