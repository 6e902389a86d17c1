"""Views that give a tensor the sizes of a transpose, and so mix what they were to put in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import mul
from typing import TypeAlias

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import facts_at, numbers_of, operations, rows_with
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named
from torchgraph_explorer.shapes import joins_around, moves_channels

Sizes: TypeAlias = "tuple[int, ...]"

LEAST_POSITIONS = 4
"""Of fewer, sizes may be the same by chance."""

CANCELS, DOES_NOT_CANCEL = 1e-4, 1e-2
"""Sum of the gradients of a softmax over what it goes over, and that over something else, over the largest gradient."""


def view_for_transpose(evidence: Evidence) -> Iterator[Finding]:
    """A view keeps the order of the elements, whatever sizes it gives: it moves no dimension to another place."""
    yield from _in_loss(evidence)
    samples = _samples(evidence)
    told: set[str] = set()
    views = [*operations(evidence, "view")]
    of_module: dict[str, set[tuple[Sizes, Sizes]]] = {}
    for _, one in views:
        of_module.setdefault(one.module, set()).add((one.before, one.after))
    for row, one in views:
        if one.module in told or not _mixes(one.before, one.after, samples=samples):
            continue
        if _splits_and_joins(one.before, one.after) or _shifts(one.before, one.after, of_module[one.module]):
            continue
        told.add(one.module)
        what = "samples" if _moves_samples(one.before, one.after, samples=samples) else "positions"
        yield finding(
            evidence,
            "view-for-transpose",
            "warning",
            at=one.module,
            rows=[row],
            numbers={"dimensions": len(one.after)},
            text=f"In {named(one.module)}, `view` or `reshape` gives a tensor {_sizes(one.before)} the sizes "
            f"{_sizes(one.after)}. That keeps the order of the elements, so it mixes different {what}, which a "
            "`transpose` would not.",
            advice="Use `transpose` or `permute` to move a dimension, and `view` or `reshape` only to split one or to "
            "join neighbours.",
        )


def _in_loss(evidence: Evidence) -> Iterator[Finding]:
    """The gradients at `[samples, classes, ...]` are those of a softmax over neighbours in memory, and not classes."""
    flat = [(row, numbers[0]) for row, numbers in numbers_of(evidence, "flat")]
    others = [numbers for _, numbers in numbers_of(evidence, "cancelling")]
    places = evidence.places
    root = places.root
    shape = root.outputs[0].shape if root is not None and root.outputs else ()
    layers = [places.class_of(one.module) for one in places.calls if one.outputs and one.outputs[0].shape == shape]
    is_of_channels = any(name.startswith("Conv") for name in layers) and (shape[1:2] or (0,))[0] not in {None, 0, 1}
    if len(flat) < LEAST_ROWS or not is_of_channels or max(off for _, off in flat) > CANCELS:
        return
    if any(
        numbers[0] < DOES_NOT_CANCEL or (numbers[2] < DOES_NOT_CANCEL and numbers[1] % numbers[3] == 0)
        for numbers in others
    ):
        return
    yield finding(
        evidence,
        "view-for-transpose",
        "warning",
        at="",
        rows=[row for row, _ in flat],
        numbers={"classes": shape[1] or 0},
        text=f"The loss takes the model's output {_sizes([one or -1 for one in shape])} for rows of {shape[1]} classes "
        "with a `view` or `reshape`. That keeps the order of the elements, so each row has neighbouring places of one "
        "class, as the gradients show, and not the classes of one place.",
        advice="Use `output.permute(0, 2, 3, 1).reshape(-1, classes)`, or hand `[n, classes, h, w]` to "
        "`cross_entropy` as it is.",
    )


def _shifts(before: Sizes, after: Sizes, views: set[tuple[Sizes, Sizes]]) -> bool:
    """Whether rows are to be shifted, each by one more than the last, as scores of relative positions are.

    Another view takes this one back, with some rows less; or a matrix has one row more than columns, or one less.
    """
    *around, rows, columns = before
    if after == (*around, columns, rows) and abs(rows - columns) == 1:
        return True
    return any(
        (_has_less(other, after) and _has_less(result, before))
        or (_has_less(after, other) and _has_less(before, result))
        for other, result in views
    )


def _has_less(sizes: Sizes, of: Sizes) -> bool:
    """Whether one of the sizes is less, and the others are equal."""
    changes = [b - a for a, b in zip(sizes, of, strict=False) if a != b]
    return len(sizes) == len(of) and len(changes) == 1 and changes[0] > 0


def _samples(evidence: Evidence) -> int:
    """How many samples the model is given; 0 if that is not known."""
    rows = rows_with(evidence, lambda one: bool(one.operations))
    return (facts_at(evidence, rows[0]).batch_size or 0) if rows else 0


def _mixes(before: Sequence[int], after: Sequence[int], *, samples: int) -> bool:
    """Whether such sizes cannot be meant, as those of parts that are joined or split may be by chance."""
    old, new = ([size for size in sizes if size != 1] for sizes in (before, after))
    if _moves_samples(before, after, samples=samples) or _moves_many_channels(old, new):
        return True
    if len(old) == 3 and len(new) == 4:  # heads of attention, which are split
        return new[0] == old[0] and new[2] == old[1] != new[1] and new[1] * new[3] == old[2] and _many(old[1])
    if len(old) == 4 and len(new) == 3:  # or joined, or channels with what is behind the third
        is_joined = new[0] == old[0] and new[1] == old[2] and new[2] == old[1] * old[3] and old[1] % old[2] > 0
        return is_joined or (joins_around(old, new) and _many(old[2]))
    if len(old) != len(new) or sorted(old) != sorted(new) or old == new:
        return False
    if len(old) == 3:
        return new[0] == old[0] and old[1] % old[2] > 0 and old[2] % old[1] > 0
    return len(old) > 3


def _splits_and_joins(old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether each size is split into several, or joined from neighbours: that these are equal to others is chance."""
    sizes = ([size for size in reversed(of) if size != 1] for of in (old, new))
    first, second = (set(accumulate(of, mul)) for of in sizes)
    both = sorted(first & second)
    within = pairwise([0, *both])
    return all(min(sum(low < one <= high for one in of) for of in (first, second)) == 1 for low, high in within)


def _moves_many_channels(old: Sequence[int], new: Sequence[int]) -> bool:
    image = old if len(old) == 4 else new
    return (moves_channels(old, new) or moves_channels(new, old)) and _many(image[1])


def _moves_samples(before: Sequence[int], after: Sequence[int], *, samples: int) -> bool:
    """Whether the samples are the second dimension, and others have become the first."""
    old, new = ([size for size in sizes if size != 1] for sizes in (before, after))
    if len(old) < 3 or samples < 2:
        return False
    return old[1] == samples == new[0] and old[0] % samples > 0


def _many(size: int) -> bool:
    return size >= LEAST_POSITIONS


def _sizes(sizes: Sequence[int]) -> str:
    return f"`[{', '.join(map(str, sizes))}]`"
