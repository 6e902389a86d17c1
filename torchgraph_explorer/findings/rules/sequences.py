"""Layers for sequences that take the samples of a batch for the elements of a sequence."""

from __future__ import annotations

from collections.abc import Iterator

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.classes import RECURRENT
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named
from torchgraph_explorer.schema import Call, Shape, TensorInfo
from torchgraph_explorer.shapes import Sizes, sizes_of

ATTENTION = "MultiheadAttention"

FOLLOWING = 0.9
"""Least share of the places whose right answer is the next token, at each step, if the second dimension is that of the
sequence. Along the samples, answers follow by chance alone."""


def batch_as_sequence(evidence: Evidence) -> Iterator[Finding]:
    """A layer that wants `[length, samples, features]` is given `[samples, length, features]`, or the other way round.

    The first dimension is that of the samples if it is the first one of the model's input, and of all its outputs, of
    which each sample has one row. A sequence that is fed as one sample has 1 as the second dimension. Where samples
    are first, parts of them may be folded into the first dimension, whose size is then a multiple of theirs, or rows
    may have been chosen from them, whose number no sample has as a dimension.

    Where the model predicts the next token, the dimension along which tokens follow each other is that of the sequence.
    """
    yield from _by_next_tokens(evidence)
    samples = _samples(evidence)
    for call in evidence.places.calls if samples is not None else ():
        samples_at = _samples_wanted_at(evidence, call.module) if call.inputs else None
        given = call.inputs[0] if call.inputs else None
        if samples_at is None or given is None or len(given.shape) != 3:
            continue
        has, length = sizes_of(given)[1 - samples_at], sizes_of(given)[samples_at]
        is_taken = has == samples and length not in {samples, (1,)} and _are_rows(evidence, length)
        if is_taken and (samples_at or (not _is_folded(length, samples) and _is_within(evidence, length, samples))):
            yield _told(evidence, call, samples_at, length=given.shape[samples_at])


def _by_next_tokens(evidence: Evidence) -> Iterator[Finding]:
    """Report layers that go along the first dimension, where the right answers follow the tokens along the second."""
    shapes = _shapes_of_sequences(evidence)
    for call in evidence.places.calls if shapes else ():
        given = call.inputs[0].shape if call.inputs else ()
        if len(given) == 3 and given[:2] in shapes and _samples_wanted_at(evidence, call.module) == 1:
            yield _told(evidence, call, 1, length=given[1])


def _shapes_of_sequences(evidence: Evidence) -> set[Shape]:
    """The shapes `[samples, length]` of inputs of tokens of which each is the right answer at the place before."""
    root = evidence.places.root
    rows = rows_with(evidence, lambda facts: bool(facts.tokens))
    if root is None or len(rows) < LEAST_ROWS:
        return set()
    shares: dict[str, list[float]] = {}
    for row in rows:
        for one in facts_at(evidence, row).tokens:
            shares.setdefault(one.path, []).append(one.following)
    following = {path for path, found in shares.items() if len(found) == len(rows) and min(found) > FOLLOWING}
    shapes = {info.shape for info in root.inputs if info.path in following}
    return {one for one in shapes if len(one) == 2 and one[0] != one[1] and None not in one}


def _told(evidence: Evidence, call: Call, samples_at: int, *, length: int | None) -> Finding:
    is_attention = evidence.places.torch_class_of(call.module) == ATTENTION
    does = "attends from sample to sample" if is_attention else "goes from sample to sample"
    is_at, wanted_at = ("second", "first") if samples_at == 0 else ("first", "second")
    return finding(
        evidence,
        "batch-as-sequence",
        "warning",
        at=call.module,
        rows=range(len(evidence)),
        numbers={"length": float(length or 0)},
        text=f"{named(call.module)} is given the samples in the {is_at} dimension, but expects them in the {wanted_at} "
        f"one. So it {does} of the batch, and not along the sequence: its output for a sample depends on the other "
        "samples.",
        advice="Make it without `batch_first`, or give it `[samples, length, features]`."
        if samples_at == 0
        else "Make it with `batch_first=True`, or give it `[length, samples, features]`.",
    )


def _samples_wanted_at(evidence: Evidence, module: str) -> int | None:
    """The dimension that a layer for sequences takes for the samples; None for another layer, or if it is not known."""
    name, first = evidence.places.torch_class_of(module), evidence.places.option(module, "batch_first")
    if name not in {*RECURRENT, ATTENTION} or (name == ATTENTION and first is None):
        return None
    return 0 if first == "True" else 1


def _is_folded(length: Sizes, samples: Sizes | None) -> bool:
    """Whether a size may be that of the samples times that of something else."""
    return any(one % of == 0 for one in length for of in samples or () if of)


def _is_within(evidence: Evidence, length: Sizes, samples: Sizes | None) -> bool:
    """Whether tensors of samples have such a length as one of their other dimensions."""
    infos = (one for call in evidence.places.calls for one in (*call.inputs, *call.outputs))
    return any(sizes[:1] == [samples] and length in sizes[1:] for sizes in map(sizes_of, infos))


def _outputs(evidence: Evidence) -> list[TensorInfo]:
    """The outputs of the model that it is trained by."""
    calls = evidence.places.calls
    found = calls[0].outputs if calls and not calls[0].module else ()
    return [one for one in found if evidence.find("", calls[0].call, "output", one.path, "grad_norm") is not None]


def _samples(evidence: Evidence) -> Sizes | None:
    """The sizes of the first dimension of the model's inputs and outputs, if these have no more than two dimensions."""
    outputs = _outputs(evidence)
    if not outputs or any(len(one.shape) not in {1, 2} for one in outputs):
        return None
    inputs = [one for one in evidence.places.calls[0].inputs if len(one.shape) > 1]
    firsts = {sizes_of(one)[0] for one in (*inputs, *outputs)}
    return firsts.pop() if inputs and len(firsts) == 1 else None


def _are_rows(evidence: Evidence, length: Sizes) -> bool:
    """Whether no output has a number for each step of a sequence, as `[length, samples]`."""
    return all(len(one.shape) == 1 or sizes_of(one)[1] != length for one in _outputs(evidence))
