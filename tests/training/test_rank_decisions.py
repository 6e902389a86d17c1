"""The first rank decides which steps are kept; the others follow, and wait only at the end."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import pytest

from tests.record.examples import other_session
from torchgraph_explorer.training import flight_recorder
from torchgraph_explorer.training.flight_recorder import Entry, FlightRecorder
from torchgraph_explorer.training.rank_decisions import Alone, FirstRank, OtherRank, decisions


@dataclass
class Step:
    """The kept tensors of a step, as a flight recorder sees them."""

    size: int = 8
    before: int = 2
    is_kept: bool = False
    reasons: list[str] = field(default_factory=list)
    is_done: bool = False

    def ask(self, reason: str) -> None:
        self.reasons.append(reason)

    def arrays(self) -> object:
        return ()

    def done(self, used: int | None) -> None:
        self.is_done = True


class Rank:
    """The recorder of one rank, and the steps that it has written."""

    def __init__(self, folder: Path, number: int, *, model: str = "net") -> None:
        session = other_session(f"rank {number}", rank=number, world_size=2, model=model)
        self.recorder = FlightRecorder(lambda _: None, decisions(session, str(folder)))
        self.written: list[int] = []

    def step(self, number: int, *, reasons: tuple[str, ...] = ()) -> None:
        kept = Step(reasons=[*reasons])
        self.recorder.take(Entry(number, kept, lambda: self.written.append(number)))


@pytest.mark.parametrize("late", [0, 3, 7], ids="{} steps behind".format)
def test_the_other_rank_keeps_what_the_first_one_does(late: int, tmp_path: Path) -> None:
    first, other = Rank(tmp_path, 0), Rank(tmp_path, 1)
    for number in range(20 + late):
        other.step(number)
        if number >= late:
            first.step(number - late, reasons=("loss above 3",) if number - late == 10 else ())
    other.recorder.look()
    assert first.written == other.written == [8, 9, 10]


@pytest.mark.parametrize("behind", [1, 4, 11], ids="{} steps behind".format)
def test_a_rank_that_is_behind_keeps_what_the_first_one_does(behind: int, tmp_path: Path) -> None:
    first, other = Rank(tmp_path, 0), Rank(tmp_path, 1)
    for number in range(16):
        first.step(number, reasons=("odd",) if number == 10 else ())
        if number >= behind:
            other.step(number - behind)
    for number in range(16 - behind, 16):
        other.step(number)
    assert first.written == other.written == [8, 9, 10]


def test_of_a_step_that_a_rank_never_takes_those_before_it_are_kept(tmp_path: Path) -> None:
    first, other = Rank(tmp_path, 0), Rank(tmp_path, 1)
    for number in range(4):
        first.step(number)
        other.step(number)
    for each in (first, other):
        each.recorder.ask(4, "an exception was raised")
        each.recorder.look()
        each.recorder.end()
    assert first.written == other.written == [2, 3]


def test_a_step_that_is_asked_for_while_it_is_on_is_kept_by_both(tmp_path: Path) -> None:
    first, other = Rank(tmp_path, 0), Rank(tmp_path, 1)
    for number in range(6):
        first.step(number)
        other.step(number)
    first.recorder.ask(6, "odd")
    other.step(6)
    first.step(6, reasons=("odd",))
    other.step(7)
    assert first.written == other.written == [4, 5, 6]


def test_what_is_asked_for_of_one_model_is_nothing_to_another_one_of_the_run(tmp_path: Path) -> None:
    generator, other = Rank(tmp_path, 0, model="G"), Rank(tmp_path, 1, model="D")
    for number in range(3):
        generator.step(number, reasons=("odd",) if number == 2 else ())
        other.step(number)
    generator.recorder.end()
    other.recorder.look()
    assert (generator.written, other.written) == ([0, 1, 2], [])
    assert not other.recorder._decisions.is_over


def test_the_first_rank_keeps_what_it_cannot_tell_the_others(tmp_path: Path) -> None:
    (tmp_path / "plugins").write_text("a file, where a folder should be")
    first = Rank(tmp_path, 0)
    first.step(0)
    with pytest.raises(OSError, match="plugins"):
        first.step(1, reasons=("odd",))
    first.step(2)
    with pytest.raises(OSError, match="plugins"):
        first.recorder.ask(2, "odd again")
    assert first.written == [0, 1, 2]


def test_a_step_that_cannot_be_held_is_released() -> None:
    class Broken(Step):
        def arrays(self) -> object:
            raise RuntimeError("the GPU has failed")

    broken = Broken()
    with pytest.raises(RuntimeError, match="the GPU has failed"):
        FlightRecorder(lambda _: None).take(Entry(0, broken, lambda: None))
    assert broken.is_done


def test_at_the_end_the_other_rank_waits_for_what_the_first_one_still_decides(tmp_path: Path) -> None:
    first, other = Rank(tmp_path, 0), Rank(tmp_path, 1)
    for number in range(4):
        other.step(number)
    closing = threading.Thread(target=other.recorder.end)
    closing.start()
    for number in range(4):
        first.step(number, reasons=("odd",) if number == 3 else ())
    assert closing.is_alive(), "it did not wait"
    first.recorder.end()
    closing.join(60)
    assert first.written == other.written == [1, 2, 3]


@pytest.mark.parametrize(
    ("has_ended", "at_least", "at_most"),
    [(True, 0, 0.1), (False, 0.2, 60)],
    ids=["the first rank has ended", "the first rank was killed"],
)
def test_the_end_waits_no_longer_than_is_stated(
    has_ended: bool, at_least: float, at_most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flight_recorder, "LAST_SECONDS", 0.2)
    first, other = Rank(tmp_path, 0), Rank(tmp_path, 1)
    other.step(0)
    if has_ended:
        first.recorder.end()
    began = monotonic()
    other.recorder.end()
    assert at_least <= monotonic() - began < at_most


def test_what_an_earlier_session_asked_for_is_over(tmp_path: Path) -> None:
    first = Rank(tmp_path, 0)
    first.recorder.ask(3, "odd")
    other = Rank(tmp_path, 1)
    other.step(3)
    assert other.written == []


def test_a_line_that_is_not_complete_is_read_later(tmp_path: Path) -> None:
    file = tmp_path / "asked.jsonl"
    other = OtherRank(file)
    assert list(other.news()) == []
    for piece, expected in (("[3, ", []), ('1]\n[4]\nx\n[5, "odd"]\n[6', [(3, "1"), (5, "odd")]), ("]\n", [])):
        with file.open("a", encoding="utf-8") as open_file:
            open_file.write(piece)
        assert list(other.news()) == expected


@pytest.mark.parametrize(
    ("rank", "run_dir", "expected"),
    [
        (None, "run", Alone),
        (0, "run", FirstRank),
        (1, "run", OtherRank),
        (1, "memory://run", Alone),
        (1, None, Alone),
    ],
)
def test_ranks_without_a_common_folder_decide_for_themselves(
    rank: int | None, run_dir: str | None, expected: type, tmp_path: Path
) -> None:
    session = other_session("one", rank=rank, world_size=1 if rank is None else 2)
    place = run_dir if run_dir is None or "://" in run_dir else str(tmp_path / run_dir)
    assert type(decisions(session, place)) is expected
