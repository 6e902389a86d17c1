"""The x-ray as an SVG file, for a paper: cells as an image in it, and all writing as text."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.printable import printable
from torchgraph_explorer.record.cells.codes import Codes, decode
from torchgraph_explorer.record.cells.reading import Wanted
from torchgraph_explorer.record.cells.statistics import CELL_STATISTICS, STATISTIC_NAMES
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.scalars.index import Scalar
from torchgraph_explorer.xray.colours import BAD_COLOUR, STOPS, ZERO_COLOUR, ColourScale, pixels_of, scale_of
from torchgraph_explorer.xray.order import execution_order
from torchgraph_explorer.xray.png import png

MOST_COLUMNS = 1024
"""Columns of the image; of more recorded steps, each column stands for several."""

MOST_NAMED = 40
"""Rows whose names are written; of more, some are."""

_WIDTH, _ROWS_PX, _LOSS_PX, _FOOT_PX, _HEAD_PX = 640, 240, 44, 40, 26
_GUTTER_PX, _RIGHT_PX = 112, 10
_NAME = 18
"""So many characters fit beside the rows, also in a wide font such as DejaVu Sans."""
_WIDE = 20
"""The loss is drawn logarithmically if its whole range is so many times that of 99 % of its values."""
_LEAST_ROW_PX = 9


@dataclass(frozen=True, slots=True)
class XrayMark:
    """A place that is marked in the picture: where a finding begins.

    Attributes:
        module: Name of the module; None for the whole run.
        step: The step.
        severity: `error`, `warning` or `info`.
        text: What it is.
    """

    module: str | None
    step: int
    severity: str
    text: str


_COLOURS = {"error": "#c81414", "warning": "#b26206", "info": "#2458d3"}
"""Of marks, the worst first."""
_DIAMOND_PX, _MOST_TOLD = 12, 6
"""From corner to corner of a mark, its outline included; and how many findings its tooltip tells."""


def xray_svg(
    model: ModelRecord,
    statistic: str | None = None,
    *,
    marks: Sequence[XrayMark] = (),
    title: str = "",
    width: int = _WIDTH,
) -> str:
    """The picture of all recorded steps of `model`, as the text of an SVG file.

    Rows are modules in the order of execution, columns steps. A cell that stands for several steps shows the largest
    value, and is red if any of them is not finite. Above it is the loss, if one was logged.

    Args:
        model: The model.
        statistic: One of `STATISTIC_NAMES`; by default the first one that the model has.
        marks: Where findings begin.
        title: What is written above it.
        width: Of the picture, in pixels.

    Raises:
        OptionError: There is no such statistic, no step, or no module.
        RecordError: The run is gone.
    """
    name = statistic or _first_statistic(model)
    if name not in STATISTIC_NAMES:
        raise OptionError(f"statistic is {name!r}; it is one of {', '.join(STATISTIC_NAMES)}.")
    if not len(model):
        raise OptionError(f"Model {model.name!r} has no recorded step yet, so there is nothing to draw.")
    unit = 1
    while (len(model) - 1) // unit >= MOST_COLUMNS:
        unit *= 2
    cells = model.cells(Wanted(name, unit=unit))
    if not cells.modules:
        raise OptionError(f"Model {model.name!r} has steps and no series of a module, so there is nothing to draw.")
    order = execution_order(cells.modules, model.graphs)
    number = {module: at for at, module in enumerate(cells.modules)}
    codes = cells.codes[:, [number[module] for module in order]].T
    steps = np.append(model.steps[cells.first], _end(model.steps[cells.first], int(model.steps[-1])))
    names = [module or model.session.class_name for module in order]
    picture = _Picture(name, order, names, codes, steps.astype(float), width, title or f"{model.name}")
    return "\n".join(picture.svg(_loss(model), marks))


def _first_statistic(model: ModelRecord) -> str:
    kinds = {(one.role, one.kind) for one in model.series}
    found = (one.name for one in CELL_STATISTICS if one.role is None or (one.role, one.kind) in kinds)
    return next(found)


def _end(first: np.ndarray[tuple[int], np.dtype[np.int64]], last: int) -> float:
    """Where the last column ends, in steps."""
    gap = (first[-1] - first[0]) / (len(first) - 1) if len(first) > 1 else 1.0
    return float(max(last + min(1.0, gap), first[-1] + gap))


def _loss(model: ModelRecord) -> Scalar | None:
    """The first logged scalar whose name ends in `loss`, else the first one."""
    scalars = model.scalars()
    losses = (one for name, one in scalars.items() if name.lower().endswith("loss"))
    return next(losses, None) or next(iter(scalars.values()), None)


@dataclass(frozen=True, slots=True)
class _Picture:
    statistic: str
    modules: list[str]
    names: list[str]
    codes: Codes
    edges: np.ndarray[tuple[int], np.dtype[np.float64]]
    width: int
    title: str

    @property
    def rows_px(self) -> float:
        return max(_ROWS_PX, min(len(self.names), MOST_NAMED) * _LEAST_ROW_PX)

    @property
    def plot_px(self) -> float:
        return self.width - _GUTTER_PX - _RIGHT_PX

    def x(self, step: float) -> float:
        share = (step - self.edges[0]) / (self.edges[-1] - self.edges[0])
        return _GUTTER_PX + float(share) * self.plot_px

    def svg(self, loss: Scalar | None, marks: Sequence[XrayMark]) -> Iterator[str]:
        top = _HEAD_PX + (_LOSS_PX + 6 if loss is not None else 0)
        height = top + self.rows_px + _FOOT_PX
        one = next(one for one in CELL_STATISTICS if one.name == self.statistic)
        scale = scale_of(self.codes, is_share=one.is_share)
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:g}" width="{self.width}" '
            f'height="{height:g}" font-family="system-ui, sans-serif" font-size="9" fill="#1a1f2b">'
        )
        yield '<rect width="100%" height="100%" fill="#ffffff"/>'
        yield _text(_GUTTER_PX, 16, f"{self.title}: {one.label.lower()}", size=12, weight=600)
        if loss is not None:
            yield from self._loss(loss)
        yield self._image(scale, top)
        yield from self._names(top)
        yield from self._axis(top + self.rows_px)
        yield from self._marks(marks, top)
        yield from self._legend(scale, height - 14)
        yield "</svg>"

    def _image(self, scale: ColourScale, top: float) -> str:
        """The cells: one pixel high a row, and at least as many columns as there are pixels."""
        columns = int(self.plot_px)
        at = self.edges[0] + np.arange(columns + 1) / columns * (self.edges[-1] - self.edges[0])
        starts = np.clip(np.searchsorted(self.edges, at[:-1], side="right") - 1, 0, self.codes.shape[1] - 1)
        stops = np.maximum(np.searchsorted(self.edges[:-1], at[1:], side="left"), starts + 1)
        shown = np.stack([self.codes[:, a:b].max(axis=1) for a, b in zip(starts, stops, strict=True)], axis=1)
        data = base64.b64encode(png(pixels_of(shown, scale))).decode()
        return (
            f'<image x="{_GUTTER_PX}" y="{top:g}" width="{self.plot_px:g}" height="{self.rows_px:g}" '
            f'preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
        )

    def _names(self, top: float) -> Iterator[str]:
        row = self.rows_px / len(self.names)
        every = math.ceil(_LEAST_ROW_PX / row)
        for at in range(0, len(self.names), every):
            text = _shortened(self.names[at])
            yield _text(_GUTTER_PX - 4, top + (at + 0.5) * row + 3, text, anchor="end", colour="#4a5364")

    def _axis(self, bottom: float) -> Iterator[str]:
        for step in _ticks(float(self.edges[0]), float(self.edges[-1])):
            yield _text(self.x(step), bottom + 11, f"{step:,.0f}", anchor="middle", colour="#656e7e")

    def _loss(self, loss: Scalar) -> Iterator[str]:
        is_there = np.isfinite(loss.values) & (loss.steps >= self.edges[0]) & (loss.steps <= self.edges[-1])
        steps, values = loss.steps[is_there], loss.values[is_there]
        is_wide = len(values) > 0 and _is_wide(values)
        name = f"{_shortened(loss.name, _NAME - 5)}, log" if is_wide else _shortened(loss.name)
        yield _text(_GUTTER_PX - 4, _HEAD_PX + 14, name, anchor="end", colour="#4a5364")
        for step in loss.steps[~np.isfinite(loss.values)][:200].tolist():
            if self.edges[0] <= step <= self.edges[-1]:
                place = f'x="{self.x(step) - 1:.1f}" y="{_HEAD_PX}" width="2" height="{_LOSS_PX}"'
                yield f'<rect {place} fill="{_hex(BAD_COLOUR)}"/>'
        if not len(values):
            return
        label = f"{_short(values.min())} to {_short(values.max())}"
        values = np.log(values) if is_wide else values
        yield _text(_GUTTER_PX - 4, _HEAD_PX + 25, label, anchor="end", colour="#656e7e")
        low, high = float(values.min()), float(values.max())
        x = np.array([self.x(step) for step in steps.tolist()])
        y = _HEAD_PX + _LOSS_PX * (1 - (values - low) / (high - low or 1.0))
        points = " ".join(f"{one:.1f},{other:.1f}" for one, other in _thinned(x, y))
        yield f'<polyline points="{points}" fill="none" stroke="#2458d3" stroke-width="1.1"/>'

    def _marks(self, marks: Sequence[XrayMark], top: float) -> Iterator[str]:
        """Diamonds. Those that would cover each other are one, as in the viewer."""
        row = self.rows_px / len(self.names)
        drawn: list[tuple[float, float, list[XrayMark]]] = []
        for one in marks:
            if not self.edges[0] <= one.step <= self.edges[-1]:
                continue
            at = self.modules.index(one.module) if one.module in self.modules else -1
            x, y = self.x(one.step), top if at < 0 else top + (at + 0.5) * row
            covered = (some for left, high, some in drawn if abs(left - x) + abs(high - y) < _DIAMOND_PX)
            if (some := next(covered, None)) is None:
                drawn.append((x, y, [one]))
            else:
                some.append(one)
        for x, y, some in drawn:
            severity = min((one.severity for one in some), key=[*_COLOURS].index)
            title = " ".join(one.text for one in some[:_MOST_TOLD])
            yield (
                f'<path d="M{x:.1f} {y - 5:.1f}l5 5-5 5-5-5z" fill="{_COLOURS[severity]}" '
                f'stroke="#fff" stroke-width="1"><title>{_clean(title)}</title></path>'
            )

    def _legend(self, scale: ColourScale, y: float) -> Iterator[str]:
        x = float(_GUTTER_PX)
        if np.isfinite(decode(self.codes)).any():
            yield from self._ramp(scale, x, y)
        else:
            yield _text(x, y + 7, "nothing finite")
        yield f'<rect x="{x + 226}" y="{y}" width="8" height="8" fill="{_hex(BAD_COLOUR)}"/>'
        yield _text(x + 238, y + 7, "NaN or ∞")
        if scale.is_log and (decode(self.codes) == 0).any():
            yield f'<rect x="{x + 292}" y="{y}" width="8" height="8" fill="{_hex(ZERO_COLOUR)}"/>'
            yield _text(x + 304, y + 7, "zero")

    def _ramp(self, scale: ColourScale, x: float, y: float) -> Iterator[str]:
        yield _text(x, y + 7, f"≤ {_short(scale.low)}" if scale.is_log else _short(scale.low))
        stops = "".join(
            f'<stop offset="{at / (len(STOPS) - 1)}" stop-color="{_hex(colour)}"/>' for at, colour in enumerate(STOPS)
        )
        yield f'<defs><linearGradient id="ramp">{stops}</linearGradient></defs>'
        yield f'<rect x="{x + 56}" y="{y}" width="86" height="8" fill="url(#ramp)"/>'
        yield _text(x + 148, y + 7, f"≥ {_short(scale.high)}, log" if scale.is_log else _short(scale.high))


def _short(value: float) -> str:
    """A number with two to four digits: `0.121`, `4094`, `4.0e−8`."""
    size = abs(value)
    if size != 0 and not 1e-3 <= size < 1e6:
        mantissa, exponent = f"{value:.1e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        text = f"{float(f'{value:.{4 if size >= 1000 else 3}g}'):g}"
    return text.replace("-", "−")


def _is_wide(values: np.ndarray) -> bool:
    """Whether the largest of positive values would press all others flat."""
    low = values.min()
    return bool(low > 0 and values.max() - low > _WIDE * (np.quantile(values, 0.99) - low))


def _thinned(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[float, float]]:
    """The lowest and the highest of the points on one pixel, in order."""
    for pixel in np.unique(x.round()):
        here = np.flatnonzero(x.round() == pixel)
        for at in sorted({int(here[y[here].argmin()]), int(here[y[here].argmax()])}):
            yield float(x[at]), float(y[at])


def _ticks(low: float, high: float) -> Iterator[float]:
    """Round steps, about six of them."""
    rough = max((high - low) / 6, 1.0)
    unit = 10 ** math.floor(math.log10(rough))
    gap = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= rough)
    at = math.ceil(low / gap) * gap
    while at < high:
        yield at
        at += gap


def _shortened(name: str, most: int = _NAME) -> str:
    half = most // 2
    return name if len(name) <= most else f"{name[: half - 1]}…{name[-half:]}"


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 9, weight: int = 400, colour: str = "#1a1f2b"
) -> str:
    style = f'font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{_clean(text)}</text>'


def _clean(text: str) -> str:
    """What XML can hold: a record may have any characters in a name."""
    return escape("".join(one if one.isprintable() else "�" for one in printable(text)))


def _hex(colour: Sequence[int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)
