"""The table's parts of the x-ray."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from torchgraph_explorer.record.cells.codes import Codes, decode, is_bad
from torchgraph_explorer.record.cells.statistics import TENSOR_STATISTICS
from torchgraph_explorer.xray.colours import scale_of
from torchgraph_wandb.chart_data import ChartData, place_of
from torchgraph_wandb.text_encoding import encode_codes, encode_flags, encode_floats, listed, size_codes
from torchgraph_wandb.xray_data import XrayData

NAMES = tuple(one.name for one in TENSOR_STATISTICS)

XRAY_FIELDS = ("first", "last", "ranges", "loss", "loss_low", "loss_high", "loss_mean", "loss_bad")
"""Fields of the one line of the part `xray`.

- `first`, `last`: lists, the first and the last step of each column. `ranges`: the range of the colours of each
  statistic, NaN where it was not recorded.
- `loss`: name of a scalar; empty without one. The others: its least, largest and mean value in each column, and flags
  where it is not finite.
"""

ROW_FIELDS = ("module", "label", "depth", "id", "order", "above", "inside_count", "key", "inside")
"""Of a line of the part `xray_rows`, which is a module; behind them its cells of each statistic, and then its folded
cells of each statistic: the largest of its own and of those of all modules inside it.

- `id`: identifies the module in every run. `order`: rows sorted by this text stand in order, in every run.
- `above`: the ids of the rows that it is inside, each between slashes.
- `inside_count`: how many rows are inside it. `key`: its first call. `inside`: key of the inside which that is in.
- Cells are one code for each column. They are empty if nothing of the statistic was recorded; folded cells also
  if there is nothing inside.
"""

FIELDS = (
    *ROW_FIELDS,
    *(f"cells_{name}" for name in NAMES),
    *(f"folded_{name}" for name in NAMES),
)

ABOVE_SEPARATOR = "/"

MOST_ABOVE = 24
"""Rows above one that are named: names in a record may be nested as deeply as they are long."""


@dataclass(frozen=True, slots=True)
class XrayRow:
    """A module as a row, the rows of the modules inside it behind it.

    Attributes:
        module: Its name.
        label: Its name without that of the row above it.
        above: The names of the rows that it is inside, from the outermost on.
        order: Its number among the rows inside the same one, behind those of the rows that it is inside.
        inside: Indices in `XrayData.modules` of itself and of all modules inside it; itself is the first.
    """

    module: str
    label: str
    above: tuple[str, ...]
    order: tuple[int, ...]
    inside: tuple[int, ...]


def xray_line(xray: XrayData) -> tuple[str, ...]:
    """The line of the part `xray`."""
    ranges = [_range(xray.codes.get(one.name), is_share=one.is_share) for one in TENSOR_STATISTICS]
    loss = xray.loss
    parts = (
        ("", "", "", "", "")
        if loss is None
        else (
            loss.name,
            *(encode_floats(values) for values in (loss.low, loss.high, loss.mean)),
            encode_flags(loss.is_bad.astype(np.int64)),
        )
    )
    steps = (listed(map(str, some.tolist())) for some in (xray.first, xray.last))
    return (*steps, encode_floats(ranges), *parts)


def _range(codes: Codes | None, *, is_share: bool) -> tuple[float, float]:
    if codes is None:
        return np.nan, np.nan
    if not (np.nan_to_num(decode(codes)) > 0).any():
        return 0.0, float(is_share)
    scale = scale_of(codes, is_share=is_share)
    return scale.low, scale.high


def xray_rows(data: ChartData, xray: XrayData) -> Iterator[tuple[str, ...]]:
    """The lines of the part `xray_rows`: modules with what is inside them behind them."""
    for row in nested(xray.modules):
        yield (
            row.module,
            row.label or data.session.class_name,
            str(len(row.above)),
            module_id(row.module),
            "".join(f"{number:04x}" for number in row.order[:MOST_ABOVE]),
            "".join(f"{ABOVE_SEPARATOR}{module_id(name)}{ABOVE_SEPARATOR}" for name in row.above[:MOST_ABOVE]),
            str(len(row.inside) - 1),
            *place_of(data, row.module, None),
            *(_cells(xray, name, row.inside[:1]) for name in NAMES),
            *(_cells(xray, name, row.inside) if len(row.inside) > 1 else "" for name in NAMES),
        )


def module_id(module: str) -> str:
    """Identifies a module in every run, in a few characters that need no escape."""
    return f"{zlib.crc32(module.encode()):08x}"


def _cells(xray: XrayData, statistic: str, modules: Sequence[int]) -> str:
    codes = xray.codes.get(statistic)
    if codes is None:
        return ""
    largest = codes[list(modules)].max(axis=0)
    if not largest.any():
        return ""
    values = decode(largest).astype(np.float64)
    return encode_codes(size_codes(np.where(is_bad(largest), np.inf, values)))


def nested(modules: Sequence[str]) -> list[XrayRow]:
    """`modules` as rows, each before those inside it, otherwise in the order given."""
    known = dict.fromkeys(modules)
    children: dict[str | None, list[str]] = {}
    for name in modules:
        children.setdefault(_parent(name, known), []).append(name)
    numbers = {name: number for number, name in enumerate(modules)}
    inside: dict[str, list[int]] = {name: [] for name in modules}
    rows: list[XrayRow] = []

    def within(name: str | None, above: tuple[str, ...], order: tuple[int, ...]) -> list[_Waiting]:
        return [_Waiting(child, above, (*order, at)) for at, child in enumerate(children.get(name, []))]

    # Without recursion: names come from a record, and may be nested as deeply as a name is long.
    waiting = within(None, (), ())[::-1]
    while waiting:
        name, above, order = waiting.pop()
        for outer in (name, *above):
            inside[outer].append(numbers[name])
        label = name.removeprefix(f"{above[-1]}.") if above and above[-1] else name
        rows.append(XrayRow(name, label, above, order, ()))
        waiting += within(name, (*above, name), order)[::-1]
    return [replace(row, inside=tuple(inside[row.module])) for row in rows]


class _Waiting(NamedTuple):
    """A row that is still to be added."""

    name: str
    above: tuple[str, ...]
    order: tuple[int, ...]


def _parent(name: str, known: Iterable[str]) -> str | None:
    """The innermost of `known` that a module is inside."""
    outer = name
    while outer:
        outer = outer.rpartition(".")[0]
        if outer in known and outer != name:
            return outer
    return None
