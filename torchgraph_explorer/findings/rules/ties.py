"""Finds weights that were tied and part ways, tied embeddings that are too large for logits, and teachers that learn.

The evidence is fingerprints of the parameters, which are equal where all elements are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import Weight, dimensions
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.made import LEAST_DRAWN, MADE_UNIFORM, is_as_made
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows, finding, named, quoted
from torchgraph_explorer.schema import EXTENT, Extent, Series

_COPY = re.compile(r"(^|_)(ema|teacher|momentum|averaged|shadow|target|k|key)($|_)", re.IGNORECASE)
"""Words in the names of modules that follow another one, and learn nothing by themselves."""

_LEFT_UNTRAINED = (
    "Call it under `torch.no_grad()`, set `requires_grad_(False)` for it, and leave its parameters out of the "
    "optimizer."
)
"""What to do with a teacher that is trained."""

LARGE_LOGITS = 3.0
"""Largest usual root mean square of an output layer's outputs at the first step. A cross entropy of normally
distributed logits of this size is about 4 nats above that of equal ones."""

NEARLY = 0.05
"""Largest difference of an embedding's statistics from those of the distribution that torch draws it from."""

_NORMAL = float(np.sqrt(2 / np.pi))
"""Mean magnitude over standard deviation of normally distributed numbers around zero."""


def broken_tie(evidence: Evidence) -> Iterator[Finding]:
    """The weights of an embedding and of another layer begin equal, to the last bit, and are not at the end."""
    weights = [column for column in evidence.of_kind("value", "param") if _is_trained_matrix(evidence, column)]
    embeddings = [column for column in weights if "Embedding" in _class_of(evidence, column)]
    others = [column for column in weights if "Embedding" not in _class_of(evidence, column)]
    for first, second in product(embeddings, others):
        if _shape(evidence, first) != _shape(evidence, second):
            continue
        rows = np.flatnonzero(evidence.is_there[:, first] & evidence.is_there[:, second])
        parted = _parted(evidence, first, second, rows=rows)
        if parted is None:
            continue
        at, tied = evidence.series[second], evidence.series[first]
        yield finding(
            evidence,
            "broken-tie",
            "warning",
            at=at,
            rows=rows[parted:],
            numbers={"equal_steps": parted},
            text=f"`{quoted(at.path)}` of {named(at.module)} and of {named(tied.module)} are equal up to step "
            f"{evidence.steps[rows[parted - 1]]} and differ from step {evidence.steps[rows[parted]]} on: they are two "
            "parameters, and each learns for itself.",
            advice=f"If they are to share their weights, assign the parameter itself, as in `head.{quoted(at.path)} = "
            f"embedding.{quoted(tied.path)}`, after everything that replaces parameters: loading, copying, conversion, "
            "wrapping. Make the optimizer after that.",
        )


def large_tie(evidence: Evidence) -> Iterator[Finding]:
    """An output layer shares the initial weights of an embedding, which are too large for logits."""
    for second, (first, scale) in large_ties(evidence).items():
        tied, at = evidence.series[first], evidence.series[second]
        yield finding(
            evidence,
            "bad-init-scale",
            "warning",
            at=tied,
            rows=[0],
            numbers={"logits": scale, "std": float(evidence.column("std", first)[0])},
            text=f"{named(at.module)} shares the weights of {named(tied.module)}, which begin with a standard "
            f"deviation of 1, as torch makes embeddings: its outputs begin with a root mean square of {scale:.3g}. "
            "A cross entropy of such logits begins far above that of a guess.",
            advice=f"Begin smaller: `torch.nn.init.normal_({quoted(tied.module)}.weight, std=0.02)`, or divide the "
            "logits by the root of the number of features.",
        )


def large_ties(evidence: Evidence) -> dict[int, tuple[int, float]]:
    """Weights of layers that are those of an embedding, and too large: the embedding's, and how large outputs are."""
    if int(evidence.steps[0]) != 0:
        return {}
    weights = [column for column in evidence.of_kind("value", "param") if _is_trained_matrix(evidence, column)]
    embeddings = [
        column
        for column in weights
        if "Embedding" in _class_of(evidence, column) and is_standard_normal(evidence, column)
    ]
    heads = [column for column in weights if "Linear" in _class_of(evidence, column)]
    found: dict[int, tuple[int, float]] = {}  # an encoder and a decoder may share one weight under names of their own
    for first, second in product(embeddings, heads):
        output = evidence.find(evidence.series[second].module, 0, "output", "output")
        scale = 0.0 if output is None else float(evidence.rms[0, output])
        if second not in found and scale > LARGE_LOGITS and _are_tied(evidence, first, second):
            found[second] = first, scale
    return found


def sharing_embeddings(evidence: Evidence, columns: list[int]) -> set[int]:
    """Those of `columns` that are equal to an embedding at the first step, as the last layer of a language model."""
    embeddings = [column for column in evidence.of_kind("value", "param") if "Embedding" in _class_of(evidence, column)]
    shapes = {_shape(evidence, embedding) for embedding in embeddings}
    return {
        column
        for column in columns
        if _shape(evidence, column) in shapes
        and any(_are_tied(evidence, embedding, column) for embedding in embeddings)
    }


def _are_tied(evidence: Evidence, first: int, second: int) -> bool:
    """Whether two parameters have the same shape and are equal at the first step."""
    return _shape(evidence, first) == _shape(evidence, second) and _are_equal(evidence, first, second, row=0)


def is_standard_normal(evidence: Evidence, column: int) -> bool:
    """Whether a parameter begins with a standard normal distribution, as torch draws those of `nn.Embedding`."""
    mean, std, size = (float(evidence.column(name, column)[0]) for name in ("mean", "std", "absolute_mean"))
    return abs(std - 1) < NEARLY and abs(mean) < NEARLY and abs(size / std - _NORMAL) < NEARLY


def _is_trained_matrix(evidence: Evidence, column: int) -> bool:
    """Whether a parameter has two dimensions and requires a gradient."""
    info = evidence.places.tensor(evidence.series[column])
    return dimensions(info) == 2 and info is not None and info.requires_grad


def _class_of(evidence: Evidence, column: int) -> str:
    return evidence.places.class_of(evidence.series[column].module)


def _shape(evidence: Evidence, column: int) -> object:
    """The shape and dtype of a parameter; None if they are not known."""
    info = evidence.places.tensor(evidence.series[column])
    return info and (info.shape, info.dtype)


def _parted(evidence: Evidence, first: int, second: int, *, rows: Rows) -> int | None:
    """How many of `rows` there are before the first at which two parameters differ; None if they do not part.

    They are taken to differ until the end from then on, so that few fingerprints have to be read.
    """
    if len(rows) < LEAST_ROWS or not _are_equal(evidence, first, second, row=rows[0]):
        return None
    low, high = 0, len(rows) - 1
    if _are_equal(evidence, first, second, row=rows[high]):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if _are_equal(evidence, first, second, row=rows[middle]):
            low = middle
        else:
            high = middle
    return high


def _are_equal(evidence: Evidence, first: int, second: int, *, row: int) -> bool:
    """Whether two parameters have equal elements at a row, by their fingerprints, and not only one value."""
    low, high = (evidence.column(name, first)[row] for name in ("min", "max"))
    prints = evidence.model.rows(evidence.frames[[row]]).fingerprints[0, [first, second]]
    return bool(low < high and prints[0] == prints[1] and prints[0] & np.uint64(EXTENT) == Extent.ALL)


def teacher_trained(evidence: Evidence) -> Iterator[Finding]:
    """A module that is named as a moving average or teacher begins as a copy of another one, and is trained like that.

    It has to have several matrices: single ones may begin equal on purpose, as those of keys and queries as identities.
    """
    rows = rows_with(evidence, lambda facts: bool(facts.groups))
    if len(rows) < LEAST_ROWS:
        return
    held = {name for row in rows for group in facts_at(evidence, row).groups for name in group.parameters}
    yield from _of_students(evidence, rows, held)
    if evidence.steps[0] != 0:
        return
    for copy in evidence.places.modules:
        parent, _, last = copy.rpartition(".")
        if not _COPY.search(last) or _COPY.search(parent.rpartition(".")[2]):
            continue
        trained = [matrix for matrix in _matrices(evidence, copy) if _is_trained(evidence, matrix, held)]
        original = _original(evidence, copy, trained) if len(trained) > 1 else None
        if original is None or not all(_is_trained(evidence, matrix, held) for matrix in _matrices(evidence, original)):
            continue
        yield finding(
            evidence,
            "teacher-trained",
            "warning",
            at=copy,
            rows=rows,
            numbers={"parameters": len(trained)},
            text=f"{named(copy)} begins as a copy of {named(original)}, and the optimizer trains it: {len(trained)} of "
            "its weights get gradients. By its name, it should only follow the other one.",
            advice=_LEFT_UNTRAINED,
        )


def _of_students(evidence: Evidence, rows: list[int], held: set[str]) -> Iterator[Finding]:
    """Report a teacher that was trained before, and goes on to be trained together with a new student beside it."""
    for name in evidence.places.modules:
        parent, dot, last = name.rpartition(".")
        student = f"{parent}{dot}{last.replace('teacher', 'student')}"
        if "teacher" not in last or student not in evidence.places.modules:
            continue
        learned, new = ([one for one in evidence.places.weights() if _is_within(one, top)] for top in (name, student))
        trained = [one for one in _matrices(evidence, name) if _is_trained(evidence, one, held)]
        is_known = len(trained) > 1 and any(_is_trained(evidence, one, held) for one in _matrices(evidence, student))
        if not is_known or not new or not learned or any(is_as_made(evidence, one, row=0) for one in learned):
            continue
        if not all(is_as_made(evidence, one, row=0) for one in new):
            continue
        yield finding(
            evidence,
            "teacher-trained",
            "warning",
            at=name,
            rows=rows,
            numbers={"parameters": len(trained)},
            text=f"{named(name)} was trained before, and is trained on together with {named(student)}, whose weights "
            f"are new: {len(trained)} of its weights get gradients, and an optimizer has them. By its name, it should "
            "stay as it is: else it follows its student.",
            advice=_LEFT_UNTRAINED,
        )


def _is_within(weight: Weight, module: str) -> bool:
    """Whether a weight is a matrix within `module` that tells how it was initialised, of a layer of torch's."""
    name = weight.module.name
    is_there = name == module or name.startswith(f"{module}.")
    has_many = dimensions(weight.info) > 1 and weight.size >= LEAST_DRAWN
    return is_there and has_many and weight.module.class_name in MADE_UNIFORM


def _matrices(evidence: Evidence, module: str) -> list[Series]:
    """The series of the matrices that require a gradient, of a module and all modules inside."""
    params = map(evidence.series.__getitem__, evidence.of_kind("value", "param"))
    inside = [one for one in params if one.module == module or one.module.startswith(f"{module}.")]
    return [one for one in inside if _is_trained_matrix(evidence, one.id)]


def _is_trained(evidence: Evidence, parameter: Series, held: set[str]) -> bool:
    """Whether a parameter is among those that optimizers have, `held`, and gets a gradient at most steps."""
    grad = evidence.find(parameter.module, None, "param", parameter.path, "grad")
    name = f"{parameter.module}.{parameter.path}"
    return name in held and grad is not None and bool(np.nanmedian(evidence.peaks[:, grad]) > 0)


def _original(evidence: Evidence, copy: str, weights: list[Series]) -> str | None:
    """The module beside `copy` whose weights are equal to all `weights` of `copy` at first; None if there is none."""
    if not weights:
        return None
    parent = copy.rpartition(".")[0]
    for other in evidence.places.modules:
        if other == copy or other.rpartition(".")[0] != parent:
            continue
        twins = [evidence.find(other + one.module.removeprefix(copy), None, "param", one.path) for one in weights]
        pairs = zip(weights, twins, strict=True)
        if all(twin is not None and _are_equal(evidence, one.id, twin, row=0) for one, twin in pairs):
            return other
    return None
