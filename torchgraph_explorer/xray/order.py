"""The modules of a model in the order of execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchgraph_explorer.schema import ModuleGraph


def execution_order(modules: Iterable[str], graphs: Sequence[ModuleGraph]) -> list[str]:
    """`modules` in the order of their first calls, each before the modules inside it.

    A module that only later graphs call stands behind the one that is called before it. Modules that are not called
    stand behind the first module around them that is there.
    """
    order: list[str] = []
    for graph in graphs:
        _insert(order, list(dict.fromkeys(call.module for call in graph.calls)))
    for name in modules:
        if name not in order:
            _insert(order, [_around(name, order), name])
    wanted = set(modules)
    return [name for name in dict.fromkeys(order) if name in wanted]


def _insert(order: list[str], names: Sequence[str | None]) -> None:
    known, at = set(order), 0
    for name in names:
        if name is None:
            at = len(order)
        elif name in known:
            at = order.index(name) + 1
        else:
            order.insert(at, name)
            known.add(name)
            at += 1


def _around(name: str, order: Sequence[str]) -> str | None:
    """The last module of `order` that is inside the same module, or that module."""
    while name:
        name = name.rpartition(".")[0]
        inside = [one for one in order if one == name or one.startswith(f"{name}." if name else "")]
        if inside:
            return inside[-1]
    return None
