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
    known = set(order)
    for name in modules:
        if name not in known:
            order.insert(_place(name, order), name)
            known.add(name)
    wanted = set(modules)
    return [name for name in dict.fromkeys(order) if name in wanted]


def _insert(order: list[str], names: Sequence[str]) -> None:
    known, at = set(order), 0
    for name in names:
        if name in known:
            at = order.index(name) + 1
        else:
            order.insert(at, name)
            known.add(name)
            at += 1


def _place(name: str, order: Sequence[str]) -> int:
    """Where `name` goes: behind the last module of `order` that is inside the same module as it, or behind that one."""
    while name:
        name = name.rpartition(".")[0]
        inside = f"{name}." if name else ""
        for at in range(len(order) - 1, -1, -1):  # the last is sought: most are near the end
            if order[at] == name or order[at].startswith(inside):
                return at + 1
    return len(order)
