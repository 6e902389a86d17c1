"""Finds a softmax over the samples of the batch, where one over keys or classes was meant.

The evidence is the mean of the tensors that it gives, which is one over the number of samples; the gradients at the
logits, where the loss applies it; and the recorded operations, where it is between the modules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.dimensions import NORMALISED, OFF, TWO_SIZES
from torchgraph_explorer.findings.rules.facts import facts_at, numbers_of, operations
from torchgraph_explorer.findings.rules.outputs import (
    EQUAL,
    WITHIN,
    TrainedOutput,
    is_softmax,
    lie_within,
    of_norm_one,
    samples_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows, finding, named
from torchgraph_explorer.schema import Call, Role, TensorInfo

LEAST_SAMPLES = 3
"""Fewest samples whose mean of one over their number is no chance."""

USUAL = 0.5
"""Least share of the steps whose batch size is the length of a dimension, if that is the samples'."""

ERRORS, MOST_ERROR = 4.0, 0.1
"""How many standard errors the mean of sampled elements may be off by, and the most that these may be together, as a
share of the mean."""

MOST_SPREAD, NEAR = 0.7, 0.1
"""Largest standard deviation of logarithms of nearly equal probabilities, and how far their mean, in nats, may be from
what these would have."""


def softmax_over_batch(evidence: Evidence) -> Iterator[Finding]:
    """The model's output, or the weights of an attention, sum to one over the samples of the batch."""
    is_reported = False
    for output in trained_outputs(evidence):
        _, info, column, _ = output
        if not _has_classes(info):
            continue
        rows = None if is_softmax(evidence, column, info) else _rows_over_batch(evidence, column, info)
        rows = _rows_of_logarithms(evidence, output) if rows is None else rows
        rows = _rows_of_some_labels(evidence, output) if rows is None else rows
        if rows is not None:
            is_reported = True
            yield _report(
                evidence,
                column,
                rows,
                size=float(samples_of(evidence, info, column)[rows[0]]),
                what="The model's output",
                instead="classes",
                advice="Give the softmax the dimension of the classes, `dim=1` or `dim=-1`. If the loss applies a "
                "softmax, as `cross_entropy` does, remove it.",
            )
    if not is_reported:
        of_loss = [*_in_loss(evidence)]
        is_reported = bool(of_loss)
        yield from of_loss
    of_attention = [*_of_attention(evidence)]
    yield from of_attention
    if not is_reported and not of_attention:
        yield from _by_function(evidence)


def _in_loss(evidence: Evidence) -> Iterator[Finding]:
    """Report a loss whose gradients at logits `[samples, classes]` are those of a softmax over the samples.

    Where all logits are equal, they may be those of a softmax over the classes as well; that is not reported.
    """
    seen = [(row, numbers[0]) for row, numbers in numbers_of(evidence, "over")]
    over_classes = [numbers[0] for _, numbers in numbers_of(evidence, "weights")]
    if len(seen) < LEAST_ROWS or max(off for _, off in seen) > NORMALISED or max(over_classes, default=0) < OFF:
        return
    yield finding(
        evidence,
        "softmax-over-batch",
        "warning",
        at="",
        rows=[row for row, _ in seen],
        numbers={"off": max(off for _, off in seen)},
        text="The loss applies a softmax to the model's output that goes over the samples of the batch, not over the "
        "classes, as its gradients show: the samples compete with each other.",
        advice="Give the softmax or log_softmax of the loss `dim=1` or `dim=-1`, or use `cross_entropy`.",
    )


def _by_function(evidence: Evidence) -> Iterator[Finding]:
    """Report the first softmax between the modules that goes over the samples of the batch.

    A softmax over the first dimension may well be meant where that is the places of one sequence, or the parts of one
    whole, such as the nodes of a graph. So the model has to give an output `[samples, classes]`, all its inputs have to
    begin with the dimension of the samples, and they have to change from step to step.
    """
    root = evidence.places.root
    if root is None or not root.outputs or not _varies(evidence, root):
        return
    for row, softmax in operations(evidence, "softmax"):
        samples, others = softmax.before[0], softmax.before[1:]
        if samples < LEAST_SAMPLES or not _is_batch_size(evidence, samples, root=root, row=row):
            continue
        if math.prod(others) < 2 or samples in others:
            continue
        yield finding(
            evidence,
            "softmax-over-batch",
            "warning",
            at=softmax.module,
            rows=[row],
            numbers={"samples": samples},
            text=f"In {named(softmax.module)}, a softmax of a tensor {[*softmax.before]} goes over the {samples} "
            "samples of the batch: they compete with each other, and what each of them gets depends on the others.",
            advice="Give the softmax the dimension of the places or classes, `dim=1` or `dim=-1`.",
        )
        return


def _is_batch_size(evidence: Evidence, size: int, *, root: Call, row: int) -> bool:
    """Whether `size` is the number of samples at a row, by the inputs and the output of the model's call `root`.

    It has to be the first dimension of each input, and not the second; the first dimension of an output of two; and the
    batch size of most steps, as the parts of one whole are seldom as many as those of another.
    """
    batch = facts_at(evidence, row).batch_size  # stands in where sizes differ between steps, as of a last batch
    inputs = [
        info.shape if info.shape[0] is not None else (batch, *info.shape[1:]) for info in root.inputs if info.shape
    ]
    answers = root.outputs[0].shape
    return (
        bool(inputs)
        and all(shape[0] == size != (*shape, 1)[1] for shape in inputs)
        and len(answers) == 2
        and answers[0] in {None, size}
        and _is_usual(evidence, size)
    )


def _is_usual(evidence: Evidence, samples: int) -> bool:
    """Whether at least a share `USUAL` of the steps has this batch size."""
    sizes = [facts.batch_size for facts in evidence.training if facts is not None and facts.batch_size]
    return sizes.count(samples) >= USUAL * len(sizes)


def _varies(evidence: Evidence, root: Call) -> bool:
    """Whether any input of the model's call `root` differs between steps, by its mean."""
    columns = [evidence.find(root.module, root.call, "input", info.path) for info in root.inputs]
    return any(len(np.unique(evidence.column("mean", column))) > 1 for column in columns if column is not None)


def _rows_of_logarithms(evidence: Evidence, output: TrainedOutput) -> Rows | None:
    """The rows with an output `[samples, classes]` of logarithms of probabilities that sum to one over the samples.

    None if the output is something else. The gradient of each sample has norm 1, as `nll_loss` gives it. Logarithms of
    n nearly equal probabilities that sum to one have the mean `-log(n) - variance / 2`.
    """
    _, info, column, norms = output
    if len(info.shape) != 2 or np.nanmax(evidence.column("max", column), initial=0) > 0:
        return None
    size = samples_of(evidence, info, column)
    rows = of_norm_one(evidence, norms, size)
    if len(rows) < LEAST_ROWS or size[rows[0]] < LEAST_SAMPLES:
        return None
    mean, std = (float(evidence.column(name, column)[rows[0]]) for name in ("mean", "std"))
    off, off_classes = (abs(mean + std**2 / 2 + np.log(number)) for number in (size[rows[0]], info.shape[1] or 1))
    is_over_batch = std < MOST_SPREAD and off < NEAR and off_classes > 3 * NEAR
    return rows if is_over_batch else None


def _rows_of_some_labels(evidence: Evidence, output: TrainedOutput) -> Rows | None:
    """The same as `_rows_of_logarithms` where only some samples have labels, as the nodes of a graph.

    That the exponentials sum to one over the samples was measured in the first steps. There have to be more labels than
    classes: a loss may choose one sample for each class on purpose.
    """
    _, info, column, norms = output
    seen = [numbers for _, numbers in numbers_of(evidence, "normalised")]
    is_over_samples = all(len(off) == TWO_SIZES and off[0] < NORMALISED and off[2] > OFF for off in seen)
    if len(info.shape) != 2 or len(seen) < LEAST_ROWS or not is_over_samples:
        return None
    lengths = evidence.column("mean", norms) * samples_of(evidence, info, column)
    labels = evidence.column("sampled", norms) - evidence.column("zeros", norms)
    rows = np.flatnonzero(np.isfinite(lengths))
    is_label = np.abs(lengths[rows] - 1) < EQUAL
    return rows if is_label.all() and (labels[rows] > (info.shape[1] or 0)).all() else None


def _has_classes(info: TensorInfo) -> bool:
    """Whether there are several numbers a sample. A single weight for each sample may well sum to one over these."""
    return len(info.shape) > 1 and info.shape[1] != 1


def _of_attention(evidence: Evidence) -> Iterator[Finding]:
    """Report each attention that sums to one over the samples, at the first leaf module that has its weights.

    A leaf module after that one, such as a dropout, has the same weights, and is not reported.
    """
    places, with_weights = evidence.places, set[int]()
    for number, call in enumerate(places.calls):
        found = _attention_over_batch(evidence, number) if places.is_leaf(number) else None
        if found is None:
            continue
        column, info, rows = found
        way = "goes into" if evidence.series[column].role == "input" else "comes out of"
        if places.producer(number) not in with_weights:
            yield _report(
                evidence,
                column,
                rows,
                size=float(samples_of(evidence, info, column)[rows[0]]),
                what=f"The attention that {way} {named(call.module)}",
                instead="keys",
                advice="Give the softmax `dim=-1`. Without a `dim`, `nn.Softmax` takes the first dimension of a "
                "tensor of three.",
            )
        with_weights.add(number)


def _attention_over_batch(evidence: Evidence, number: int) -> tuple[int, TensorInfo, Rows] | None:
    """The first input or output of a call that is an attention which sums to one over the samples: column and rows."""
    call = evidence.places.calls[number]
    tensors: list[tuple[Role, TensorInfo]] = [*(("input", info) for info in call.inputs)]
    tensors += [("output", info) for info in call.outputs]
    for role, info in tensors:
        column = evidence.find(call.module, call.call, role, info.path)
        if column is None or not _is_attention(evidence, number, info):
            continue
        rows = _rows_over_batch(evidence, column, info)
        if rows is not None:
            return column, info, rows
    return None


def _report(
    evidence: Evidence, column: int, rows: Rows, *, size: float, what: str, instead: str, advice: str
) -> Finding:
    """The finding that a tensor sums to one over the samples, `size` of them, `instead` of its classes or keys.

    `what` is how the text calls the tensor.
    """
    return finding(
        evidence,
        "softmax-over-batch",
        "warning",
        at=evidence.series[column],
        rows=rows,
        numbers={"samples": size, "mean": float(evidence.column("mean", column)[rows[0]])},
        text=f"{what} sums to one over the {size:.0f} samples of the batch, not over the {instead}: a softmax has the "
        "wrong dimension, so the samples compete with each other.",
        advice=advice,
    )


def _is_attention(evidence: Evidence, number: int, info: TensorInfo) -> bool:
    """Whether a tensor in a call has the shape of an attention's weights, `[samples, ..., queries, keys]`.

    There have to be as many queries as keys, and not as many as samples; and an input of a call around this one has to
    be a sequence of that length for each sample. A softmax over the right dimension of `[queries, keys, samples,
    heads]` may have as many samples as heads: its first two dimensions are then equal, too, and it does not count.
    """
    shape = info.shape
    if len(shape) > 3 and shape[0] == shape[1]:
        return False
    if len(shape) < 3 or "float" not in info.dtype or shape[-1] is None or shape[-1] != shape[-2]:
        return False
    if shape[0] == shape[-1] or shape[-1] < LEAST_SAMPLES:
        return False
    around = [evidence.places.calls[one] for one in evidence.places.ancestors(number)]
    return any(_has_sequence(call, (shape[0], shape[-1])) for call in around)


def _has_sequence(call: Call, sizes: tuple[int | None, int]) -> bool:
    """Whether a call is given features `[samples, length, features]`, or tokens `[samples, length]`, of these sizes."""
    return any(
        info.shape[:2] == sizes and len(info.shape) == (3 if "float" in info.dtype else 2) for info in call.inputs
    )


def _rows_over_batch(evidence: Evidence, column: int, info: TensorInfo) -> Rows | None:
    """The rows with a tensor whose elements are probabilities that sum to one over the samples, and are not all equal.

    None if it has others at any row. The mean then is one over the number of samples. It may be off by `ERRORS`
    standard errors where only some elements were measured. It must not also be that of probabilities that sum to one
    over the last dimension.
    """
    size = samples_of(evidence, info, column)
    means, spreads = (evidence.column(name, column).astype(np.float64) for name in ("mean", "std"))
    rows = np.flatnonzero(np.isfinite(means))
    if len(rows) < LEAST_ROWS or not lie_within(evidence, column):
        return None
    count, sampled = (evidence.column(name, column)[rows] for name in ("count", "sampled"))
    errors = np.where(count == sampled, 0.0, ERRORS * spreads[rows] * size[rows] / np.sqrt(sampled))
    off, off_last = (np.abs(means[rows] * one - 1) for one in (size[rows], info.shape[-1] or 1))
    is_over_batch = (off < WITHIN + errors) & (off_last > 3 * (WITHIN + errors)) & (errors < MOST_ERROR)
    return rows if is_over_batch.all() and (size[rows] >= LEAST_SAMPLES).all() and (spreads[rows] > 0).any() else None
