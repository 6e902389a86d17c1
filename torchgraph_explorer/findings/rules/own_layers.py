"""Estimates the gains of matrices in modules of the user's own, which multiply their input by them as `nn.Linear` does.

A gain is the factor by which the initial weights scale the standard deviation of what passes through.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import TORCH
from torchgraph_explorer.schema import Call, Module, TensorInfo


class Gain(NamedTuple):
    """By which factor a matrix, whose values are `column`, scales what it is multiplied with."""

    column: int
    factor: float


def own_gains(evidence: Evidence) -> Iterator[Gain]:
    """The gains of the matrices of leaf modules that are none of torch's, with one input and one output.

    A matrix with mean 0 has a gain of its root mean square times the root of the number of inputs. If the module as a
    whole scales its input by less than all its matrices together, each gain is reduced by the same factor: the module
    may divide by a constant, as layers with an equalised learning rate do.
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
    """The gains of all trained matrices of a module; nothing if one of them does not fit the tensor before it.

    The input is taken to be multiplied by all matrices one after the other, in the order in which they were registered.
    """
    matrices = [info for info in module.params if info.requires_grad and len(info.shape) == 2]
    sizes, gains, product = _sizes(call.inputs[0]), list[Gain](), 1.0
    for matrix in matrices:
        column = evidence.find(module.name, None, "param", matrix.path)
        after = _other_side(matrix, sizes)
        if column is None or not after:
            return
        factor = float(evidence.rms[0, column]) * math.sqrt(math.prod(size or 1 for size in matrix.shape) / after)
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
    reduction = min(1.0, whole / product) ** (1 / len(gains))
    yield from (Gain(column, factor * reduction) for column, factor in gains)


def _sizes(tensor: TensorInfo) -> set[int]:
    """The numbers of features of a tensor that a matrix may take: those of the last dimension, or all of a sample.

    Empty if a size of a sample is not known.
    """
    features = [size for size in tensor.shape[1:] if size is not None]
    return {*features[-1:], math.prod(features)} if len(features) == len(tensor.shape) - 1 and features else set()


def _other_side(matrix: TensorInfo, sizes: set[int]) -> int | None:
    """How many features a matrix gives that takes one of these numbers of features; None if it takes none of them."""
    first, second = matrix.shape
    if first in sizes:
        return second
    return first if second in sizes else None


def _measured(evidence: Evidence, call: Call) -> float | None:
    """The root mean square of a call's output over that of its input, at the first step; None if it is not known."""
    before = evidence.find(call.module, call.call, "input", call.inputs[0].path)
    after = evidence.find(call.module, call.call, "output", call.outputs[0].path)
    if before is None or after is None or not evidence.rms[0, before] > 0:
        return None
    scale = float(evidence.rms[0, after] / evidence.rms[0, before])
    return scale if 0 < scale < math.inf else None
