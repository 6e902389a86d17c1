"""The distance of histograms, held against that of the elements."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tests.record.pooling import histograms_of
from torchgraph_explorer.histogram import distances

DRAWN = np.random.default_rng(0).standard_normal(4000).astype(np.float32)

PAIRS: dict[str, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]] = {
    "the same": (DRAWN, DRAWN),
    "twice": (DRAWN, 2 * DRAWN),
    "shifted": (DRAWN, DRAWN + 1),
    "far apart": (DRAWN + 20, DRAWN + 90),
    "of other signs": (np.abs(DRAWN), -np.abs(DRAWN)),
    "of many magnitudes": (np.exp(9 * DRAWN), np.exp(9 * DRAWN - 3)),
    "zeros and ones": (np.zeros(5, np.float32), np.ones(5, np.float32)),
    "more zeros": (np.where(DRAWN > 0, DRAWN, 0).astype(np.float32), np.where(DRAWN > 1, DRAWN, 0).astype(np.float32)),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_it_is_how_far_elements_have_to_be_moved_over_their_magnitudes(pair: str) -> None:
    one, other = (np.sort(values.astype(np.float64)) for values in PAIRS[pair])
    expected = np.abs(one - other).mean() / (np.abs(one).mean() + np.abs(other).mean())
    [found] = distances(histograms_of([PAIRS[pair][0]]), histograms_of([PAIRS[pair][1]]))
    assert found == pytest.approx(expected, abs=0.03)
    assert 0 <= found <= 1


def test_rows_do_not_mix() -> None:
    a, b = ([pair[which] for pair in PAIRS.values()] for which in (0, 1))
    alone = [distances(histograms_of([one]), histograms_of([other]))[0] for one, other in zip(a, b, strict=True)]
    np.testing.assert_allclose(distances(histograms_of(a), histograms_of(b)), alone, atol=1e-9)


def test_without_elements_in_one_alone_it_is_one() -> None:
    none = np.zeros(0, np.float32)
    found = distances(histograms_of([none, none, DRAWN]), histograms_of([DRAWN, none, none]))
    assert found.tolist() == [1, 0, 1]
