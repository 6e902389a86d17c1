"""Finds vectors that are normalised over the samples of the batch, where over their own features was meant.

The evidence is the l2 norm of the model's output, whose square is the number of features, not of samples; or, where
the loss normalises it, gradients that do not depend on the length of a feature.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import numbers_of
from torchgraph_explorer.findings.rules.outputs import sample_size, samples_of, trained_outputs
from torchgraph_explorer.findings.rules.rule import Rows, finding, named
from torchgraph_explorer.findings.rules.standardised import standardised_over_batch
from torchgraph_explorer.schema import TensorInfo

LEAST_SAMPLES, LEAST_STEPS = 3, 4
"""Fewest samples of each batch, and fewest recorded steps with the output."""

EXACT = 1e-4
"""Largest relative difference, which is rounding, of the sum of the squares of all elements from the number of
features."""

DEPENDS = 0.01
"""Least sum of gradients times values, or of gradients, over that of their magnitudes, that is no rounding of zero."""

CENTRED = 1e-3
"""Largest mean over root mean square of features that are standardised over the batch, which is common and no fault."""


def normalised_over_batch(evidence: Evidence) -> Iterator[Finding]:
    """The squares of the model's outputs sum to one over the samples, for each feature, at all steps."""
    yield from _by_the_loss(evidence)
    yield from _layers_over_batch(evidence)
    yield from standardised_over_batch(evidence)
    for series, info, column, _ in trained_outputs(evidence):
        rows = _rows_over_batch(evidence, column, info)
        if rows is None:
            continue
        features, samples = sample_size(info), float(samples_of(evidence, info, column)[rows[-1]])
        yield finding(
            evidence,
            "normalised-over-batch",
            "warning",
            at=series,
            rows=rows,
            numbers={"samples": samples, "features": features},
            text=f"Each of the {features} features of the model's output has the norm 1 over the {samples:.0f} "
            "samples of a batch: it is normalised over the wrong dimension. A sample's vector then depends on the "
            "other samples, and can have any length.",
            advice="Give `F.normalize` the dimension of the features, `dim=-1`. `dim=0` is that of the samples.",
        )


def _by_the_loss(evidence: Evidence) -> Iterator[Finding]:
    """Report outputs that the loss normalises over the samples.

    If the length of a feature over the samples makes no difference, its gradients, times its values, sum to zero. The
    gradients of features that are standardised over the samples sum to zero as well.
    """
    seen = numbers_of(evidence, "across")
    output = next(trained_outputs(evidence), None)
    if len(seen) < LEAST_STEPS or output is None:
        return
    of_feature, *others = np.array([numbers for _, numbers in seen]).T
    if not (of_feature < EXACT).all() or not all((one > DEPENDS).all() for one in others):
        return
    samples = float(samples_of(evidence, output.info, output.column)[seen[-1][0]])
    yield finding(
        evidence,
        "normalised-over-batch",
        "warning",
        at=output.series,
        rows=[row for row, _ in seen],
        numbers={"samples": samples, "features": sample_size(output.info)},
        text=f"The loss normalises each feature of the model's output over the {samples:.0f} samples of a batch: "
        "gradients do not depend on how long a feature is over the samples, but on how long a sample's vector is. A "
        "sample's vector then depends on the other samples, and can have any length.",
        advice="Give `F.normalize` the dimension of the features, `dim=-1`. `dim=0` is that of the samples.",
    )


def _layers_over_batch(evidence: Evidence) -> Iterator[Finding]:
    """Report layers that are made to normalise over all dimensions of what they are given, the samples among them."""
    places = evidence.places
    root = places.root
    samples = {info.shape[0] for info in (*root.inputs, *root.outputs) if info.shape} if root else set()
    for name in sorted(places.called, key=places.order):
        if places.class_of(name) not in {"LayerNorm", "RMSNorm"}:
            continue
        sizes = next((value for _, value in places.modules[name].extra_repr if value.startswith("(")), "")
        shapes = [call.inputs[0].shape for call in places.calls if call.module == name and call.inputs]
        is_over_all = bool(shapes) and all(len(one) > 1 and str(tuple(one)) == sizes for one in shapes)
        if is_over_all and samples == {shapes[0][0]} and (shapes[0][0] or 0) >= LEAST_SAMPLES:
            yield finding(
                evidence,
                "normalised-over-batch",
                "warning",
                at=name,
                rows=range(len(evidence)),
                numbers={"samples": float(shapes[0][0] or 0)},
                text=f"{named(name)} normalises over all dimensions {sizes} of what it is given, and the first are the "
                f"{shapes[0][0]} samples of a batch: what it gives for a sample depends on the other samples.",
                advice="Give the layer the sizes of one sample, or only the number of features: "
                "`nn.LayerNorm(features)`.",
            )


def _rows_over_batch(evidence: Evidence, column: int, info: TensorInfo) -> Rows | None:
    """The rows with an output, if the squares of each feature sum to one over the samples at all of them; else None.

    Only their sum over all features is known. So the samples must never be as many as another dimension, over which the
    output may be normalised on purpose.
    """
    features = sample_size(info)
    count, length, mean = (evidence.column(name, column).astype(np.float64) for name in ("count", "l2_norm", "mean"))
    rows = np.flatnonzero(np.isfinite(length))
    samples = samples_of(evidence, info, column)[rows]
    if len(rows) < LEAST_STEPS or features < 2 or (samples < LEAST_SAMPLES).any():
        return None
    is_one = np.abs(length[rows] ** 2 / features - 1) < EXACT
    is_centred = np.abs(mean[rows]) * np.sqrt(count[rows]) < CENTRED * length[rows]
    is_ambiguous = np.isin(samples, [size for size in info.shape[1:] if size])
    return rows if is_one.all() and not is_centred.all() and not is_ambiguous.any() else None
