"""The modules of a model in the order of execution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchgraph_explorer.schema import ModuleGraph


def execution_order(modules: Iterable[str], graphs: Sequence[ModuleGraph]) -> list[str]:
    """`modules` in the order of their first calls, each before the modules inside it.

    A module that only later graphs call stands behind the one that is called before it. Modules that are not called
    stand behind the last one that is inside the same module as they are, or behind that one.

    Takes time in proportion to the number of names, and the levels in them.
    """
    chain = _Chain()
    for graph in graphs:
        _insert(chain, (call.module for call in graph.calls))
    ends = _Ends(chain)
    for name in modules:
        if name not in chain:
            chain.put(name, behind=ends.add(name))
    wanted = set(modules)
    return [name for name in chain if name in wanted]


class _Chain:
    """Names in an order, into which others can be put anywhere."""

    def __init__(self) -> None:
        self._next: dict[str | None, str | None] = {None: None}

    def __contains__(self, name: str) -> bool:
        return name in self._next

    def __iter__(self) -> Iterator[str]:
        name = self._next[None]
        while name is not None:
            yield name
            name = self._next[name]

    def put(self, name: str, *, behind: str | None) -> None:
        """`name` is new. It goes to the front where it is `behind` None."""
        self._next[name], self._next[behind] = self._next[behind], name


def _insert(chain: _Chain, names: Iterable[str]) -> None:
    behind = None
    for name in dict.fromkeys(names):
        if name not in chain:
            chain.put(name, behind=behind)
        behind = name


class _Ends:
    """For each module, which name in a chain is the last one that is its own or inside it."""

    def __init__(self, names: Iterable[str]) -> None:
        self._numbers: dict[tuple[int, str], int] = {}
        self._last = {number: name for name in names for number in self._around(name)}

    def add(self, name: str) -> str | None:
        """A new name; returns which one it goes behind."""
        numbers = self._around(name)
        outer = next((at for at in reversed(range(len(numbers) - 1)) if numbers[at] in self._last), 0)
        behind = self._last.get(numbers[outer])
        self._last |= {
            number: name
            for at, number in enumerate(numbers)
            if at > outer or self._last.get(number) == behind  # the others end further back
        }
        return behind

    def _around(self, name: str) -> list[int]:
        """A number for the model, each module around `name`, and itself: their names may be very long together."""
        numbers = [0]
        for part in name.split(".") if name else ():
            numbers.append(self._numbers.setdefault((numbers[-1], part), len(self._numbers) + 1))
        return numbers
