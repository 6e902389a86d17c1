"""A series or a scalar as a table of pandas or polars."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from torchgraph_explorer import OptionError, open_run
from torchgraph_explorer.record.dataframes import LIBRARIES
from torchgraph_explorer.record.scalars.index import Scalar
from torchgraph_explorer.record.steps.history import History
from torchgraph_explorer.schema import STATISTICS


@pytest.fixture(scope="module")
def history(recorded_run: Path) -> History:
    model = open_run(str(recorded_run)).model()
    return model.history(next(one for one in model.series if one.kind == "value"))


SCALAR = Scalar("loss", np.array([0, 5]), np.array([1.5, 2.5]), np.array([np.nan, -1.0]))


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_series_becomes_a_table_with_its_statistics(library: str, history: History) -> None:
    table = history.to_dataframe(library)
    assert type(table).__module__.partition(".")[0] == library
    assert list(table.columns) == ["step", "time", *STATISTICS]
    np.testing.assert_array_equal(table["step"].to_numpy(), history.steps)
    np.testing.assert_array_equal(table["std"].to_numpy(), history.column("std"))


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_scalar_becomes_a_table(library: str) -> None:
    table = SCALAR.to_dataframe(library)
    assert list(table.columns) == ["step", "time", "value"]
    np.testing.assert_array_equal(table["value"].to_numpy(), SCALAR.values)


def test_another_library_is_refused() -> None:
    with pytest.raises(OptionError, match=r"to_dataframe\('arrow'\): choose one of pandas, polars"):
        SCALAR.to_dataframe("arrow")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_that_is_not_there_is_named_with_what_to_do(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(OptionError, match=f"needs {library}.*pip install {library}"):
        SCALAR.to_dataframe(library)


@pytest.mark.slow
def test_reading_a_run_imports_neither(recorded_run: Path) -> None:
    script = "import sys, torchgraph_explorer as t; m = t.open_run(sys.argv[1]).model(); m.history(m.series[0])"
    check = f"{script}; print(sorted({{'pandas', 'polars'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check, str(recorded_run)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
