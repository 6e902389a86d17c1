"""`model.related(finding)`: what is unusual while a finding lasts, on series that are known to be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.findings.test_changes import NOISY, STEPS, name_of, recorded, steady
from torchgraph_explorer.errors import NotFoundError, OptionError
from torchgraph_explorer.finding import Finding

pytestmark = pytest.mark.slow

Floats = npt.NDArray[np.float64]


def finding(first: int, last: int) -> Finding:
    return Finding(kind="loss-spike", severity="warning", module=None, step=first, last_step=last, text="It jumped.")


def shrunk(step: int) -> Floats:
    """Series 7 is small at the steps 40 to 49, and from 37 on; the loss, and series 0, are large at them."""
    scales = np.ones(NOISY)
    scales[7] = 0.01 if 37 <= step < 50 else 1.0
    scales[0] = 9.0 if 40 <= step < 50 else 1.0
    return scales


def test_what_is_unusual_at_the_steps_of_a_finding_comes_first(tmp_path: Path) -> None:
    found = recorded(tmp_path, shrunk).related(finding(40, 49))
    known = {name_of(one.what): one for one in found.ranked[:3]}
    assert set(known) == {"m7", "m0", "loss"}
    small = known["m7"]
    assert (small.measure, small.share, small.ahead, small.is_beyond_chance) == ("size", 1.0, 3, True)
    assert small.score < 0 < known["loss"].score
    assert small.elsewhere <= 0.1
    assert (known["m0"].ahead, known["loss"].ahead) == (0, 0)
    assert not any(one.is_beyond_chance for one in found.ranked[3:])
    assert (found.target, found.steps, found.others) == ("loss-spike of the run", 10, STEPS - 10)


def test_a_finding_of_one_step_is_compared_by_how_far_things_are(tmp_path: Path) -> None:
    found = recorded(tmp_path, shrunk).related(finding(40, 40))
    assert {name_of(one.what) for one in found.ranked[:3]} == {"m7", "m0", "loss"}


def test_of_noise_hardly_anything_is_beyond_chance(tmp_path: Path) -> None:
    model = recorded(tmp_path, steady)
    alarms = [any(one.is_beyond_chance for one in model.related(finding(at, at + 5)).ranked) for at in range(2, 74, 3)]
    assert sum(alarms) <= 5  # of 24; 1 is expected, and neighbours share their steps


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        pytest.param(900, 910, "loss-spike of the run is at none of the recorded steps", id="other run"),
        pytest.param(
            0, 75, "is at 76 of 80 recorded steps. To say what is unusual then, at least 8 other", id="always"
        ),
    ],
)
def test_a_finding_without_other_steps_is_refused(tmp_path: Path, first: int, last: int, message: str) -> None:
    with pytest.raises(NotFoundError, match=message):
        recorded(tmp_path, steady).related(finding(first, last))


def test_scalars_are_related_to_scalars_and_series(tmp_path: Path) -> None:
    walk = np.exp(np.random.default_rng(3).standard_normal(STEPS).cumsum() / 2)
    model = recorded(tmp_path, lambda step: np.where(np.arange(NOISY) == 0, walk[step], 1.0))
    assert "loss" in [one.what for one in model.related(model.series[0]).ranked[:2]]


def test_what_is_unusual_where_a_scalar_is_above_a_limit_comes_first(tmp_path: Path) -> None:
    found = recorded(tmp_path, shrunk).related("loss", above=4.0)
    known = {name_of(one.what): one for one in found.ranked[:3]}
    assert set(known) == {"m7", "m0", "loss"}
    assert (known["m7"].share, known["m7"].score < 0, known["m7"].is_beyond_chance) == (1.0, True, True)
    assert (found.target, found.steps, found.others) == ("loss above 4", 10, STEPS - 10)


@pytest.mark.parametrize(
    ("measure", "limit"), [pytest.param("size", 0.5, id="size"), pytest.param("std", 0.5, id="std")]
)
def test_a_limit_of_a_series_is_in_its_own_units(measure: str, limit: float, tmp_path: Path) -> None:
    model = recorded(tmp_path, shrunk)
    found = model.related(model.series[7], below=limit, measure=measure)
    assert (found.steps, found.target) == (13, f"m7, output, {measure} below {limit:g}")


def test_other_findings_are_told_with_what_chance_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = recorded(tmp_path, shrunk)
    asked, same, often, never = finding(40, 49), finding(38, 49), finding(0, 79), finding(60, 69)
    monkeypatch.setattr(type(model), "findings", lambda _self: (asked, same, often, never))
    rates = {one.finding.step: one for one in model.related(asked).findings}
    assert list(rates) == [38, 0, 60]
    assert (rates[38].share, rates[38].is_beyond_chance) == (1.0, True)
    assert rates[38].elsewhere == pytest.approx(2 / 70)
    assert (rates[0].share, rates[0].elsewhere, rates[0].is_beyond_chance) == (1.0, 1.0, False)
    assert (rates[60].share, rates[60].is_beyond_chance) == (0.0, False)


def test_a_limit_that_nothing_reaches_and_a_measure_that_is_none_are_refused(tmp_path: Path) -> None:
    model = recorded(tmp_path, shrunk)
    with pytest.raises(NotFoundError, match=r"loss above 1e\+06 is at none of the recorded steps"):
        model.related("loss", above=1e6)
    with pytest.raises(OptionError, match="measure='median' is not one of size"):
        model.related(model.series[0], above=1.0, measure="median")
    with pytest.raises(OptionError, match="A finding has no limit"):
        model.related(finding(40, 49), above=1.0)
