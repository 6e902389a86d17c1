"""A sink that keeps what it is given, and answers questions about it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.schema import STATISTICS, Finished, Frame, ModuleGraph, Node, Record, Series, Session

Key = tuple[str, "int | None", str, str, str]


class Listening:
    """Keeps every record in memory."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.closed = False
        self._series: dict[Key, Series] = {}
        self._known = 0  # of so many records the series are in it

    def write(self, record: Record) -> None:
        self.records.append(record)

    def close(self) -> None:
        self.closed = True

    @property
    def session(self) -> Session:
        assert isinstance(self.records[0], Session)
        return self.records[0]

    @property
    def frames(self) -> list[Frame]:
        return [record for record in self.records if isinstance(record, Frame)]

    @property
    def graphs(self) -> list[ModuleGraph]:
        return [record for record in self.records if isinstance(record, ModuleGraph)]

    @property
    def finished(self) -> Finished:
        assert isinstance(self.records[-1], Finished)
        return self.records[-1]

    @property
    def series(self) -> dict[Key, Series]:
        for record in self.records[self._known :]:
            if isinstance(record, tuple):
                self._series.update((one.key, one) for one in record)
            self._known += 1
        return self._series

    def row(self, key: Key, frame: int = -1) -> tuple[dict[str, float], Histograms]:
        """The statistics, by name, and the histogram of a series at a frame."""
        at = self.frames[frame]
        row = int(at.rows[np.flatnonzero(at.series == self.series[key].id)[0]])
        return dict(zip(STATISTICS, at.statistics[row].tolist(), strict=True)), at.histograms.row(row)

    def recorded(self, frame: int = -1) -> set[Key]:
        """The series that a frame has."""
        ids = set(self.frames[frame].series.tolist())
        return {key for key, series in self.series.items() if series.id in ids}


def edges_by_name(graph: ModuleGraph, inside: str = "", call: int = 0) -> set[tuple[str, str, bool]]:
    """The edges of one call's inside: names of both ends, and whether gradient flows."""

    def name(node: Node) -> str:
        if node.call is None:
            assert node.tensor is not None
            return node.tensor.path
        return f"{graph.calls[node.call].module}#{graph.calls[node.call].call}"

    at = next(i for i, each in enumerate(graph.calls) if (each.module, each.call) == (inside, call))
    return {
        (name(graph.nodes[edge.source]), name(graph.nodes[edge.target]), edge.gradient)
        for edge in graph.edges
        if graph.nodes[edge.source].inside == at
    }


def expected_row(values: npt.ArrayLike) -> tuple[dict[str, float], dict[int, int]]:
    """What numpy says of `values`: the statistics, and the number of values in each bucket."""
    wide = np.asarray(values).astype(np.float64).reshape(-1)
    finite = wide[np.isfinite(wide)]
    some = finite if len(finite) else np.array([np.nan])
    statistics = {
        "count": len(wide),
        "sampled": len(finite),
        "nan": np.isnan(wide).sum(),
        "positive_infinity": np.isposinf(wide).sum(),
        "negative_infinity": np.isneginf(wide).sum(),
        "zeros": (finite == 0).sum(),
        "min": some.min(),
        "max": some.max(),
        "mean": some.mean(),
        "absolute_mean": np.abs(some).mean(),
        "std": some.std(),
        "l2_norm": np.sqrt(np.square(some).sum()),
    }
    largest = float(np.finfo(np.float32).max)
    return {name: float(np.clip(value, -largest, largest)) for name, value in statistics.items()}, _buckets(
        finite.astype(np.float32)
    )


def _buckets(values: npt.NDArray[np.float32]) -> dict[int, int]:
    """Counted one by one, from the definition: sign, exponent and two bits of the mantissa."""
    counts: dict[int, int] = {}
    for value in values.tolist():
        fraction, exponent = np.frexp(abs(value))
        number = 0 if abs(value) < 2.0**-128 else int((exponent + 126) * 4 + np.floor((fraction * 2 - 1) * 4))
        if 2.0**-128 <= abs(value) < 2.0**-126:
            number = int(abs(value) // 2.0**-128)
        number = -number if value < 0 else number
        counts[number] = counts.get(number, 0) + 1
    return counts


def assert_row(actual: tuple[dict[str, float], Histograms], values: npt.ArrayLike, *, name: object = "") -> None:
    """The row says of `values` what numpy says of them."""
    statistics, buckets = expected_row(values)
    for column in STATISTICS:
        np.testing.assert_allclose(
            actual[0][column], statistics[column], rtol=2e-6, atol=1e-7, err_msg=f"{name} {column}"
        )
    histogram = dict(zip(actual[1].buckets.tolist(), actual[1].counts.tolist(), strict=True))
    assert histogram == buckets, name
