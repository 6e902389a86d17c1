"""Series that a session writes again and again are read once, and damage among them is seen as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.record.examples import flip, frame, other_session, quietly, records, segment, write
from torchgraph_explorer import open_run
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.known_series import KnownSeries
from torchgraph_explorer.record.model_index import ModelIndex, Source
from torchgraph_explorer.record.scan import ScannedRecord
from torchgraph_explorer.schema import Series

RECORDS = (b"first...", b"second..second..", b"third...")
STEPS = 12
MANY = tuple(Series(at, f"layer{at}", 0, "output", "output", "value") for at in range(400))


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        pytest.param(b"".join(RECORDS), 32, id="all"),
        pytest.param(b"".join(RECORDS) + b"more....", 32, id="all, and more"),
        pytest.param(b"".join(RECORDS[1:]), 24, id="from the second on"),
        pytest.param(b"first...second..secOnd..third...", 8, id="up to a damaged one"),
        pytest.param(b"first...second..second..third..", 24, id="up to a torn one"),
        pytest.param(b"third...first...", 8, id="in another order"),
        pytest.param(b"fourth..first...", 0, id="not known"),
    ],
)
def test_whole_known_records_are_counted(file: bytes, expected: int) -> None:
    known = KnownSeries()
    for record in RECORDS:
        known.add(record)
    beginning = next((one for one in RECORDS if file.startswith(one)), file[:8])
    assert known.repeated(lambda offset, size: file[offset : offset + size], 0, beginning) == expected


def several_copies(folder: Path) -> list[int]:
    """A run whose series are written four times or more; where the records of the last copy begin."""
    write(folder, MANY, *(frame(step, series=range(len(MANY))) for step in range(STEPS)))
    data = segment(folder).read_bytes()
    series = [at for at in records(data) if b"layer" in data[at : at + 60]]
    assert len(series) >= 4 * len(MANY) // 8
    return series[-len(MANY) // 8 :]


@pytest.mark.slow
def test_each_series_record_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several_copies(tmp_path)
    taken: list[str | None] = []
    take = ModelIndex.take

    def noting(self: ModelIndex, head: pb.Head, found: ScannedRecord, source: Source) -> None:
        taken.append(head.WhichOneof("record"))
        take(self, head, found, source)

    monkeypatch.setattr(ModelIndex, "take", noting)
    model = open_run(tmp_path).model()
    assert taken.count("series") == len(MANY) // 8
    assert (model.series, len(model)) == (MANY, STEPS)


@pytest.mark.slow
def test_damage_in_a_later_copy_is_told_and_costs_nothing(tmp_path: Path) -> None:
    at = several_copies(tmp_path)[20]
    flip(segment(tmp_path), at + 40)
    run = quietly(tmp_path)
    assert run.warnings == (f"segment 000000.tgraph: record at byte {at} is damaged and was skipped",)
    assert (run.model().series, len(run.model())) == (MANY, STEPS)


def test_the_same_records_of_another_session_are_its_own(tmp_path: Path) -> None:
    write(tmp_path, MANY, frame(0))
    write(tmp_path, MANY, frame(10), session=other_session("6b20", created=1_500.0))
    model = open_run(tmp_path).model()
    assert model.series == MANY
    assert model.frame(1).series.tolist() == model.frame(0).series.tolist()
