"""One series over the frames of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.histogram import QUANTILES, Histograms, quantiles
from torchgraph_explorer.record.dataframes import dataframe
from torchgraph_explorer.schema import STATISTICS, Series


@dataclass(frozen=True, slots=True)
class History:
    """What was recorded of one series, frame by frame. Frames without the series are left out.

    Attributes:
        series: The series, with the reader's id.
        frames: Index of each frame in its model, ascending; `[n]` uint32.
        steps: Step of each, `[n]` int64.
        times: When each was written, in seconds since the epoch, `[n]` float64.
        statistics: `[n, len(STATISTICS)]` float32.
        histograms: One per frame.
    """

    series: Series
    frames: npt.NDArray[np.uint32]
    steps: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    statistics: npt.NDArray[np.float32]
    histograms: Histograms

    def __len__(self) -> int:
        return len(self.frames)

    def column(self, name: str) -> npt.NDArray[np.float32]:
        """One statistic over the frames, `[n]`.

        Raises:
            NotFoundError: No statistic has this name.
        """
        if name not in STATISTICS:
            raise NotFoundError(f"No statistic is called {name!r}. Choose one of {', '.join(STATISTICS)}.")
        return self.statistics[:, STATISTICS.index(name)]

    def quantiles(self, shares: npt.ArrayLike = QUANTILES) -> npt.NDArray[np.float64]:
        """The values below which each of `shares` of the elements lies, `[n, shares]`; NaN where there were none.

        Raises:
            OptionError: A share is not from 0 to 1.
        """
        return quantiles(self.histograms, shares, low=self.column("min"), high=self.column("max"))

    def to_dataframe(self, library: str = "pandas") -> Any:
        """A table with a row for each frame: `step`, `time` and the statistics, as a `DataFrame` of pandas or polars.

        Args:
            library: `"pandas"` or `"polars"`, which must be installed.

        Raises:
            OptionError: The library is another one, or is not installed.

        Example:
            >>> model = open_run("runs").model()
            >>> [series] = model.find("stage1.0.conv1", role="output", kind="value")
            >>> table = model.history(series).to_dataframe()
            >>> table[["step", "std"]].shape
            (2, 2)
        """
        statistics = {name: self.statistics[:, column] for column, name in enumerate(STATISTICS)}
        return dataframe({"step": self.steps, "time": self.times, **statistics}, library)
