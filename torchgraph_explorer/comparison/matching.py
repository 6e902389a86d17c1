"""What of one run stands for what of the other: modules by name, series by module, and frames by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.schema import COSTS, Series

Ints: TypeAlias = "npt.NDArray[np.int64]"
Alignment: TypeAlias = Literal["exact", "nearest", "none"]

MOST_RULES = 100
"""Rules of a rename map."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Names of modules that differ between runs.

    Attributes:
        a: Of the first run; a `*` stands for any part of a name.
        b: Of the second run, with as many `*`.
    """

    a: str
    b: str


def rename_rules(rules: Mapping[str, str] | None) -> tuple[Rule, ...]:
    """The rules that `compare` takes.

    Raises:
        OptionError: They do not map names, or a name has more `*` than the other.
    """
    given = {} if rules is None else rules
    if not isinstance(given, Mapping) or len(given) > MOST_RULES:
        raise OptionError(f"rename={rules!r:.200} does not map module names. {_ADVICE}")
    return tuple(_rule(a, b) for a, b in given.items())


def parse_rules(text: str) -> dict[str, str]:
    """The rules of a text as in the viewer: `layer1.* = stage1.*`, with newlines or semicolons between them.

    Raises:
        OptionError: Something in it is not a rule.
    """
    lines = (line.strip() for line in text.replace(";", "\n").split("\n"))
    found: dict[str, str] = {}
    for line in lines:
        if not line or line.startswith("#"):
            continue
        a, separator, b = (part.strip() for part in line.partition("="))
        if not (a and separator and b) or "=" in b:
            raise OptionError(f"{line[:200]!r} is not a rule for names of modules. Write layer1.* = stage1.*.")
        found[a] = b
    return found


_ADVICE = "Give {'layer1.*': 'stage1.*'}, with as many * on both sides."


def _rule(a: object, b: object) -> Rule:
    if not (isinstance(a, str) and isinstance(b, str)) or a.count("*") != b.count("*"):
        raise OptionError(f"rename maps {a!r:.200} to {b!r:.200}. {_ADVICE}")
    return Rule(a, b)


def module_map(ours: Iterable[str], theirs: Iterable[str], rules: Sequence[Rule]) -> dict[str, str]:
    """Which module of another run each of ours is: by a rule, else by its own name, else by a rule read backwards.

    No module of the other run is taken twice; one without a counterpart is left out. What `layer1.*` renames, `layer1`
    is, too. The viewer has the same.
    """
    mine, others = list(dict.fromkeys(ours)), set(theirs)
    given = [(rule.a, rule.b) for rule in rules]
    forwards = given + [(a[:-2], b[:-2]) for a, b in given if a.endswith(".*") and b.endswith(".*")]
    backwards = [(b, a) for a, b in forwards]
    found: dict[str, str] = {}
    for pairs in (forwards, [], backwards):
        for name in mine:
            other = name if not pairs else _renamed(name, pairs)
            if name not in found and other in others:
                found[name] = other
                others.remove(other)
    return found


def _renamed(name: str, pairs: Sequence[tuple[str, str]]) -> str:
    """`name` by the first of `pairs` whose pattern it matches; itself without one."""
    for pattern, target in pairs:
        parts = _starred(name, pattern)
        if parts is not None:
            first, *rest = target.split("*")
            return first + "".join(part + text for part, text in zip(parts, rest, strict=True))
    return name


def _starred(name: str, pattern: str) -> list[str] | None:
    """What each `*` stands for, all but the last as little as can be; None without a match."""
    first, *middle = pattern.split("*")
    if not middle:
        return [] if name == pattern else None
    last, at, found = middle.pop(), len(first), []
    for part in middle:
        place = name.find(part, at)
        if place < 0:
            return None
        found.append(name[at:place])
        at = place + len(part)
    end = len(name) - len(last)
    if not (name.startswith(first) and name.endswith(last) and end >= at):
        return None
    return [*found, name[at:end]]


@dataclass(frozen=True, slots=True)
class MatchedSeries:
    """The series of two models that stand for the same.

    Attributes:
        a: Ids in the first model, `[n]`, ascending.
        b: Ids in the second one, `[n]`.
        only_a: Ids that have no counterpart.
        only_b: Likewise.
    """

    a: Ints
    b: Ints
    only_a: Ints
    only_b: Ints

    def only(self, at: int) -> MatchedSeries:
        """One pair alone."""
        none = self.a[:0]
        return MatchedSeries(self.a[[at]], self.b[[at]], none, none)


def match_series(a: Sequence[Series], b: Sequence[Series], modules: Mapping[str, str]) -> MatchedSeries:
    """Match the series of two models; `modules` gives the second one's name for modules of the first one.

    What calls cost is left out: it differs in equal runs.
    """
    a, b = ([one for one in each if one.kind not in COSTS] for each in (a, b))
    ids = {one.key: one.id for one in b}
    found: dict[int, int] = {}
    for one in a:
        module, call, role, _, kind = one.key
        other = ids.pop((modules[module], call, role, _path(one, modules), kind), None) if module in modules else None
        if other is not None:
            found[one.id] = other
    left = [one.id for one in a if one.id not in found]
    pairs = np.array(list(found.items()), np.int64).reshape(-1, 2)
    return MatchedSeries(pairs[:, 0], pairs[:, 1], np.array(left, np.int64), np.array(sorted(ids.values()), np.int64))


def _path(one: Series, modules: Mapping[str, str]) -> str:
    """The path of the series in the other run: that of an edge names the calls at its ends, see `docs/format.md`."""
    if one.role != "edge":
        return one.path
    source, arrow, rest = one.path.partition(" -> ")
    target, space, more = rest.partition(" #")
    return "".join((_end(source, one.module, modules), arrow, _end(target, one.module, modules), space, more))


def _end(end: str, inside: str, modules: Mapping[str, str]) -> str:
    """One end of an edge within the module `inside`: a call `name#2`, `/name` for one elsewhere, or a tensor."""
    if not end or end[0] in ":@":
        return end
    name, number, call = end.partition("#")
    whole = name[1:] if name.startswith("/") else f"{inside}.{name}" if inside else name
    other, outer = modules.get(whole, whole), modules[inside]
    prefix = f"{outer}." if outer else ""
    return f"{other.removeprefix(prefix) if other.startswith(prefix) else f'/{other}'}{number}{call}"


@dataclass(frozen=True, slots=True)
class MatchedFrames:
    """The frames of two models that are compared.

    Attributes:
        a: Indices in the first model, `[n]`, ascending.
        b: Indices in the second one, `[n]`, ascending.
        steps_a: Their steps.
        steps_b: Their steps; those of `a` if `alignment` is `exact`.
        alignment: `exact`: both logged the same steps. `nearest`: they have no logged step in common, so each one of
            the model with fewer is held against the nearest of the other. `none`: one has no frames.
    """

    a: Ints
    b: Ints
    steps_a: Ints
    steps_b: Ints
    alignment: Alignment

    def __len__(self) -> int:
        return len(self.a)

    def of(self, which: npt.NDArray[np.intp]) -> MatchedFrames:
        """Some of them."""
        return MatchedFrames(self.a[which], self.b[which], self.steps_a[which], self.steps_b[which], self.alignment)


def match_frames(steps_a: Ints, steps_b: Ints) -> MatchedFrames:
    """Match the frames of two models by their steps, which ascend."""
    common, a, b = np.intersect1d(steps_a, steps_b, assume_unique=True, return_indices=True)
    if len(common):
        return MatchedFrames(a.astype(np.int64), b.astype(np.int64), common, common, "exact")
    if not (len(steps_a) and len(steps_b)):
        none = np.zeros(0, np.int64)
        return MatchedFrames(none, none, none, none, "none")
    if len(steps_a) <= len(steps_b):
        a, b = _nearest(steps_a, steps_b)
    else:
        b, a = _nearest(steps_b, steps_a)
    return MatchedFrames(a, b, steps_a[a], steps_b[b], "nearest")


def _nearest(few: Ints, many: Ints) -> tuple[Ints, Ints]:
    """The indices of `few`, and of the nearest of `many` to each; each of `many` once, with the nearest."""
    after = np.clip(np.searchsorted(many, few), 1, max(len(many) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(many) - 1)
    nearest = np.where(few - many[before] <= many[after] - few, before, after)
    order = np.lexsort((np.abs(few - many[nearest]), nearest))
    _, first = np.unique(nearest[order], return_index=True)
    kept = np.sort(order[first])
    return kept.astype(np.int64), nearest[kept].astype(np.int64)
