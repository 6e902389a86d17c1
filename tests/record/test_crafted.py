"""Records that our writer would not write, though their checks are right."""

from __future__ import annotations

import contextlib
import warnings
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.record.examples import GRAPH, SERIES, flip, frame, quietly, records, segment, write
from tests.record.fuzzing import within_bounds
from torchgraph_explorer.errors import NotFoundError, RecordError, TorchgraphWarning
from torchgraph_explorer.printable import printable
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.copies import DamagedCopies
from torchgraph_explorer.record.format.envelope import MARKER, DamageError, enveloped, enveloped_head
from torchgraph_explorer.record.graphs.encoding import decode_graph, encode_graph
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.steps.history import History
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import STATISTICS, Finished, Series

MORE: dict[str, Any] = {"id": 4, "module": "more", "call": 0, "role": 1, "path": "input", "kind": 1}
LATER: dict[str, Any] = {"id": 6, "role": 1, "kind": 99}


def crafted(tmp_path: Path, *more: bytes) -> Path:
    """A run to which records were added that our writer would not write, though their checks are right."""
    write(tmp_path, SERIES)
    with segment(tmp_path).open("ab") as file:
        file.write(b"".join(more))
    return tmp_path


def layout(**fields: object) -> bytes:
    return zlib.compress(pb.Layout(**fields).SerializeToString())  # type: ignore[arg-type]


def series(**fields: object) -> bytes:
    return enveloped(pb.Head(series=pb.SeriesAdded(series=[pb.Series(**fields)])).SerializeToString())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(enveloped(b"\xff\xff\xff"), id="a head that is no message"),
        pytest.param(series(id=2**31, role=1, kind=1), id="a series id that would fill the memory"),
        pytest.param(enveloped(pb.Head(frame=pb.Frame(step=2**63)).SerializeToString()), id="a step beyond all"),
        pytest.param(
            enveloped(pb.Head(frame=pb.Frame(step=2**53 + 2)).SerializeToString()), id="a step that no page can ask for"
        ),
        pytest.param(enveloped(pb.Head(graph=pb.Graph(check=1)).SerializeToString(), b"x"), id="a graph's check"),
        pytest.param(
            enveloped(pb.Head(graph=pb.Graph(check=zlib.crc32(b"x"))).SerializeToString(), b"x"), id="a graph's body"
        ),
    ],
)
def test_records_that_make_no_sense_are_skipped(record: bytes, tmp_path: Path) -> None:
    with pytest.warns(TorchgraphWarning, match="is damaged and was skipped"):
        model = open_run(crafted(tmp_path, record)).model()
    assert (model.series, len(model)) == (SERIES, 0)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"junk", id="junk"),
        pytest.param(zlib.compress(b"\xff" * 9), id="no message"),
        pytest.param(layout(series=[0, 1], row=[0], rows=1), id="rows are missing"),
        pytest.param(layout(series=[0], row=[4], rows=2), id="a row beyond the last"),
        pytest.param(layout(series=[-5], row=[0], rows=1), id="a negative series"),
        pytest.param(layout(series=[0], row=[0], rows=2**31, statistics=STATISTICS), id="more rows than bytes"),
        pytest.param(layout(series=[0], row=[0], rows=2**26), id="a larger table than any"),
    ],
)
def test_a_frame_whose_layout_makes_no_sense_is_refused(given: bytes, tmp_path: Path) -> None:
    head = pb.Head(frame=pb.Frame(step=3, layout=given))
    model = open_run(crafted(tmp_path, enveloped(head.SerializeToString(), bytes(64)))).model()
    assert len(quiet_history(model)) == 0
    with pytest.raises(RecordError, match=r"segment 000000.tgraph: the frame of step 3 is damaged. Other frames"):
        model.frame(0)


def quiet_history(model: ModelRecord) -> History:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchgraphWarning)
        return model.history(0)


def test_what_a_later_release_adds_is_passed_over_and_said_once(tmp_path: Path) -> None:
    record = enveloped(b"\xfa\x01\x03abc")  # field 31
    role, kind = series(id=5, role=9, kind=1), series(**LATER)
    both = enveloped(pb.Head(series=pb.SeriesAdded(series=[pb.Series(**MORE), pb.Series(**LATER)])).SerializeToString())
    last = enveloped(pb.Head(finished=pb.Finished(time=5.0)).SerializeToString())
    with pytest.warns(TorchgraphWarning, match="written by a newer release"):
        run = open_run(crafted(tmp_path, record, *2 * [role], kind, both, last))
    assert (run.model().finished, len(run.model().series)) == (Finished(5.0), len(SERIES) + 1)
    assert run.warnings == (
        "written by a newer release: 1 record of unknown kind is not shown",
        "written by a newer release: 2 series of unknown kind are not shown",
    )


def test_nodes_of_a_kind_that_is_not_known_are_left_out_of_the_graph(tmp_path: Path) -> None:
    head, body = encode_graph(GRAPH)
    later = pb.GraphBody.FromString(zlib.decompress(body))
    later.nodes.insert(2, pb.Node.FromString(b"\x08\x4d"))
    for edge in later.edges:
        edge.source, edge.target = edge.source + (edge.source > 1), edge.target + (edge.target > 1)
    later.edges.append(pb.Edge(source=2, target=3))
    packed = zlib.compress(later.SerializeToString())
    head.check = zlib.crc32(packed)
    with pytest.warns(TorchgraphWarning, match="written by a newer release: 1 node of unknown kind is not shown"):
        run = open_run(crafted(tmp_path, enveloped(pb.Head(graph=head).SerializeToString(), packed)))
    assert run.model().graphs == (GRAPH,)


def test_a_node_that_is_no_call_refers_to_none() -> None:
    head, packed = encode_graph(GRAPH)
    body = pb.GraphBody.FromString(zlib.decompress(packed))
    node = next(one for one in body.nodes if one.kind == pb.Node.INPUT)
    node.inside = node.call = 0
    packed = zlib.compress(body.SerializeToString())
    head.check = zlib.crc32(packed)
    graph, _ = decode_graph(head, packed)
    assert next(one for one in graph.nodes if one.kind == "input").call is None


def with_edge_series(**series: int | str) -> tuple[pb.Graph, bytes]:
    """`GRAPH`, to whose last edge another series was added."""
    head, body = encode_graph(GRAPH)
    later = pb.GraphBody.FromString(zlib.decompress(body))
    later.edges[-1].series.append(pb.EdgeSeries.FromString(pb.EdgeSeries(**series).SerializeToString()))  # type: ignore[arg-type]
    packed = zlib.compress(later.SerializeToString())
    head.check = zlib.crc32(packed)
    return head, packed


def test_an_edge_with_a_series_of_an_unknown_role_is_not_recorded(tmp_path: Path) -> None:
    head, packed = with_edge_series(call=0, role=99, path="later")
    run = open_run(crafted(tmp_path, enveloped(pb.Head(graph=head).SerializeToString(), packed)))
    assert run.model().graphs == (GRAPH,)


def test_a_graph_whose_edge_names_a_series_of_no_call_is_damaged(tmp_path: Path) -> None:
    head, packed = with_edge_series(call=9, role=pb.Series.EDGE, path="a -> b")
    with pytest.warns(TorchgraphWarning, match="it refers to what it does not hold"):
        run = open_run(crafted(tmp_path, enveloped(pb.Head(graph=head).SerializeToString(), packed)))
    assert run.model().graphs == ()


def test_a_graph_of_an_earlier_release_has_edges_without_series(tmp_path: Path) -> None:
    head, body = encode_graph(GRAPH)
    earlier = pb.GraphBody.FromString(zlib.decompress(body))
    for edge in earlier.edges:
        del edge.series[:]
    packed = zlib.compress(earlier.SerializeToString())
    head.check = zlib.crc32(packed)
    run = open_run(crafted(tmp_path, enveloped(pb.Head(graph=head).SerializeToString(), packed)))
    assert [edge.series for edge in run.model().graphs[0].edges] == [(), (), ()]


def test_a_marker_inside_a_body_is_not_taken_for_a_record(tmp_path: Path) -> None:
    tricky = Series(4, 3 * MARKER.decode("latin-1"), 0, "input", MARKER.decode("latin-1"), "value")
    write(tmp_path, SERIES, (tricky,), frame(0))
    first = records(segment(tmp_path).read_bytes())[2]
    flip(segment(tmp_path), first + 8)
    with pytest.warns(TorchgraphWarning, match=f"byte {first} "):
        assert open_run(tmp_path).model().series[4].path == printable(tricky.path)


HUGE = 3 << 30
"""Bytes of a body that takes no room on the disk."""


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(pb.Head(graph=pb.Graph(id=7, check=1)), id="of a graph"),
        pytest.param(pb.Head(frame=pb.Frame(step=3, layout=layout(series=[0], row=[0], rows=1))), id="of a frame"),
        pytest.param(
            pb.Head(frame=pb.Frame(step=3, layout=layout(series=[0], row=[0], rows=2**12))), id="of many rows"
        ),
    ],
)
def test_a_body_of_gigabytes_of_zeros_is_not_read(head: pb.Head, tmp_path: Path) -> None:
    run = crafted(tmp_path, enveloped_head(head.SerializeToString(), HUGE))
    with segment(run).open("ab") as file:
        file.truncate(file.tell() + HUGE)
    with within_bounds("a sparse file"):
        model = quietly(run).model()
        for read in (lambda: model.frame(0), lambda: model.statistics([0]), lambda: model.history(0)):
            with warnings.catch_warnings(), contextlib.suppress(NotFoundError, RecordError):
                warnings.simplefilter("ignore", TorchgraphWarning)
                read()


def test_damaged_copies_of_many_graphs_are_not_all_kept() -> None:
    copies, kept = DamagedCopies(), 0
    for name in range(200):
        with pytest.raises(DamageError):
            copies.repaired(name, bytes(1 << 20), 1)
        kept += name < 128
    assert sum(len(one) for each in copies._copies.values() for one in each) == kept << 20
