"""Finds views that give a tensor the sizes of a transpose, and so mix samples, positions or classes.

The evidence is the views that the live training recorded; or, where the loss has one, the gradients at the output.
"""

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
"""Smallest size of a dimension that tells a transpose: smaller sizes may be equal by chance."""

CANCELS, DOES_NOT_CANCEL = 1e-4, 1e-2
"""Largest sum of a softmax's gradients over the dimension that it goes over, and least sum over another one, both over
the largest gradient."""


OF_VIEW = 4
"""Where the numbers of an `Operation` of the kind `cancelling` have the sums over the second dimension of a view."""


def view_for_transpose(evidence: Evidence) -> Iterator[Finding]:
    """A view gives a tensor the sizes that a transpose would, but keeps the order of its elements."""
    yield from _in_loss(evidence)
    yield from _of_places_in_loss(evidence)
    samples = _samples(evidence)
    reported: set[str] = set()
    views = [*operations(evidence, "view")]
    of_module: dict[str, set[tuple[Sizes, Sizes]]] = {}
    for _, view in views:
        of_module.setdefault(view.module, set()).add((view.before, view.after))
    for row, view in views:
        if view.module in reported or not _mixes(view.before, view.after, samples=samples):
            continue
        if _splits_and_joins(view.before, view.after) or _shifts(view.before, view.after, of_module[view.module]):
            continue
        reported.add(view.module)
        what = "samples" if _moves_samples(view.before, view.after, samples=samples) else "positions"
        yield finding(
            evidence,
            "view-for-transpose",
            "warning",
            at=view.module,
            rows=[row],
            numbers={"dimensions": len(view.after)},
            text=f"In {named(view.module)}, `view` or `reshape` gives a tensor {_sizes(view.before)} the sizes "
            f"{_sizes(view.after)}. That keeps the order of the elements, so it mixes different {what}, which a "
            "`transpose` would not.",
            advice="Use `transpose` or `permute` to move a dimension, and `view` or `reshape` only to split one or to "
            "join neighbours.",
        )


def _in_loss(evidence: Evidence) -> Iterator[Finding]:
    """Report a loss whose gradients at `[samples, classes, ...]` are those of a softmax over neighbours in memory.

    It has to go over as many elements as there are classes, and the gradients must not sum to zero over the classes.
    """
    flat = [(row, numbers[0]) for row, numbers in numbers_of(evidence, "flat")]
    others = [numbers for _, numbers in numbers_of(evidence, "cancelling")]
    places = evidence.places
    root = places.root
    shape = root.outputs[0].shape if root is not None and root.outputs else ()
    makers = [call for call in places.calls if call.outputs and call.outputs[0].shape == shape]
    layers = [places.class_of(call.module) for call in makers]
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
        text=f"The loss takes the model's output {_sizes([size or -1 for size in shape])} for rows of {shape[1]} "
        "classes with a `view` or `reshape`. That keeps the order of the elements, so each row has neighbouring places "
        "of one class, as the gradients show, and not the classes of one place.",
        advice="Use `output.permute(0, 2, 3, 1).reshape(-1, classes)`, or hand `[n, classes, h, w]` to "
        "`cross_entropy` as it is.",
    )


def _of_places_in_loss(evidence: Evidence) -> Iterator[Finding]:
    """Report a loss that takes `[samples, length, classes]` for `[samples, classes, length]` with a view.

    The gradients then sum to zero over the second dimension of such a view, and not over the classes.
    """
    seen = [(row, numbers) for row, numbers in numbers_of(evidence, "cancelling") if len(numbers) > OF_VIEW]
    if len(seen) < LEAST_ROWS or any(numbers[1] == numbers[3] for _, numbers in seen):
        return
    if any(numbers[OF_VIEW] > CANCELS or min(numbers[0], numbers[2]) < DOES_NOT_CANCEL for _, numbers in seen):
        return
    _, numbers = seen[0]
    length, classes = (int(numbers[at]) for at in (1, 3))
    yield finding(
        evidence,
        "view-for-transpose",
        "warning",
        at="",
        rows=[row for row, _ in seen],
        numbers={"classes": classes, "length": length},
        text=f"The loss takes the model's output `[n, {length}, {classes}]` for `[n, {classes}, {length}]` with a "
        "`view` or `reshape`. That keeps the order of the elements, so the gradients show a softmax over elements of "
        "several places, and not over the classes of one place.",
        advice="Use `output.transpose(1, 2)`, or `output.reshape(-1, classes)` with `targets.reshape(-1)`.",
    )


def _shifts(before: Sizes, after: Sizes, views: set[tuple[Sizes, Sizes]]) -> bool:
    """Whether a view shifts each row by one more than the last on purpose, as for scores of relative positions.

    Then it swaps rows and columns whose numbers differ by one; or another one of the `views` of the module reverses it,
    with some rows or columns less.
    """
    moved = [at for at, sizes in enumerate(zip(before, after, strict=False)) if sizes[0] != sizes[1]]
    if len(before) == len(after) and len(moved) == 2 and moved[1] == moved[0] + 1:
        rows, columns = (before[at] for at in moved)
        if abs(rows - columns) == 1 and after[moved[0]] == columns:
            return True
    return any(
        (_has_less(other, after) and _has_less(result, before))
        or (_has_less(after, other) and _has_less(before, result))
        for other, result in views
    )


def _has_less(sizes: Sizes, others: Sizes) -> bool:
    """Whether one of `sizes` is smaller than in `others`, and all the rest are equal."""
    changes = [other - size for size, other in zip(sizes, others, strict=False) if size != other]
    return len(sizes) == len(others) and len(changes) == 1 and changes[0] > 0


def _samples(evidence: Evidence) -> int:
    """How many samples the model is given; 0 if that is not known."""
    rows = rows_with(evidence, lambda facts: bool(facts.operations))
    return (facts_at(evidence, rows[0]).batch_size or 0) if rows else 0


def _mixes(before: Sequence[int], after: Sequence[int], *, samples: int) -> bool:
    """Whether a view from the sizes `before` to `after` stands for a transpose, and so mixes elements.

    Sizes that are multiples of each other may also be those of dimensions that are split or joined on purpose.
    """
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
    if len(old) == 3 or old[:-2] == new[:-2]:
        return new[:-2] == old[:-2] and old[-2] % old[-1] > 0 and old[-1] % old[-2] > 0
    return len(old) > 3


def _splits_and_joins(old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether a view only splits sizes into several, and joins neighbours to one, so that equal sizes are chance.

    The strides that `old` and `new` have in common part both into groups of neighbouring sizes with equal products. In
    each group, one of both has to have a single size.
    """
    reversed_sizes = ([size for size in reversed(sizes) if size != 1] for sizes in (old, new))
    first, second = (set(accumulate(sizes, mul)) for sizes in reversed_sizes)
    groups = pairwise([0, *sorted(first & second)])
    return all(min(sum(low < stride <= high for stride in of) for of in (first, second)) == 1 for low, high in groups)


def _moves_many_channels(old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether a view moves the channels of images to the end, or back, and there are more than a few of them."""
    image = old if len(old) == 4 else new
    return (moves_channels(old, new) or moves_channels(new, old)) and _many(image[1])


def _moves_samples(before: Sequence[int], after: Sequence[int], *, samples: int) -> bool:
    """Whether a view makes the samples, which are the second dimension, the first one, or the other way round.

    For the latter, there are three dimensions, and neither of the two sizes is a multiple of the other: samples may be
    grouped, or parts of them joined, on purpose.
    """
    old, new = ([size for size in sizes if size != 1] for sizes in (before, after))
    if len(old) < 3 or samples < 2:
        return False
    if old[1] == samples == new[0] and old[0] % samples > 0:
        return True
    is_swapped = len(old) == 3 and old[0] == samples == new[1] and new == [old[1], old[0], old[2]]
    return is_swapped and old[0] % old[1] > 0 and old[1] % old[0] > 0


def _many(size: int) -> bool:
    return size >= LEAST_POSITIONS


def _sizes(sizes: Sequence[int]) -> str:
    return f"`[{', '.join(map(str, sizes))}]`"
