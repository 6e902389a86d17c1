"""Shapes in which some dimensions varied, joined and written; and shapes that are taken for those of a transpose.

`web/src/graph/shapes.ts` writes them in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TypeAlias

from torchgraph_explorer.schema import ModuleGraph, TensorInfo

Sizes: TypeAlias = "tuple[int, ...]"
"""Sizes that one dimension was seen with, in that order."""

Letters: TypeAlias = "Mapping[Sizes | int, str]"
"""A letter for each dimension that varied: by the sizes it was seen with, else by its number in the shape."""

MOST_SIZES = 8
"""Sizes that are kept of one dimension."""

_OTHERS = "LABCDEFGHIJKMOPQRSTUVWXYZ"


def joined(old: TensorInfo, new: TensorInfo) -> TensorInfo:
    """`old`, with the dimensions open in which the two differ; `old` itself if nothing changes.

    Tensors with different numbers of dimensions cannot be joined; the result is `old`.
    """
    if (old.shape == new.shape and old.varied == new.varied) or len(old.shape) != len(new.shape):
        return old
    sizes = [_union(*both) for both in zip(sizes_of(old), sizes_of(new), strict=True)]
    shape = tuple(a if a == b else None for a, b in zip(old.shape, new.shape, strict=True))
    varied = tuple(seen for seen, size in zip(sizes, shape, strict=True) if size is None)
    return replace(old, shape=shape, varied=varied if any(varied) else ())


def sizes_of(info: TensorInfo) -> list[Sizes]:
    """The sizes that each dimension was seen with; empty if not known."""
    varied = iter(info.varied)
    return [next(varied, ()) if size is None else (size,) for size in info.shape]


def _union(old: Sizes, new: Sizes) -> Sizes:
    return tuple(islice(dict.fromkeys(chain(old, new)), MOST_SIZES))


def letters(graph: ModuleGraph) -> Letters:
    """A letter for each dimension that varied. Dimensions with the same sequence of sizes have the same letter.

    `N` is the first one in the first place of a shape, which is usually the batch; then come `L`, `A`, `B` and so on.
    """
    keys = list(dict.fromkeys(chain.from_iterable(_open(info) for info in _tensors(graph))))
    batch = next((key for key, place in keys if place == 0), None)
    others = dict.fromkeys(key for key, _ in keys if key != batch)
    named = {} if batch is None else {batch: "N"}
    return named | {key: _letter(number) for number, key in enumerate(others)}


def shape_text(info: TensorInfo, named: Letters) -> str:
    """`N×3×8×8`; `scalar` without dimensions."""
    names = {place: named.get(key, "N") for key, place in _open(info)}
    return "×".join(names[at] if size is None else str(size) for at, size in enumerate(info.shape)) or "scalar"


def _letter(number: int) -> str:
    turn, at = divmod(number, len(_OTHERS))
    return f"{_OTHERS[at]}{turn + 1 if turn else ''}"


def _open(info: TensorInfo) -> Iterator[tuple[Sizes | int, int]]:
    """For each dimension that varied, a key that identifies it, and its number."""
    for place, (size, seen) in enumerate(zip(info.shape, sizes_of(info), strict=True)):
        if size is None:
            yield seen or place, place


def _tensors(graph: ModuleGraph) -> Iterator[TensorInfo]:
    for call in graph.calls:
        yield from call.inputs
        yield from call.outputs
    yield from (node.tensor for node in graph.nodes if node.tensor is not None)


def moves_channels(image: Sequence[int], places: Sequence[int]) -> bool:
    """Whether `[samples, channels, height, width]` and `[samples, height · width, channels]` are meant for one another.

    Not if the first of the three, or the last, may be what is joined with its neighbour.
    """
    if len(image) != 4 or len(places) != 3 or image[0] != places[0]:
        return False
    channels, height, width = image[1:]
    is_moved = places[1] == height * width != channels * height and places[2] == channels != places[1]
    return is_moved and not _may_be_split(image)


def joins_around(old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether `[samples, channels, length, width]` is to become `[samples, channels · width, length]`."""
    if len(old) != 4 or len(new) != 3 or old[0] != new[0]:
        return False
    channels, length, width = old[1:]
    return new[1] == channels * width and new[2] == length != width and not _may_be_split(old)


def _may_be_split(sizes: Sequence[int]) -> bool:
    """Whether `sizes` may be a square map `[samples, height, width, anchors · numbers]`, of as many numbers as rows.

    A view `[samples, height · width · anchors, numbers]` of it moves nothing.
    """
    _, height, width, channels = sizes
    return height == width and channels % width == 0
