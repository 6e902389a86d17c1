"""Finds functions along the wrong dimension: a softmax over places, pixels or queries, and positions along the samples.

The evidence is what the live training saw: over which dimensions the model's output is normalised, and operations
between the modules.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import numbers_of, operations
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named
from torchgraph_explorer.schema import Shape

SEVERAL = 0.1
"""Least share of the samples whose labels do not sum to one, at each step, if samples have several labels or none."""

TWO_SIZES = 4
"""How many numbers an `Operation` of the kind `normalised` has for an output `[samples, classes]`."""

CROSSWISE = 1e-3
"""Least mean distance from 1 of sums of an attention's weights over the keys. It is less where weights are normalised
over both queries and keys."""

HEADED = 3
"""The dimension of the keys where there are heads: `[samples, heads, queries, keys]`."""

NORMALISED, OFF = 1e-3, 1e-2
"""Sums of probabilities, or logarithms of sums of their exponentials, are at most so far from 1 or 0 over a dimension
that is normalised, and at least so far over one that is not."""


def softmax_wrong_dimension(evidence: Evidence) -> Iterator[Finding]:
    """The model's output sums to one over places, not classes; or attention does over queries or heads, not keys."""
    yield from _crosswise(evidence)
    seen = numbers_of(evidence, "normalised")
    shape, classes = _classes(evidence)
    if len(seen) < LEAST_ROWS or shape is None or len(shape) < 3 or (shape[classes] or 0) < 2:
        return
    found = [_over(numbers, classes) for _, numbers in seen]
    if len({*found}) != 1 or found[0] is None:
        return
    dimension, size = found[0], shape[found[0]]
    yield finding(
        evidence,
        "softmax-wrong-dimension",
        "warning",
        at="",
        rows=[row for row, _ in seen],
        numbers={"dimension": dimension, "of_classes": classes},
        text=f"The model's output {[*shape]} sums to one over dimension {dimension}"
        f"{f', of {size},' if size else ''} and not over the {shape[classes]} classes, which are dimension {classes}: "
        "a softmax has the wrong dimension, so places compete with each other instead of classes.",
        advice=f"Give the softmax or log_softmax `dim={classes}`. If the loss applies a softmax, as `cross_entropy` "
        "does, remove it.",
    )


def _crosswise(evidence: Evidence) -> Iterator[Finding]:
    """Report each module whose attention sums to one over another dimension than the keys."""
    reported: set[str] = set()
    for row, attention in operations(evidence, "crosswise"):
        dimension, off = int(attention.numbers[0]), attention.numbers[1]
        if attention.module in reported or not off > CROSSWISE:
            continue
        reported.add(attention.module)
        last = len(attention.before) - 1
        what = "the queries" if dimension == last - 1 else "the heads" if last == HEADED else "other rows"
        yield finding(
            evidence,
            "softmax-wrong-dimension",
            "warning",
            at=attention.module,
            rows=[row],
            numbers={"dimension": dimension, "of_keys": last},
            text=f"In {named(attention.module)}, the weights of attention {[*attention.before]} sum to one over "
            f"dimension {dimension}, {what}, and are multiplied by the values over dimension {last}, the keys. What a "
            "query gets is not a mean of the values, and depends on the other queries.",
            advice="Give the softmax `dim=-1`.",
        )


def softmax_for_several(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs are probabilities that sum to one over the classes, but samples have several labels."""
    seen = numbers_of(evidence, "several")
    normalised = [numbers for _, numbers in numbers_of(evidence, "normalised")]
    if len(seen) < LEAST_ROWS or not all(len(off) == TWO_SIZES and off[3] < NORMALISED for off in normalised):
        return
    shares = [numbers[1] for _, numbers in seen]
    if max(numbers[0] for _, numbers in seen) > OFF or min(shares) < SEVERAL:
        return
    yield finding(
        evidence,
        "softmax-before-loss",
        "warning",
        at="",
        rows=[row for row, _ in seen],
        numbers={"share": min(shares)},
        text="The model's outputs are the probabilities of a softmax, which sum to one, but the loss is a binary cross "
        f"entropy, and {min(shares):.0%} of the samples or more have several labels, or none. The model cannot give "
        "such answers.",
        advice="Leave out the softmax, and use `binary_cross_entropy_with_logits`.",
    )


def _over(numbers: tuple[float, ...], classes: int) -> int | None:
    """The only dimension over which an output is normalised; None if there are several, or it is that of the classes.

    `numbers` are those of an `Operation` of the kind `normalised`, `classes` is the dimension of the classes.
    """
    for first in (0, 1):  # as logarithms of probabilities, and as probabilities
        off = numbers[first::2]
        near = [dimension for dimension, distance in enumerate(off) if distance < NORMALISED]
        if len(near) == 1 and near[0] != classes < len(off) and off[classes] > OFF:
            return near[0]
    return None


def _classes(evidence: Evidence) -> tuple[Shape | None, int]:
    """The shape of the model's output, and the dimension of its classes, which is where the last layer has its outputs.

    None and 0 if the model's output has another shape than that layer's.
    """
    places = evidence.places
    outputs = [info.shape for call in places.calls if not call.module and not call.call for info in call.outputs]
    layers = ((places.class_of(call.module), call) for call in reversed(places.calls))
    for name, call in layers:
        if name == "Linear" or name.startswith("Conv"):
            shape = call.outputs[0].shape if call.outputs else ()
            return (shape, len(shape) - 1 if name == "Linear" else 1) if shape in outputs[:1] else (None, 0)
    return None, 0


def positions_over_batch(evidence: Evidence) -> Iterator[Finding]:
    """A table of positions `[rows, 1, features]` is added to a tensor `[samples, places, features]`.

    The places are the dimension whose size is the number of queries of an attention.
    """
    lengths = {attention.before[0] for _, attention in operations(evidence, "attention") if attention.before}
    for row, addition in operations(evidence, "position"):
        samples, length = addition.before[:2]
        if length not in lengths or samples in lengths:
            continue
        yield finding(
            evidence,
            "positions-over-batch",
            "warning",
            at=addition.module,
            rows=range(row, len(evidence)),
            numbers={"samples": samples, "length": length},
            text=f"{named(addition.module)} adds the first {samples} rows of a table `[rows, 1, features]` to a tensor "
            f"{[*addition.before]} of {samples} samples with {length} places: each sample gets the position of its "
            "number in the batch, and all its places get the same one.",
            advice="Add rows of the length of the sequence: for a table `[1, rows, features]`, `table[:, :x.size(1)]`. "
            "The table of torch's tutorial is for `[length, samples, features]`.",
        )
        return
    yield from numbered_in_batch(evidence)


def numbered_in_batch(evidence: Evidence) -> Iterator[Finding]:
    """An embedding is given the numbers 0, 1, … of the samples in their batch, in a model of sequences of tokens.

    It has more rows than that, and the tokens of a sample are another number than the samples. Tokens may also be
    `[length, samples]`: then attention goes over as many places as there are numbers.
    """
    places = evidence.places
    root = places.root
    lengths = {one.before[0] for _, one in operations(evidence, "attention") if one.before}
    sizes = {one.shape[:2] for one in root.inputs if "int" in one.dtype and len(one.shape) == 2} if root else set()
    if len(sizes) != 1:
        return
    samples, length = sizes.pop()
    one_for_each_sample = ([(samples,)], [(samples, 1)])
    for call in places.calls:
        if places.class_of(call.module) != "Embedding":
            continue
        if [info.shape for info in call.inputs] not in one_for_each_sample:
            continue
        rows = places.option(call.module, "num_embeddings") or _rows_of(evidence, call.module)
        if samples is None or samples in {1, length, *lengths} or int(rows or 0) <= samples:
            continue
        column = evidence.find(call.module, call.call, "input", call.inputs[0].path)
        if column is None or not _counts_from_zero(evidence, column, samples):
            continue
        yield finding(
            evidence,
            "positions-over-batch",
            "warning",
            at=call.module,
            rows=range(len(evidence)),
            numbers={"samples": samples, "length": length or 0},
            text=f"{named(call.module)} is given the numbers 0 to {samples - 1}, one for each of the {samples} samples "
            f"of a batch, and not for each of the {length or ''} places: each sample gets the position of its number "
            "in the batch, and all its places the same.",
            advice="Make the positions of the length of the sequence, `torch.arange(x.size(1))`.",
        )
        return


def _rows_of(evidence: Evidence, module: str) -> str | None:
    """The number of rows of an embedding's weights, in digits; None if they are not recorded."""
    column = evidence.find(module, None, "param", "weight")
    info = None if column is None else evidence.places.tensor(evidence.series[column])
    return str(info.shape[0]) if info is not None and info.shape else None


def _counts_from_zero(evidence: Evidence, column: int, samples: int) -> bool:
    """Whether a tensor has the statistics of the numbers from 0 to `samples - 1` at all steps."""
    rows = np.flatnonzero(evidence.is_there[:, column])
    expected = {"min": 0, "max": samples - 1, "mean": (samples - 1) / 2, "std": np.sqrt((samples**2 - 1) / 12)}
    return len(rows) >= LEAST_ROWS and all(
        np.allclose(evidence.column(name, column)[rows], value, rtol=1e-4, atol=1e-6)
        for name, value in expected.items()
    )
