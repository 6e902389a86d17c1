"""Layers for sequences that take the samples of a batch for the elements of a sequence."""

from __future__ import annotations

from collections.abc import Iterator

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.classes import RECURRENT
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.schema import Call, TensorInfo
from torchgraph_explorer.shapes import Sizes, sizes_of

ATTENTION = "MultiheadAttention"


def batch_as_sequence(evidence: Evidence) -> Iterator[Finding]:
    """A layer that wants `[length, samples, features]` is given `[samples, length, features]`.

    The first dimension is that of the samples if it is the first one of the model's input, and of all its outputs, of
    which each sample has one row. A sequence that is fed as one sample has 1 as the second dimension.
    """
    samples = _samples(evidence)
    for call in evidence.places.calls if samples is not None else ():
        given = call.inputs[0] if call.inputs and _wants_length_first(evidence, call.module) else None
        if given is None or len(given.shape) != 3:
            continue
        first, length, _ = sizes_of(given)
        if first == samples and length not in {samples, (1,)} and _are_rows(evidence, length):
            yield _told(evidence, call, given)


def _told(evidence: Evidence, call: Call, given: TensorInfo) -> Finding:
    is_attention = evidence.places.class_of(call.module) == ATTENTION
    does = "attends from sample to sample" if is_attention else "goes from sample to sample"
    return finding(
        evidence,
        "batch-as-sequence",
        "warning",
        at=call.module,
        rows=range(len(evidence)),
        numbers={"length": float(given.shape[1] or 0)},
        text=f"{named(call.module)} is given the samples in the first dimension, but expects them in the second one. "
        f"So it {does} of the batch, and not along the sequence: its output for a sample depends on the other samples.",
        advice="Make it with `batch_first=True`, or give it `[length, samples, features]`.",
    )


def _wants_length_first(evidence: Evidence, module: str) -> bool:
    name, first = evidence.places.class_of(module), evidence.places.option(module, "batch_first")
    return (name in RECURRENT and first != "True") or (name == ATTENTION and first == "False")


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
