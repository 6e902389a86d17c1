"""When snapshots are uploaded, over simulated runs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from torchgraph_wandb.upload_schedule import (
    HORIZON,
    MAX_AGE,
    MAX_AGE_SHARE,
    MAX_UPLOADS,
    RESERVED_FOR_END,
    SEND_INTERVAL,
    is_due,
    is_page_due,
)

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0


@dataclass(frozen=True)
class Simulated:
    """A run that is over, or was killed.

    Attributes:
        begun: When each snapshot was begun.
        arrived: When the server had it, at the latest.
        uploads: Files, with those at the end.
    """

    begun: list[float]
    arrived: list[float]
    uploads: int

    def age(self, at: float) -> float:
        """How old the chart on the server is, at most, if the run is killed then."""
        there = [begun for begun, arrived in zip(self.begun, self.arrived, strict=True) if arrived <= at]
        return at - there[-1]


def simulate(seconds: float, *, making: float = 2.0, step: float = 0.5) -> Simulated:
    """A run that looks every so often whether a snapshot is due, as the sink does."""
    begun: list[float] = []
    uploads = pages = 0
    now = 0.0
    while now < seconds:
        if is_due(now, begun[-1] if begun else None, uploads, making=making if begun else 0.0):
            page = int(is_page_due(now, pages))
            begun, uploads, pages = [*begun, now], uploads + 1 + page, pages + page
        now += max(step, now / 20_000)  # exact enough, and thirty days take no longer than a day
    return Simulated(begun, [one + making + SEND_INTERVAL for one in begun], uploads + RESERVED_FOR_END)


@pytest.mark.parametrize(
    "seconds",
    [10.0, MINUTE, 10 * MINUTE, HOUR, 5 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY, 300 * DAY],
    ids=lambda seconds: f"{seconds:g} s",
)
@pytest.mark.parametrize("making", [0.3, 2.0, 6.0])
def test_no_run_uploads_more_than_120_files(seconds: float, making: float) -> None:
    assert simulate(seconds, making=making).uploads <= MAX_UPLOADS == 120


def deaths(until: float) -> list[float]:
    """Moments at which a run may be killed."""
    return [20.0 * 1.003**number for number in range(3_000) if 20.0 * 1.003**number < until]


@pytest.mark.parametrize("making", [0.3, 2.0, 4.0])
def test_a_killed_run_has_a_chart_that_is_no_older_than_a_minute_or_a_twentieth_of_the_run(making: float) -> None:
    run = simulate(14 * HOUR, making=making)
    late = [
        at
        for at in deaths(14 * HOUR)
        if run.age(at) > max(MAX_AGE, MAX_AGE_SHARE * at) + SEND_INTERVAL * (at > 20 * MINUTE) + 1
    ]
    assert late == []


def test_the_first_snapshot_is_on_the_server_in_ten_seconds() -> None:
    begun = simulate(10.0, making=2.0).begun[0]
    assert begun + 2.0 + 5.5 < 10  # made, and uploaded by a client that waits for five seconds


@pytest.mark.slow
def test_what_is_left_after_that_lasts_for_thirty_days() -> None:
    run = simulate(40 * DAY)
    late = [begun for begun in run.begun if begun > 16 * HOUR]
    assert len(late) >= 6
    assert late[-1] == pytest.approx(HORIZON, rel=0.01)
    assert [at for at in deaths(30 * DAY) if run.age(at) > 0.4 * at and at > 14 * HOUR] == []


def test_a_snapshot_that_took_long_puts_off_the_next() -> None:
    assert not is_due(299.0, 100.0, 3, making=20.0)
    assert is_due(300.0, 100.0, 3, making=20.0)


def test_the_large_page_is_uploaded_a_few_times_only() -> None:
    pages: list[float] = []
    for second in range(0, 30 * 24 * 3600, 10):
        if is_page_due(second, len(pages)):
            pages.append(second)
    assert pages == [20, 1_280, 81_920]
