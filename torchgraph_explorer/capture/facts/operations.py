"""Notes operations of a traced step that no module shows: views that swap sizes, attention, softmax, and dropout.

A function between the modules leaves no series. Its operations are seen while the module graph is traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.made import INITIALISING, MadeParameters
from torchgraph_explorer.capture.facts.pending import Row
from torchgraph_explorer.capture.gradient_hooks import Measure
from torchgraph_explorer.capture.no_dispatch import ORDINARY, NoDispatch, has_plain_elements, plain
from torchgraph_explorer.schema import Call, Operation
from torchgraph_explorer.shapes import joins_around, moves_channels

MOST_OPERATIONS = 64
"""Most operations that are noted in a step, those with equal module and sizes once."""

MOST_ELEMENTS = 1 << 18
"""Most elements of weights of attention that are looked at, but for a single matrix."""

LEAST_CLAMPED = 16
"""Fewest elements of a clamped tensor that is looked at."""

LEAST_LENGTH = 5
"""Shortest sequences whose weights of attention are looked at."""

# Names of torch's operations, by what is noted of them.
_VIEWS = frozenset({"aten::view", "aten::_unsafe_view", "aten::_reshape_alias"})
_SOFTMAXES = frozenset({"aten::_softmax", "aten::_safe_softmax"})
_ATTENTIONS = "aten::_scaled_dot_product_"
_SUMS = frozenset({"aten::add", "aten::add_"})
_DROPOUT, _NOISE, _SCALING = "aten::native_dropout", "aten::bernoulli_", "aten::div_"
_FACTOR, _CAST = "aten::mul", "aten::_to_copy"
_PRODUCTS = frozenset({"aten::bmm", "aten::mm"})
_CAT, _PAD = "aten::cat", "aten::constant_pad_nd"
_CLAMPS = frozenset({"aten::clamp", "aten::clamp_min", "aten::clamp_max", "aten::hardtanh"})
_OTHERS = frozenset({_DROPOUT, _NOISE, _SCALING, _FACTOR, _CAST, _CAT, _PAD})


class _Seen(NamedTuple):
    """An operation that was seen.

    Attributes:
        found: What is known of it now.
        call: The number of the call that it was in; None if it was in none.
        rows: The rows of the step's statistics with what was measured of it, which are known later.
    """

    found: Operation
    call: int | None
    rows: tuple[Row, ...] = ()


class Operations:
    """The operations of one traced step.

    Attributes:
        made: The parameters that the forward pass makes.
    """

    def __init__(self, measure: Measure) -> None:
        """None was seen."""
        self.made = MadeParameters()
        self._measure = measure
        self._seen: dict[tuple[object, ...], _Seen] = {}
        self._noise: tuple[int, float] | None = None
        self._crosswise: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._noises: set[int] = set()

    def note(
        self, operation: Any, given: Sequence[Any], named: dict[str, Any], *, result: Any, call: int | None
    ) -> None:
        """`operation`, with the arguments `given` and `named`, has made `result` within a call of this number."""
        name = _name(operation)
        if name in INITIALISING:
            self.made.note(given[0], call)
        elif name and len(self._seen) < MOST_OPERATIONS and not _has_ragged((*given[:2], result)):
            self._note(name, given, lambda: _arguments(operation, given, named), result=result, call=call)

    def _note(
        self,
        name: str,
        given: Sequence[Any],
        arguments: Callable[[], dict[str, Any]],
        *,
        result: Any,
        call: int | None,
    ) -> None:
        if name in _SUMS:
            self._note_positions(given, call)
        elif name in _VIEWS:
            self._note_view(tuple(given[0].shape), tuple(result.shape), call)
        elif name in _PRODUCTS or name in {_FACTOR, _CAST}:
            self._follow(name, given, result, call=call)
        elif name in {_CAT, _PAD}:
            self._note_shift(name, given, after=tuple(result.shape), call=call)
        elif name in _CLAMPS:
            self._note_clamp(arguments(), call)
        elif name in _SOFTMAXES:
            self._note_weights(plain(result), call, dimension=given[1])
            self._note_crosswise(plain(result), dimension=given[1])
        elif name.startswith(_ATTENTIONS):
            self._note_attention(arguments(), call)
        else:
            self._note_dropout(name, given, call)
            if name == _DROPOUT:
                self._follow(name, given, result[0], call=call)

    def _add(self, found: Operation, call: int | None, rows: tuple[Row, ...] = ()) -> None:
        self._seen.setdefault((call, found), _Seen(found, call, rows))

    def _note_view(self, before: tuple[int, ...], after: tuple[int, ...], call: int | None) -> None:
        if swaps_sizes(before, after):
            self._add(Operation("view", before=before, after=after), call)

    def _note_positions(self, given: Sequence[Any], call: int | None) -> None:
        """Note a sum of a tensor and as many first rows of a table `[rows, 1, features]` as its first dimension has."""
        if len(given) < 2 or not isinstance(given[0], Tensor) or not isinstance(given[1], Tensor):
            return
        values, rows = plain(given[0]), plain(given[1])
        if values.dim() != 3 or rows.dim() != 3 or rows.shape[1] != 1 or rows.shape[0] != values.shape[0]:
            return
        if rows.shape[0] > 1 < values.shape[1] and is_start_of_table(rows):
            self._add(Operation("position", before=tuple(values.shape), after=tuple(rows.shape)), call)

    def _note_clamp(self, arguments: dict[str, Any], call: int | None) -> None:
        """Note how many elements of a tensor that needs a gradient are beyond a limit, and so get none."""
        values = arguments["self"]
        low, high = (arguments.get(one, arguments.get(f"{one}_val")) for one in ("min", "max"))
        is_known = _is_readable(values) and values.requires_grad and LEAST_CLAMPED <= values.numel() <= MOST_ELEMENTS
        found = Operation("clamp", numbers=(0.0,), before=tuple(values.shape))
        if call is None or not is_known or (call, found) in self._seen:
            return
        if not all(isinstance(one, (int, float)) for one in (low, high) if one is not None):
            return
        with NoDispatch():
            some = plain(values).detach()
            beyond = (some < (-math.inf if low is None else low)) | (some > (math.inf if high is None else high))
            self._add(found, call, (Row(self._measure.values_again(beyond.float())),))

    def _note_shift(self, name: str, given: Sequence[Any], *, after: tuple[int, ...], call: int | None) -> None:
        """One row before the others of `[samples, length, features]`, or of `[length, samples, features]`."""
        if len(after) != 3:
            return
        if name == _PAD:
            dimension, is_shift = 1, len(given[1]) > 3 and [*given[1][:2], given[1][2]] == [0, 0, 1]
        else:
            dimension = int(given[1]) % 3 if len(given) > 1 else 0
            sizes = [one.shape[dimension] for one in given[0] if one.dim() == 3]
            is_shift = len(sizes) == len(given[0]) == 2 and sizes[0] == 1 and dimension < 2
        if is_shift and after[dimension] >= LEAST_LENGTH:
            self._add(Operation("shift", before=after[dimension : dimension + 1]), call)

    def _note_dropout(self, name: str, given: Sequence[Any], call: int | None) -> None:
        """Note a dropout: one operation, as on a GPU; or a division of noise by the share that is kept, just drawn."""
        noise, self._noise = self._noise, None
        if name == _NOISE:
            self._noise = (id(given[0]), float(given[1])) if len(given) > 1 and isinstance(given[1], float) else None
            if self._crosswise and _is_readable(given[0]):
                self._noises.add(plain(given[0]).data_ptr())
        elif name == _DROPOUT:
            self._add(Operation("dropout", numbers=(float(given[1]),)), call)
        elif noise is not None and noise[0] == id(given[0]) and _is_number(given[1], noise[1]):
            self._add(Operation("dropout", numbers=(1 - noise[1],)), call)

    def _note_weights(self, weights: Tensor, call: int | None, *, dimension: int) -> None:
        """Note a softmax over one element, over the first dimension, or over the last of square matrices.

        The latter are weights of attention: these sum to one over the keys.
        """
        if weights.dim() and weights.shape[dimension] == 1 < weights.numel():
            at = dimension % weights.dim()
            self._add(Operation("single", numbers=(float(at),), before=tuple(weights.shape)), call)
            return
        if dimension not in {-1, weights.dim() - 1}:
            if dimension in {0, -weights.dim()} and call is not None:
                self._add(Operation("softmax", before=tuple(weights.shape)), call)
            return
        length = weights.shape[-1] if weights.dim() > 2 else 0
        if not LEAST_LENGTH <= length == weights.shape[-2] or type(weights) not in ORDINARY or weights.is_meta:
            return
        found = Operation("attention", numbers=(0.0, 0.0, 0.0), before=(length, length))
        if (call, found) in self._seen:
            return
        with NoDispatch():
            some = _few(weights.detach(), length)
            self._add(found, call, (self._beyond(some), Row(self._measure.values_again(some))))

    def _note_crosswise(self, weights: Tensor, *, dimension: int) -> None:
        """Remember square matrices that a softmax over another dimension than the last gave, to follow them."""
        dimension, last = dimension % max(weights.dim(), 1), weights.dim() - 1
        is_square = last > 0 and LEAST_LENGTH <= weights.shape[-1] == weights.shape[-2]
        if is_square and dimension != last and (dimension > 0 or last == 1) and _is_readable(weights):
            self._crosswise[weights.data_ptr()] = dimension, tuple(weights.shape)

    def _follow(self, name: str, given: Sequence[Any], result: Any, *, call: int | None) -> None:
        """Follow the matrices of `_note_crosswise` through a dropout and another dtype to their product with values.

        The product goes over the last dimension of its first argument. Matrices that were transposed before it may well
        sum to one over that dimension, so they are left out.
        """
        if not self._crosswise or not _is_readable(given[0]):
            return
        first = plain(given[0])
        known = self._crosswise.get(first.data_ptr())
        if known is None:
            return
        if name in _PRODUCTS:
            if first.shape[-2:] == known[1][-2:] and first.stride(-1) == 1:
                self._note_product(first, call, dimension=known[0], sizes=known[1])
        elif name in {_DROPOUT, _CAST} or (_is_readable(given[1]) and plain(given[1]).data_ptr() in self._noises):
            self._crosswise[plain(result).data_ptr()] = known

    def _note_product(self, weights: Tensor, call: int | None, *, dimension: int, sizes: tuple[int, ...]) -> None:
        found = Operation("crosswise", numbers=(float(dimension), 0.0), before=sizes)
        if (call, found) in self._seen:
            return
        with NoDispatch():
            off = (_few(weights.detach(), sizes[-1]).float().sum(-1) - 1).abs()
            self._add(found, call, (Row(self._measure.values_again(off)),))

    def _beyond(self, weights: Tensor) -> Row:
        """The row of statistics of the weights, with zeros for keys that are not after the query's own place."""
        return Row(self._measure.values_again(weights.triu(1).float()))

    def _note_attention(self, arguments: dict[str, Any], call: int | None) -> None:
        query, key = arguments.get("query"), arguments.get("key")
        if not isinstance(query, Tensor) or not isinstance(key, Tensor) or query.shape[-2] != key.shape[-2]:
            return
        length, mask = query.shape[-2], arguments.get("attn_mask", arguments.get("attn_bias"))
        if length < LEAST_LENGTH:
            return
        is_open = not arguments.get("is_causal") and mask is None
        found = Operation("attention", numbers=(float(is_open), math.nan, math.nan), before=(length, length))
        if not isinstance(mask, Tensor) or mask.dim() < 2 or mask.shape[-1] != length:
            self._add(found, call)
            return
        with NoDispatch():
            allowed = _of_keys(plain(mask).detach())
            if allowed is not None:
                # Each of the keys before the place k is a query to which k is a later key.
                later = allowed * torch.arange(length, device=allowed.device) / length**2
                rows = Row(self._measure.values_again(later)), Row(self._measure.values_again(allowed.float()))
                self._add(found, call, rows)
            elif tuple(mask.shape[-2:]) == (length, length):
                some = _few(plain(mask).detach(), length)
                allowed = some if some.dtype == torch.bool else some > -1e3
                self._add(found, call, (self._beyond(allowed.float() / length),))
            else:
                self._add(found, call)

    def found(self, calls: Sequence[Call]) -> list[_Seen]:
        """What was seen, with the modules of these calls; to be given to `operations` when the statistics are known."""
        named = []
        made = (_Seen(Operation("made", before=one.shape), one.call) for one in self.made.lost)
        for one in (*self._seen.values(), *made):
            known = calls[one.call] if one.call is not None and one.call < len(calls) else None
            place = ("", 0) if known is None else (known.module, known.call)
            named.append(one._replace(found=replace(one.found, module=place[0], call=place[1])))
        return named


def operations(seen: Sequence[_Seen], statistics: npt.NDArray[np.float32]) -> tuple[Operation, ...]:
    """What was seen, with the numbers that the `statistics` of the step give."""
    return tuple(replace(one.found, numbers=_numbers(one, statistics)) if one.rows else one.found for one in seen)


def _numbers(one: _Seen, statistics: npt.NDArray[np.float32]) -> tuple[float, ...]:
    if one.found.kind == "clamp":
        return (one.rows[0](statistics, "mean"),)
    if one.found.kind == "crosswise":
        return one.found.numbers[0], one.rows[0](statistics, "mean")
    beyond, *weights = one.rows
    length = one.found.before[0]
    later = beyond(statistics, "mean") * length
    if not weights:
        return later, *one.found.numbers[1:]
    if math.isnan(one.found.numbers[1]):  # a mask, and not the weights
        return later, math.nan, weights[0](statistics, "mean") * length
    mean, std, zeros, sampled = (weights[0](statistics, name) for name in ("mean", "std", "zeros", "sampled"))
    return later, length * (mean**2 + std**2), length * (1 - zeros / sampled) if sampled else math.nan


def is_start_of_table(rows: Tensor) -> bool:
    """Whether a tensor is a view of the first rows of a table `[rows, 1, features]` that was not computed."""
    if rows.layout is not torch.strided or rows.is_meta or rows.storage_offset() or not rows.is_contiguous():
        return False
    base = rows._base
    return base is not None and base.is_leaf and base.dim() == 3 and base.shape[1:] == rows.shape[1:]


def swaps_sizes(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether a view may have been taken for a transpose: a size is at another place, and others were not moved.

    So it is where the sizes are the same in another order, where the last of three is split and its first part stands
    before the second, or the other way round, where the second one has become the first, where channels come last, and
    where the second and the last of four are joined, although the third is between them.
    """
    old, new = ([size for size in sizes if size != 1] for sizes in (before, after))
    if len(old) < 3 or not new or old == new:
        return False
    is_permuted = sorted(old) == sorted(new)
    is_split = len(new) == 4 and len(old) == 3 and new[0] == old[0] and new[2] == old[1] != new[1]
    is_merged = len(new) == 3 and len(old) == 4 and new[0] == old[0] and new[1] == old[2] != old[1]
    is_first = new[0] == old[1] != old[0]
    is_moved = is_permuted or is_split or is_merged or is_first or joins_around(old, new)
    return is_moved or moves_channels(old, new) or moves_channels(new, old)


@lru_cache(maxsize=1 << 12)
def _name(operation: Any) -> str:
    """The name of an operation of a kind that is noted; empty for any other."""
    schema = getattr(operation, "_schema", None)
    name = schema.name if schema else ""
    is_known = any(name in some for some in (_VIEWS, _SOFTMAXES, _SUMS, _PRODUCTS, _CLAMPS, _OTHERS, INITIALISING))
    return name if is_known or (name.startswith(_ATTENTIONS) and "backward" not in name) else ""


def _has_ragged(values: Sequence[object]) -> bool:
    """Whether any of these is a nested tensor, which has no sizes that could be compared."""
    return any(isinstance(one, Tensor) and one.is_nested for one in values)


def _arguments(operation: Any, given: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
    names = [one.name for one in operation._schema.arguments]
    return {**dict(zip(names, given, strict=False)), **named}


def _is_readable(value: Any) -> bool:
    return isinstance(value, Tensor) and has_plain_elements(plain(value))


def _is_number(value: Any, expected: float) -> bool:
    """Whether a value is the expected number, or a tensor in host memory with it."""
    if isinstance(value, Tensor):
        return value.is_cpu and value.dim() == 0 and math.isclose(float(value), expected)
    return isinstance(value, (int, float)) and math.isclose(value, expected)


def _of_keys(mask: Tensor) -> Tensor | None:
    """Which keys a mask allows, `[..., 1, keys]`; None if they are not the same for all queries, or too many.

    A mask with a row for each query is compared in host memory only, as a GPU would have to be waited for.
    """
    for dimension, stride in enumerate(mask.stride()):
        if stride == 0:  # an expansion repeats it
            mask = mask.narrow(dimension, 0, 1)
    if mask.numel() > MOST_ELEMENTS or (mask.shape[-2] > 1 and not mask.is_cpu):
        return None
    allowed, first = (one if one.dtype == torch.bool else one > -1e3 for one in (mask, mask[..., :1, :]))
    return first if mask.shape[-2] == 1 or torch.equal(allowed, first.expand_as(allowed)) else None


def _few(weights: Tensor, length: int) -> Tensor:
    """Some of the matrices, `[matrices, length, length]`."""
    found = weights.reshape(-1, length, length)
    return found[: max(1, MOST_ELEMENTS // length**2)]
