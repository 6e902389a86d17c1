"""What several ranks recorded, read as one model: the numbers are those of the concatenated tensors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.listening import assert_row, expected_row
from tests.record.examples import GRAPH, SERIES, SESSION, facts, flip, frame, quietly, records, segment, write
from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.record import model_index
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.graphs.encoding import decode_graph
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.ranks.groups import Launches, launches
from torchgraph_explorer.record.steps import index
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import STATISTICS, Finished, Frame, ModuleGraph, Record, Series, Session
from torchgraph_explorer.server.answers import updates_answer

VALUES = Series(0, "fc", 0, "output", "output", "value")
WEIGHT = Series(1, "fc", None, "param", "weight", "value", part=0)
BIAS = Series(2, "fc", None, "param", "bias", "value")


def rank(number: int, *, world_size: int = 2, created: float = 1_000.0) -> Session:
    """The session of one rank in a launch that began at `created`; the ranks begin one after the other."""
    name = f"{number}at{created:.0f}"
    return replace(SESSION, id=name, rank=number, world_size=world_size, created=created + number / 8)


def step_of(step: int, tensors: Mapping[int, npt.ArrayLike], *, written: float = 2_000.0) -> Frame:
    """A frame that has these tensors, by the id of their series, measured by numpy."""
    measured = [expected_row(values) for values in tensors.values()]
    sizes = [0, *(len(buckets) for _, buckets in measured)]
    entries = [(bucket, count) for _, buckets in measured for bucket, count in sorted(buckets.items())]
    histograms = Histograms(
        np.cumsum(sizes).astype(np.uint32),
        np.array([bucket for bucket, _ in entries], dtype=np.int16),
        np.array([count for _, count in entries], dtype=np.uint32),
    )
    statistics = np.array([[row[name] for name in STATISTICS] for row, _ in measured], dtype=np.float32)
    rows = np.arange(len(measured), dtype=np.uint32)
    ids = np.array(list(tensors), dtype=np.uint32)
    return Frame(step, written, None, None, ids, rows, statistics.reshape(-1, len(STATISTICS)), histograms)


def write_rank(run_dir: Path, session: Session, *written: Record) -> None:
    write(run_dir, (VALUES, WEIGHT, BIAS), *written, session=session)


def rows_of(model: ModelRecord, series: Series, at: int = 0) -> list[tuple[dict[str, float], Histograms]]:
    """The row of a series in a frame, as the frame has it and as its history has it."""
    number = model.find(series.module, role=series.role, path=series.path)[0].id
    one, history = model.frame(at), model.history(number)
    row = int(one.rows[one.series.tolist().index(number)])
    when = history.frames.tolist().index(at % len(model))
    return [
        (dict(zip(STATISTICS, one.statistics[row].tolist(), strict=True)), one.histograms.row(row)),
        (dict(zip(STATISTICS, history.statistics[when].tolist(), strict=True)), history.histograms.row(when)),
    ]


def awkward(seed: int, size: int) -> npt.NDArray[np.float32]:
    """Values of many magnitudes, with zeros, NaN and infinities among them."""
    rng = np.random.default_rng(seed)
    values = (rng.standard_normal(size) * 10.0 ** rng.integers(-6, 6, size)).astype(np.float32)
    values[rng.integers(0, size, size // 9)] = rng.choice([0.0, np.nan, np.inf, -np.inf], size // 9)
    return values


PARTS: dict[str, Sequence[npt.ArrayLike]] = {
    "equal parts": [awkward(1, 300), awkward(2, 300)],
    "a smaller last part": [awkward(3, 400), awkward(4, 37), awkward(5, 400)],
    "an empty part": [[], awkward(6, 50)],
    "nothing finite in a part": [[np.nan, np.inf], [1.0, 2.0]],
    "nothing at all": [[], []],
    "constants": [[3.0] * 5, [-3.0] * 5],
    "a part that is far away": [np.linspace(0, 1, 64), 1e6 + np.linspace(0, 1, 64)],
    "the largest there are": [[3e38, -3e38], [3e38]],
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_the_parts_of_a_tensor_are_read_as_the_whole(parts: Sequence[npt.ArrayLike], tmp_path: Path) -> None:
    for number, part in enumerate(parts):
        write_rank(tmp_path, rank(number, world_size=len(parts)), step_of(7, {0: part}))
    model = open_run(tmp_path).model()
    assert (model.steps.tolist(), model.ranks.tolist(), model.notes) == ([7], [len(parts)], ())
    for row in rows_of(model, VALUES):
        assert_row(row, np.concatenate([np.asarray(part, dtype=np.float32) for part in parts]))


def test_what_every_rank_has_is_counted_once(tmp_path: Path) -> None:
    weight = awkward(1, 90)
    for number in range(3):
        write_rank(tmp_path, rank(number, world_size=3), step_of(0, {1: weight, 0: [number]}))
    for row in rows_of(open_run(tmp_path).model(), WEIGHT):
        assert_row(row, weight)


def test_shards_with_replicas_are_counted_once_each(tmp_path: Path) -> None:
    shards = [awkward(1, 60), awkward(2, 50)]
    for number in range(4):
        shard = replace(BIAS, part=number % 2)
        write(tmp_path, (shard,), step_of(0, {2: shards[number % 2]}), session=rank(number, world_size=4))
    for row in rows_of(open_run(tmp_path).model(), BIAS):
        assert_row(row, np.concatenate(shards))


def test_a_replica_is_read_from_the_lowest_rank_that_wrote_it(tmp_path: Path) -> None:
    write_rank(tmp_path, rank(0), step_of(0, {0: [1.0]}), step_of(1, {1: [5.0]}))
    write_rank(tmp_path, rank(1), step_of(0, {0: [2.0], 1: [6.0]}), step_of(1, {1: [7.0]}))
    model = open_run(tmp_path).model()
    assert model.history(model.find(path="weight")[0]).column("mean").tolist() == [6.0, 5.0]


def test_of_a_step_that_a_rank_wrote_twice_the_one_in_the_later_segment_counts(tmp_path: Path) -> None:
    """It stands nearer to the beginning of its file than the earlier one, which comes after the series."""
    write_rank(tmp_path, rank(0), step_of(0, {0: [1.0]}))
    write(tmp_path, step_of(0, {0: [3.0]}), session=rank(0))
    write_rank(tmp_path, rank(1), step_of(0, {0: [5.0]}))
    assert open_run(tmp_path).model().history(0).column("mean").tolist() == [4.0]


def test_sampled_parts_count_by_their_elements(tmp_path: Path) -> None:
    """One part has a tenth of its 40 elements sampled, the other all of its 2: two of them and 40 of the other."""
    small, large = step_of(0, {0: [8.0, 8.0]}), step_of(0, {0: [1.0, 1.0, 0.0, 0.0]})
    large.statistics[0, STATISTICS.index("count")] = 40
    write_rank(tmp_path, rank(0), large)
    write_rank(tmp_path, rank(1), small)
    for statistics, histogram in rows_of(open_run(tmp_path).model(), VALUES):
        assert (statistics["count"], statistics["sampled"]) == (42, 6)
        assert statistics["mean"] == pytest.approx((20 + 16) / 42)
        assert statistics["zeros"] / statistics["sampled"] == pytest.approx(20 / 42)
        assert histogram.counts.tolist() == [20, 20, 2]


def test_samples_of_the_same_share_add_up_unscaled(tmp_path: Path) -> None:
    for number in range(2):
        half = step_of(0, {0: [1.0, 2.0, 3.0]})
        half.statistics[0, STATISTICS.index("count")] = 6
        write_rank(tmp_path, rank(number), half)
    for statistics, histogram in rows_of(open_run(tmp_path).model(), VALUES):
        assert (statistics["count"], statistics["sampled"], histogram.counts.tolist()) == (12, 6, [2, 2, 2])


def test_ranks_that_called_other_modules_are_read_side_by_side(tmp_path: Path) -> None:
    other = Series(0, "expert", 0, "output", "output", "value")
    write(tmp_path, (VALUES,), step_of(0, {0: [1.0]}), session=rank(0))
    write(tmp_path, (other,), step_of(0, {0: [2.0]}), session=rank(1))
    model = open_run(tmp_path).model()
    one = model.frame(0)
    assert [
        (model.series[number].module, one.statistics[row, 8]) for number, row in zip(one.series, one.rows, strict=True)
    ] == [
        ("fc", 1.0),
        ("expert", 2.0),
    ]


def test_steps_that_lack_ranks_are_there_and_say_so(tmp_path: Path) -> None:
    write_rank(tmp_path, rank(0), *(step_of(step, {0: [1.0]}) for step in (0, 10, 20)))
    write_rank(tmp_path, rank(1), step_of(0, {0: [3.0]}))
    model = open_run(tmp_path).model()
    assert (model.steps.tolist(), model.ranks.tolist()) == ([0, 10, 20], [2, 1, 1])
    assert model.history(0).column("mean").tolist() == [2.0, 1.0, 1.0]
    assert model.notes == (
        "2 of 3 steps, the last of them 20, are from 1 of 2 ranks: the others recorded nothing there, or elsewhere.",
    )


def test_a_record_of_one_machine_says_that_it_has_not_all_ranks(tmp_path: Path) -> None:
    for number in (2, 3):
        write_rank(tmp_path, rank(number, world_size=4), step_of(0, {0: [1.0]}))
    assert open_run(tmp_path).model().notes == (
        "Every step is from 2 of 4 ranks: the others recorded nothing there, or elsewhere.",
    )


def test_a_training_that_was_resumed_does_not_mix_with_what_it_writes_again(tmp_path: Path) -> None:
    for number in range(2):
        write_rank(tmp_path, rank(number), *(step_of(step, {0: [1.0]}) for step in range(4)))
    write_rank(tmp_path, rank(0, created=5_000.0), step_of(2, {0: [7.0]}), step_of(3, {0: [7.0]}))
    write_rank(tmp_path, rank(1, created=5_000.0), step_of(2, {0: [9.0]}))
    model = open_run(tmp_path).model()
    assert model.ranks.tolist() == [2, 2, 2, 1]
    assert model.history(0).column("mean").tolist() == [1.0, 1.0, 8.0, 7.0]
    assert (len(model.sessions), model.session) == (4, rank(0, created=5_000.0))


def test_a_training_may_go_on_with_more_or_fewer_processes(tmp_path: Path) -> None:
    write(tmp_path, (VALUES,), step_of(0, {0: [1.0]}), step_of(1, {0: [1.0]}), session=replace(SESSION, created=10.0))
    for number in range(3):
        write_rank(tmp_path, rank(number, world_size=3), step_of(1, {0: [2.0 + number]}), step_of(2, {0: [4.0]}))
    write(tmp_path, (VALUES,), step_of(2, {0: [5.0]}), session=replace(SESSION, id="last", created=9_000.0))
    model = open_run(tmp_path).model()
    assert (model.ranks.tolist(), model.notes) == ([1, 3, 1], ())
    assert model.history(0).column("mean").tolist() == [1.0, 3.0, 5.0]


def test_the_graphs_of_the_ranks_are_one(tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path, GRAPH, SERIES, frame(0), session=rank(number))
    model = open_run(tmp_path).model()
    assert (len(model.graphs), model.graph_ids.tolist(), len(model.series)) == (1, [0], len(SERIES))


def test_dimensions_in_which_the_ranks_differ_are_said_to_vary(tmp_path: Path) -> None:
    def graph_of(size: int) -> ModuleGraph:
        image = replace(GRAPH.calls[0].inputs[0], shape=(size, 4))
        nodes = tuple(replace(one, tensor=image) if one.kind == "input" else one for one in GRAPH.nodes)
        return replace(GRAPH, calls=(replace(GRAPH.calls[0], inputs=(image,)), *GRAPH.calls[1:]), nodes=nodes)

    for number, size in enumerate((4, 3)):
        write(tmp_path, graph_of(size), SERIES, frame(0), session=rank(number))
    [graph] = open_run(tmp_path).model().graphs
    assert graph.calls[0].inputs[0].shape == (None, 4)
    assert [one.tensor.shape for one in graph.nodes if one.tensor and one.kind == "input"] == [(None, 4)]
    write(tmp_path, graph_of(8), SERIES, frame(1), session=rank(0, created=9_000.0))
    [graph] = open_run(tmp_path).model().graphs
    assert graph.calls[0].inputs[0].shape == (8, 4)


def test_a_model_has_ended_when_all_ranks_have(tmp_path: Path) -> None:
    write_rank(tmp_path, rank(0), Finished(5.0, ("A hook failed.", "Steps were dropped.")))
    run = open_run(tmp_path)
    assert run.model().finished == Finished(5.0, ("A hook failed.", "Steps were dropped."))
    write_rank(tmp_path, rank(1), step_of(0, {0: [1.0]}))
    run.refresh()
    assert run.model().finished is None
    write(tmp_path, Finished(6.0, ("A hook failed.",)), session=rank(1))
    run.refresh()
    assert run.model().finished == Finished(6.0, ("A hook failed.", "Rank 0: Steps were dropped."))


def test_damage_to_what_one_rank_wrote_leaves_the_others(tmp_path: Path) -> None:
    for number in range(2):
        write_rank(tmp_path, rank(number), step_of(0, {0: [1.0 + number]}))
    first = segment(tmp_path).read_bytes()
    flip(segment(tmp_path), records(first)[-1] + 160)
    model = quietly(tmp_path).model()
    with pytest.warns(UserWarning, match="the frame of step 0 is damaged in part"):
        one = model.frame(0)
    assert one.statistics[one.rows, STATISTICS.index("mean")].tolist() == [2.0]


def test_one_process_alone_is_read_as_ever(tmp_path: Path) -> None:
    write(tmp_path, SERIES, frame(0, graph=None), frame(1, graph=None))
    model = open_run(tmp_path).model()
    assert (model.ranks.tolist(), model.notes) == ([1, 1], ())
    assert facts(model.frame(1)) == facts(frame(1, graph=None))


def test_the_viewer_is_told_which_steps_lack_ranks(tmp_path: Path) -> None:
    write_rank(tmp_path, rank(1), step_of(4, {0: [1.0]}))
    run = open_run(tmp_path)
    told = updates_answer(run, run.model(), epoch=0)
    assert told["warnings"] == list(run.model().notes) != []


class Live:
    """Two ranks that are still at it, and who reads them."""

    def __init__(self, run_dir: Path) -> None:
        self.writers = [RecordWriter(run_dir) for _ in range(2)]
        for number, writer in enumerate(self.writers):
            writer.write(rank(number))
            writer.write((VALUES,))
        self.run = open_run(run_dir)

    def write(self, number: int, step: int) -> None:
        self.writers[number].write(step_of(step, {0: [1.0]}, written=time.time()))

    def seen(self) -> list[tuple[int, int]]:
        """What the reader shows now: each step, and from how many ranks."""
        self.run.refresh()
        model = self.run.model()
        return list(zip(model.steps.tolist(), model.ranks.tolist(), strict=True))


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    one = Live(tmp_path)
    yield one
    for writer in one.writers:
        writer.close()


def test_a_step_is_shown_when_every_rank_has_written_it(live: Live) -> None:
    for step in range(3):
        live.write(0, step)
        assert live.seen() == [(done, 2) for done in range(step)]
        live.write(1, step)
        assert live.seen() == [(done, 2) for done in range(step + 1)]
    assert live.run.model().epoch == 0


def test_what_is_there_when_a_run_is_opened_is_shown_at_once(live: Live, tmp_path: Path) -> None:
    live.write(0, 0)
    model = open_run(tmp_path).model()
    assert (model.steps.tolist(), model.ranks.tolist()) == ([0], [1])


def test_a_step_that_a_rank_has_passed_by_is_not_waited_for(live: Live) -> None:
    live.write(0, 5)
    live.write(1, 6)
    assert live.seen() == [(5, 1)]


def test_a_rank_that_has_ended_is_not_waited_for(live: Live) -> None:
    live.write(0, 0)
    live.writers[1].write(Finished(time.time()))
    assert live.seen() == [(0, 1)]


def test_a_rank_that_does_not_come_is_waited_for_a_while(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    live.write(0, 0)
    assert live.seen() == []
    monkeypatch.setattr(index, "PATIENCE", 0.0)
    assert live.run.refresh()
    assert live.seen() == [(0, 1)]
    live.write(1, 0)
    assert live.seen() == [(0, 2)]
    assert live.run.model().epoch == 1


def test_what_was_shown_of_earlier_steps_stays_as_it_was(live: Live) -> None:
    for step in range(4):
        live.write(0, step)
        live.write(1, step)
    live.seen()
    held = live.run.model().history(0)
    live.write(0, 4)
    live.write(1, 4)
    assert live.seen()[-1] == (4, 2)
    assert live.run.model().history(0).statistics[:4].tobytes() == held.statistics.tobytes()
    assert live.run.model().epoch == 0


def test_what_all_ranks_write_alike_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []

    def counted(head: pb.Graph, body: bytes) -> tuple[ModuleGraph, int]:
        decoded.append(head.id)
        return decode_graph(head, body)

    monkeypatch.setattr(model_index, "decode_graph", counted)
    for number in range(3):
        write_rank(tmp_path / "run", rank(number, world_size=3), GRAPH, replace(GRAPH, id=1, first_step=20))
    model = open_run(tmp_path / "run").model()
    assert len(model.graphs) == 1
    assert len(model.series) == 3
    assert decoded == 3 * [0, 1], "only the latest one is remembered"
    decoded.clear()
    for number in range(3):
        write_rank(tmp_path / "other", rank(number, world_size=3), GRAPH)
    assert open_run(tmp_path / "other").model().graphs == model.graphs
    assert decoded == [0]


def test_sessions_are_grouped_alike_in_whatever_order_they_are_found() -> None:
    begun = [rank(number, world_size=2, created=created) for created in (1_000.0, 2_000.0) for number in (0, 1)]
    one_by_one = Launches()
    for session in begun:
        one_by_one = one_by_one.with_session(session) or one_by_one
    assert one_by_one == launches(begun[::-1]) == launches(begun)
    assert [member.launch for member in one_by_one.members.values()] == [0, 0, 1, 1]
    assert one_by_one.with_session(begun[0]) is None, "it began before others: all are grouped anew"
