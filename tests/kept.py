"""Kept tensors one by one, as tests write and compare them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.schema import KeptArrays, KeptForm, TensorKind


class KeptArray(NamedTuple):
    """What is kept of one tensor; the attributes are those of `KeptForm`, and entries of the columns of `KeptArrays`.

    Attributes:
        values: The bytes of the kept elements, uint8.
        statistics: Those of each neuron, float32 or float64; None without `batch_dim`.
    """

    key: tuple[str, int | None, str, str, str]
    dtype: str
    shape: tuple[int, ...]
    batch_dim: int | None
    samples: tuple[int, ...]
    values: npt.NDArray[np.uint8]
    statistics: npt.NDArray[Any] | None
    loss: str = ""
    categories: tuple[str, ...] = ()
    kind: TensorKind = "intermediate"
    node: str = ""


def together(*arrays: KeptArray) -> KeptArrays:
    """The columns of `arrays`. Those that have the same array of values, or of statistics, share a block."""
    pieces = [piece for one in arrays for piece in (one.values, one.statistics)]
    unique = list({id(piece): piece for piece in pieces if piece is not None}.values())
    number = {id(piece): at for at, piece in enumerate(unique)}
    return KeptArrays(
        keys=[one.key for one in arrays],
        forms=[KeptForm(one.dtype, one.shape, one.batch_dim, _is_double(one)) for one in arrays],
        samples=[one.samples for one in arrays],
        losses=[one.loss for one in arrays],
        categories=[one.categories for one in arrays],
        kinds=[one.kind for one in arrays],
        nodes=[one.node for one in arrays],
        blocks=np.array([number.get(id(piece), -1) for piece in pieces], np.int64).reshape(-1, 2),
        places=np.array([(at, 0, piece.nbytes) for at, piece in enumerate(unique)], np.int64).reshape(-1, 3),
        memories=[np.ravel(piece).view(np.uint8) for piece in unique],
    )


def apart(arrays: KeptArrays) -> Iterable[KeptArray]:
    """Each of `arrays` by itself. Statistics are flat."""
    for number, (key, form, samples, *said) in enumerate(zip(*arrays.traits, strict=True)):
        values, statistics = (_block(arrays, int(block)) for block in arrays.blocks[number])
        assert values is not None
        if statistics is not None:
            statistics = statistics.view(np.float64 if form.is_double else np.float32)
        yield KeptArray(key, form.dtype, form.shape, form.batch_dim, samples, values, statistics, *said)


def _block(arrays: KeptArrays, number: int) -> npt.NDArray[Any] | None:
    if number < 0:
        return None
    memory, start, size = arrays.places[number]
    return arrays.memories[memory][start : start + size]


def _is_double(one: KeptArray) -> bool:
    return one.statistics is not None and one.statistics.dtype == np.float64
