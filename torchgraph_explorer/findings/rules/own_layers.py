"""Modules of a user's own that multiply what they take by matrices, as `nn.Linear` does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.schema import Call, Module, TensorInfo

TORCH = "torch."
"""How the classes of torch begin."""


class Gain(NamedTuple):
    """By how much a matrix scales what it is multiplied with: the column of its values, and the factor."""

    column: int
    factor: float


def own_gains(evidence: Evidence) -> Iterator[Gain]:
    """The matrices of modules without others within, where they lead from a size of the input to that of the output.

    The factor is that of the root mean square of the weights, but for what the module as a whole scales less: it may
    divide by a constant, as layers with an equalised learning rate do.
    """
    places = evidence.places
    parents = {name.rpartition(".")[0] for name in places.modules if name}
    for name, module in places.modules.items():
        number = places.numbered(name, 0)
        if number is None or name in parents or module.class_path.startswith(TORCH):
            continue
        call = places.calls[number]
        if len(call.inputs) == len(call.outputs) == 1:
            yield from _chain(evidence, module, call)


def _chain(evidence: Evidence, module: Module, call: Call) -> Iterator[Gain]:
    """The gains of all matrices of a module, in the order in which they were made; none where they do not fit."""
    matrices = [one for one in module.params if one.requires_grad and len(one.shape) == 2]
    sizes, gains, product = _sizes(call.inputs[0]), list[Gain](), 1.0
    for one in matrices:
        column = evidence.find(module.name, None, "param", one.path)
        after = _other_side(one, sizes)
        if column is None or not after:
            return
        factor = float(evidence.rms[0, column]) * math.sqrt(math.prod(size or 1 for size in one.shape) / after)
        if not 0 < factor < math.inf:
            return
        gains.append(Gain(column, factor))
        product *= factor
        sizes = {after}
    whole = _measured(evidence, call)
    if not gains or whole is None or not sizes & {*call.outputs[0].shape[-1:]}:
        return
    if not product < math.inf:
        return
    less = min(1.0, whole / product) ** (1 / len(gains))
    yield from (Gain(one.column, one.factor * less) for one in gains)


def _sizes(tensor: TensorInfo) -> set[int]:
    """The features that a matrix may take of a tensor: those of the last dimension, or all of a sample."""
    features = [size for size in tensor.shape[1:] if size is not None]
    return {*features[-1:], math.prod(features)} if len(features) == len(tensor.shape) - 1 and features else set()


def _other_side(matrix: TensorInfo, sizes: set[int]) -> int | None:
    """How many features come of a matrix that takes one of these numbers; None if it takes none of them."""
    first, second = matrix.shape
    if first in sizes:
        return second
    return first if second in sizes else None


def _measured(evidence: Evidence, call: Call) -> float | None:
    """The root mean square of the output over that of the input, at the first step; None if it is not known."""
    before = evidence.find(call.module, call.call, "input", call.inputs[0].path)
    after = evidence.find(call.module, call.call, "output", call.outputs[0].path)
    if before is None or after is None or not evidence.rms[0, before] > 0:
        return None
    scale = float(evidence.rms[0, after] / evidence.rms[0, before])
    return scale if 0 < scale < math.inf else None
