"""Columns as a table of pandas or polars, which are imported only when somebody asks for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from torchgraph_explorer.errors import OptionError

LIBRARIES = ("pandas", "polars")


def dataframe(columns: Mapping[str, npt.NDArray[Any]], library: str) -> Any:
    """A `DataFrame` of `library`, one of `LIBRARIES`, with these columns.

    Raises:
        OptionError: The library is another one, or is not installed.
    """
    if library not in LIBRARIES:
        raise OptionError(f"to_dataframe({library!r}): choose one of {', '.join(LIBRARIES)}.")
    try:
        return _pandas(columns) if library == "pandas" else _polars(columns)
    except ImportError as missing:
        other = next(one for one in LIBRARIES if one != library)
        raise OptionError(
            f"to_dataframe({library!r}) needs {library}, which cannot be imported: {missing}. "
            f"Install it with `pip install {library}`, or pass {other!r}."
        ) from missing


def _pandas(columns: Mapping[str, npt.NDArray[Any]]) -> Any:
    import pandas

    return pandas.DataFrame(dict(columns))


def _polars(columns: Mapping[str, npt.NDArray[Any]]) -> Any:
    import polars

    return polars.DataFrame(dict(columns))
