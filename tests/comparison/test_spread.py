"""`spread`: several runs as one band."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests.comparison.records import Elements, Key, recorded
from torchgraph_explorer import STATISTICS, NotFoundError, OptionError, spread

STEPS = range(0, 60, 10)


def test_a_scalar_of_several_seeds_has_a_mean_and_a_spread(tmp_path: Path) -> None:
    losses = [[3.0, 2.0, 1.0], [5.0, math.nan, 1.5], [4.0, 3.0, 2.0]]
    for number, values in enumerate(losses):
        recorded(tmp_path / str(number), STEPS[:3], scalars={"loss": values})
    found = spread([tmp_path / str(number) for number in range(3)], "loss")
    assert found.steps.tolist() == [0, 10, 20]
    assert found.runs.tolist() == [3, 2, 3]
    np.testing.assert_allclose(found.mean, [4, 2.5, 1.5])
    np.testing.assert_allclose(found.std, [1, math.sqrt(0.5), 0.5])
    np.testing.assert_array_equal(found.low, [3, 2, 1])
    np.testing.assert_array_equal(found.high, [5, 3, 2])


def test_a_series_is_found_by_its_name_and_at_the_nearest_steps(tmp_path: Path) -> None:
    def doubled(_step: int, _key: Key, elements: Elements) -> Elements:
        return 2 * elements

    one = recorded(tmp_path / "one", STEPS)
    other = recorded(tmp_path / "other", range(1, 60, 20), doubled)
    [series] = one.find("second", role="param", kind="value")
    found = spread([one, other], series, statistic="max")
    assert found.steps.tolist() == [1, 21, 41]
    at = STATISTICS.index("max")
    first = one.history(series).statistics[[0, 2, 4], at].astype(np.float64)
    np.testing.assert_array_equal(found.values[0], first)
    np.testing.assert_allclose(found.mean, (found.values[0] + found.values[1]) / 2)


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    one = recorded(tmp_path / "one", STEPS)
    with pytest.raises(NotFoundError, match="no scalar 'loss'"):
        spread([one], "loss")
    with pytest.raises(NotFoundError, match="No statistic is called 'sd'"):
        spread([one], one.series[0], statistic="sd")
    with pytest.raises(OptionError, match="at least one run"):
        spread([], "loss")
