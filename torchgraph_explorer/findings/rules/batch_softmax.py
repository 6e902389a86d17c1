"""A softmax over the samples of the batch, where one over keys or classes was meant."""

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
"""Of so many samples on, a mean of one over their number is no chance."""

USUAL = 0.5
"""Share of the steps that have as many samples, if these are a batch."""

ERRORS, MOST_ERROR = 4.0, 0.1
"""Standard errors by which the mean of sampled elements may be off, and the most that they may come to, of the mean."""

MOST_SPREAD, NEAR = 0.7, 0.1
"""Standard deviation of logarithms of probabilities that are nearly equal; and by how much their mean may be off."""


def softmax_over_batch(evidence: Evidence) -> Iterator[Finding]:
    """The model's output, or the weights of an attention, sum to one over the samples of the batch."""
    is_told = False
    for output in trained_outputs(evidence):
        _, info, column, _ = output
        if not _has_classes(info):
            continue
        rows = None if is_softmax(evidence, column, info) else _rows_over_batch(evidence, column, info)
        rows = _rows_of_logarithms(evidence, output) if rows is None else rows
        rows = _rows_of_some_labels(evidence, output) if rows is None else rows
        if rows is not None:
            is_told = True
            yield _told(
                evidence,
                column,
                rows,
                size=float(samples_of(evidence, info, column)[rows[0]]),
                what="The model's output",
                instead="classes",
                advice="Give the softmax the dimension of the classes, `dim=1` or `dim=-1`. If the loss applies a "
                "softmax, as `cross_entropy` does, remove it.",
            )
    if not is_told:
        of_loss = [*_in_loss(evidence)]
        is_told = bool(of_loss)
        yield from of_loss
    of_attention = [*_of_attention(evidence)]
    yield from of_attention
    if not is_told and not of_attention:
        yield from _by_function(evidence)


def _in_loss(evidence: Evidence) -> Iterator[Finding]:
    """The gradients at logits `[samples, classes]` are those of a softmax over the samples, which the loss applies.

    They are not those of one over the classes, as both may be where all logits are equal.
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
    """A softmax between the modules over as many as there are samples, each of which gets an answer of its own.

    It may well be meant where the first dimension is that of the places of one sequence, or of the parts of one whole,
    such as a graph: then the model gives one answer for all of them, answers of three dimensions, takes something of
    other sizes, too, or the same at all steps.
    """
    root = evidence.places.root
    if root is None or not root.outputs or not _varies(evidence, root):
        return
    for row, one in operations(evidence, "softmax"):
        samples, others = one.before[0], one.before[1:]
        batch = facts_at(evidence, row).batch_size  # sizes that differ between steps, as of a last batch, are unknown
        sizes = [
            (batch, *tensor.shape[1:]) if tensor.shape[0] is None else tensor.shape
            for tensor in root.inputs
            if tensor.shape
        ]
        is_of_samples = all(each[0] == samples != (*each, 1)[1] for each in sizes) and bool(sizes)
        answers = root.outputs[0].shape
        if (
            samples < LEAST_SAMPLES
            or not is_of_samples
            or not _is_usual(evidence, samples)
            or len(answers) != 2
            or answers[0] not in {None, samples}
        ):
            continue
        if math.prod(others) < 2 or samples in others:
            continue
        yield finding(
            evidence,
            "softmax-over-batch",
            "warning",
            at=one.module,
            rows=[row],
            numbers={"samples": samples},
            text=f"In {named(one.module)}, a softmax of a tensor {[*one.before]} goes over the {samples} samples of "
            "the batch: they compete with each other, and what each of them gets depends on the others.",
            advice="Give the softmax the dimension of the places or classes, `dim=1` or `dim=-1`.",
        )
        return


def _is_usual(evidence: Evidence, samples: int) -> bool:
    """Whether most steps have so many samples: parts of one whole, as its points, are seldom as many as another's."""
    sizes = [one.batch_size for one in evidence.training if one is not None and one.batch_size]
    return sizes.count(samples) >= USUAL * len(sizes)


def _varies(evidence: Evidence, root: Call) -> bool:
    """Whether something that the model is given differs between steps."""
    columns = [evidence.find(root.module, root.call, "input", one.path) for one in root.inputs]
    return any(len(np.unique(evidence.column("mean", one))) > 1 for one in columns if one is not None)


def _rows_of_logarithms(evidence: Evidence, output: TrainedOutput) -> Rows | None:
    """The rows with the tensor, if it is of logarithms of probabilities that sum to one over the samples; else None.

    The loss has the gradient of `nll_loss`, 1 at each sample. Logarithms of nearly equal probabilities that sum to one
    over some number of them have minus the logarithm of this number as mean, and half of their variance less.
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
    """The same, if some samples have labels, as nodes of a graph do: more of them than there are classes.

    That logarithms sum to one over the samples was seen in the first steps. Where one sample is chosen for each class,
    there are no more labels than classes.
    """
    _, info, column, norms = output
    seen = [numbers for _, numbers in numbers_of(evidence, "normalised")]
    is_over_samples = all(len(one) == TWO_SIZES and one[0] < NORMALISED and one[2] > OFF for one in seen)
    if len(info.shape) != 2 or len(seen) < LEAST_ROWS or not is_over_samples:
        return None
    lengths = evidence.column("mean", norms) * samples_of(evidence, info, column)
    labels = evidence.column("sampled", norms) - evidence.column("zeros", norms)
    rows = np.flatnonzero(np.isfinite(lengths))
    is_label = np.abs(lengths[rows] - 1) < EQUAL
    return rows if is_label.all() and (labels[rows] > (info.shape[1] or 0)).all() else None


def _has_classes(info: TensorInfo) -> bool:
    """Whether there are several: one weight for each sample may well be shared out over them."""
    return len(info.shape) > 1 and info.shape[1] != 1


def _of_attention(evidence: Evidence) -> Iterator[Finding]:
    """The first tensor of each softmax: what follows takes the same one."""
    places, told = evidence.places, set[int]()
    for number, call in enumerate(places.calls):
        if not places.is_leaf(number):
            continue
        tensors: list[tuple[Role, TensorInfo]] = [*(("input", one) for one in call.inputs)]
        tensors += [("output", one) for one in call.outputs]
        for role, info in tensors:
            column = evidence.find(call.module, call.call, role, info.path)
            if column is None or not _is_attention(evidence, number, info):
                continue
            rows = _rows_over_batch(evidence, column, info)
            if rows is None:
                continue
            way = "goes into" if role == "input" else "comes out of"
            if places.producer(number) not in told:
                yield _told(
                    evidence,
                    column,
                    rows,
                    size=float(samples_of(evidence, info, column)[rows[0]]),
                    what=f"The attention that {way} {named(call.module)}",
                    instead="keys",
                    advice="Give the softmax `dim=-1`. Without a `dim`, `nn.Softmax` takes the first dimension of a "
                    "tensor of three.",
                )
            told.add(number)
            break


def _told(evidence: Evidence, column: int, rows: Rows, *, size: float, what: str, instead: str, advice: str) -> Finding:
    """That a tensor sums to one over the samples, so many, `instead` of over its classes or keys."""
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
    """Whether a tensor in a call has the shape of an attention: `[samples, ..., length, length]`.

    It does not if the length is that of the batch. Of tensors whose first dimension is the length, an attention has
    the samples elsewhere, and no two last dimensions that are equal.
    """
    shape = info.shape
    if len(shape) < 3 or "float" not in info.dtype or shape[-1] is None or shape[-1] != shape[-2]:
        return False
    if shape[0] == shape[-1] or shape[-1] < LEAST_SAMPLES:
        return False
    around = [evidence.places.calls[one] for one in evidence.places.ancestors(number)]
    return any(_has_sequence(call, (shape[0], shape[-1])) for call in around)


def _has_sequence(call: Call, sizes: tuple[int | None, int]) -> bool:
    """Whether a call is given `[samples, length, features]`, or numbers `[samples, length]`."""
    return any(one.shape[:2] == sizes and len(one.shape) == (3 if "float" in one.dtype else 2) for one in call.inputs)


def _rows_over_batch(evidence: Evidence, column: int, info: TensorInfo) -> Rows | None:
    """The rows with the tensor, if at all of them it has probabilities that sum to one over the samples, and differ.

    The mean of a sample of the elements may be off by several standard errors. It must not be that of probabilities
    that sum to one over the last dimension.
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
