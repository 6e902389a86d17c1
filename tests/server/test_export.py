"""The exported page: what it holds is what the record holds, it is small, and it asks for nothing."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.contracts import page as contract
from tests.record.examples import GRAPH, SERIES, clean, frame, write, write_small_run
from tests.record.long_runs import write_long_run
from tests.server.pages import Page, part, read_page
from tests.tables import thinned
from torchgraph_explorer.cli import main
from torchgraph_explorer.errors import NotFoundError, OptionError
from torchgraph_explorer.histogram import LAST_BUCKET, Histograms, upper_edge
from torchgraph_explorer.printable import printable
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import Call, Frame, Module, ModuleGraph, Node, Series
from torchgraph_explorer.server import bundle, export, notebook
from torchgraph_explorer.server.export import export_page
from torchgraph_explorer.server.page.choice import spread, with_frame
from torchgraph_explorer.server.page.histories import Ints

SAMPLE = 16_384


def exported(run_dir: Path, **options: object) -> Page:
    return read_page(export_page(open_run(run_dir), **options))  # type: ignore[arg-type]


def recorded(model: ModelRecord, step: int, number: int) -> tuple[bytes, dict[int, int]] | None:
    """What the record says of a series at a step."""
    at = model.frame_at(step)
    if number not in at.series:
        return None
    row = int(at.rows[at.series.tolist().index(number)])
    histogram = at.histograms.row(row)
    buckets = dict(zip(histogram.buckets.tolist(), histogram.counts.tolist(), strict=True))
    return at.statistics[row].tobytes(), buckets


def assert_agree(page: Page, model: ModelRecord) -> None:
    """Every series of the page has at every step of the page what the record has of it, bit by bit."""
    rows, ids = page.rows(), {one.key: one.id for one in model.series}
    for number, key in enumerate(page.keys):
        for at, step in enumerate(page.steps):
            assert rows.get((number, at)) == recorded(model, step, ids[key]), (key, step)


def test_the_files_are_what_their_generator_writes() -> None:
    assert (contract.FILE.read_bytes(), contract.CONTENT.read_text(encoding="utf-8")) == contract.files()


@pytest.mark.slow
def test_a_page_says_what_the_record_says(tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, *(contract.odd_frame(step) for step in range(24)))
    page = exported(tmp_path)
    assert (page.steps, len(page.keys)) == (list(range(24)), len(SERIES))
    assert_agree(page, open_run(tmp_path).model())


@pytest.mark.slow
def test_a_page_of_a_real_training_says_what_the_record_says(recorded_run: Path) -> None:
    page, model = exported(recorded_run), open_run(recorded_run).model()
    assert len(page.keys) == len(model.series)
    assert len(page.arrays["0.present"]) < len(page.keys)  # a call's output is the next one's input
    assert_agree(page, model)


@pytest.mark.parametrize(
    ("frames", "most", "kept"),
    [
        pytest.param(0, 100, [], id="none"),
        pytest.param(3, 100, [0, 1, 2], id="all"),
        pytest.param(9, 5, [0, 2, 4, 6, 8], id="evenly"),
        pytest.param(612, 2, [0, 611], id="first and last"),
        pytest.param(612, 1, [611], id="the last"),
    ],
)
def test_steps_are_thinned_evenly(frames: int, most: int, kept: list[int]) -> None:
    assert spread(frames, most) == kept


@pytest.mark.slow
def test_a_thinned_page_keeps_the_first_and_the_last_step_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, *(clean(step) for step in range(0, 306, 6)))
    page = exported(tmp_path, steps=10)
    assert (len(page.steps), page.steps[0], page.steps[-1]) == (10, 0, 300)
    assert set(np.diff(page.steps)) == {30, 36}
    said = "This page shows 10 of 51 steps: the first, the last, and others evenly between."
    assert page.model["updates"]["warnings"] == [f"{said} Export with --steps N for more."]
    assert page.model["recorded"] == {"frames": 51, "series": 4}
    assert_agree(page, open_run(tmp_path).model())


DEPTHS = (
    Series(0, "a.b.c", 0, "output", "output", "value"),
    Series(1, "a", 0, "input", "input[0]", "value"),
    Series(2, "a", 0, "output", "output", "grad_norm"),
    Series(3, "", 0, "output", "output", "value"),
    Series(4, "a", 0, "output", "output", "value"),
    Series(5, "a.b.c", 0, "attached", "middle", "value"),
    Series(6, "a.b", None, "param", "weight", "update_ratio"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("series", "kept"),
    [
        (0, []),
        (1, [5]),
        (2, [3, 5]),
        (3, [3, 4, 5]),
        (4, [2, 3, 4, 5]),
        (5, [1, 2, 3, 4, 5]),
        (99, [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_what_was_attached_and_what_lies_least_deep_is_kept_first(tmp_path: Path, series: int, kept: list[int]) -> None:
    write(tmp_path, GRAPH, DEPTHS, *(unshared(frame(step, series=range(len(DEPTHS)))) for step in range(3)))
    page = exported(tmp_path, series=series)
    assert page.keys == [DEPTHS[one].key for one in kept]
    assert len(page.model["updates"]["warnings"]) == (len(kept) < len(DEPTHS))
    assert_agree(page, open_run(tmp_path).model())


def unshared(one: Frame) -> Frame:
    """Each of its series has a row of its own."""
    more = frame(one.step, series=range(len(one.series) + 1))
    rows = np.arange(len(one.series), dtype=np.uint32)
    return replace(one, rows=rows, statistics=more.statistics[: len(rows)], histograms=more.histograms)


def test_series_that_share_their_numbers_count_once(recorded_run: Path) -> None:
    page = exported(recorded_run, series=3)
    assert len(page.arrays["0.present"]) == 3 < len(page.keys)


def write_noise(run_dir: Path, *, series: int, steps: int) -> None:
    """As large as histograms of that sample can get: independent normal values everywhere, at every step others."""
    rng = np.random.default_rng(0)
    numbers, chances = normal_buckets()
    ids = np.arange(series, dtype=np.uint32)
    frames = []
    for step in range(steps):
        counts = rng.poisson(SAMPLE * chances, size=(series, len(numbers)))
        rows, at = np.nonzero(counts)
        offsets = np.searchsorted(rows, np.arange(series + 1)).astype(np.uint32)
        histograms = Histograms(offsets, numbers[at].astype(np.int16), counts[rows, at].astype(np.uint32))
        frames.append(Frame(step, 1.0 + step, None, 0, ids, ids, noise_statistics(rng, series), histograms))
    table = tuple(Series(int(one), "fc", int(one), "output", "output", "value") for one in ids)
    write(run_dir, GRAPH, table, *frames)


def normal_buckets() -> tuple[Ints, npt.NDArray[np.float64]]:
    """The buckets that a sample of normal values falls into, and how likely a value falls into each."""
    numbers = np.arange(-LAST_BUCKET, LAST_BUCKET + 1)
    inner = np.array([math.erf(edge / math.sqrt(2)) / 2 for edge in upper_edge(numbers)])
    chances = np.diff(inner, prepend=-0.5)
    return numbers[chances > 1e-8], chances[chances > 1e-8]


def noise_statistics(rng: np.random.Generator, rows: int) -> npt.NDArray[np.float32]:
    mean, std = rng.normal(0, SAMPLE**-0.5, rows), rng.normal(1, (2 * SAMPLE) ** -0.5, rows)
    low, high, absolute = rng.normal(-3.9, 0.2, rows), rng.normal(3.9, 0.2, rows), rng.normal(0.8, 0.005, rows)
    norm = np.sqrt((mean**2 + std**2) * SAMPLE * 16)
    exact = [np.full(rows, value) for value in (SAMPLE * 16, SAMPLE, 0, 0, 0, 0)]
    return np.stack([*exact, low, high, mean, absolute, std, norm], axis=-1).astype(np.float32)


SIZES = {"a small run": (20, 20, 316_000), "a usual one": (100, 100, 1_260_000), "the largest": (200, 100, 2_250_000)}
"""Bytes that a page of so many series and steps may have when every series is kept, at the worst noise there is."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("series", "steps", "most"), thinned([pytest.param(*one, id=name) for name, one in SIZES.items()], 0, 1)
)
def test_a_page_is_small(tmp_path: Path, series: int, steps: int, most: int) -> None:
    write_noise(tmp_path, series=series, steps=steps)
    run = open_run(tmp_path)
    assert len(export_page(run, series=series)) < most
    page = export_page(run)
    assert len(page) <= min(most, export.PAGE_BYTES)
    assert len(read_page(page).keys) >= 0.85 * series


def test_a_page_asks_for_nothing_and_has_no_handlers(recorded_run: Path) -> None:
    text = exported(recorded_run).text
    shell = re.sub(r'(<script type="text/plain"[^>]*>)[^<]*', r"\1", text)
    shell = re.sub(r"'sha256-[^']*'", "", shell)  # may have two slashes
    assert re.findall(r"(?:https?:)?//[a-z]", shell.replace("// ", "")) == []
    assert [one[:10] for one in re.findall(r'\b(?:src|href)="([^"]*)"', shell)] == ["data:image"]
    assert re.findall(r"<[^>]*\son[a-z]+=", shell) == []
    assert text.index("<meta charset") < 200
    assert "default-src 'none'" in shell


def test_a_page_holds_the_viewer_as_it_was_built(recorded_run: Path) -> None:
    text = exported(recorded_run).text
    scripts = [file.read_bytes() for file in (bundle.BUNDLE / "assets").glob("*.js")]
    assert part(text, "viewer") in scripts


EVIL = "</script><script>alert(1)</script><!--&amp;\"'\u2028é"


def test_names_cannot_leave_their_place(tmp_path: Path) -> None:
    modules = (replace(GRAPH.modules[0], class_name=EVIL), GRAPH.modules[1])
    write(tmp_path / EVIL.replace("/", "|"), replace(GRAPH, modules=modules), SERIES, frame(0))
    page = exported(tmp_path)
    assert page.model["graphs"][0]["modules"][0]["class_name"] == printable(EVIL)
    assert page.text.count("<script") == page.text.count("</script") == 4
    assert "alert(1)" in page.text.partition("</title>")[0]
    assert "<script>alert" not in page.text


def test_equal_insides_have_one_drawing(tmp_path: Path) -> None:
    blocks = [Module(f"{i}", "Block", "net.Block", (), (), 0, 0, 0) for i in range(5)]
    inner = [Module(f"{i}.fc", "Linear", "nn.Linear", (), (), 0, 0, 0) for i in range(5)]
    graph = nested(blocks, inner)
    write(tmp_path, graph, SERIES, frame(0))
    model = exported(tmp_path).model
    assert len(model["insides"][0]["insides"]) == 1 + 1 + len(blocks)
    assert len(model["drawings"]) == 3  # the top, the top with the blocks as a stack, and one for all blocks


def nested(blocks: list[Module], inner: list[Module]) -> ModuleGraph:
    calls = [Call("", 0, None, (), ())]
    nodes = [Node("call", None, call=0)]
    for block, child in zip(blocks, inner, strict=True):
        calls += [Call(block.name, 0, 0, (), ()), Call(child.name, 0, len(calls), (), ())]
        nodes += [Node("call", 0, call=len(calls) - 2), Node("call", len(calls) - 2, call=len(calls) - 1)]
    return replace(GRAPH, modules=(GRAPH.modules[0], *blocks, *inner), calls=tuple(calls), nodes=tuple(nodes), edges=())


WRONG = {
    "no steps": ({"steps": 0}, OptionError, "steps is 0; a page shows at least 1."),
    "negative series": ({"series": -1}, OptionError, "series is -1; it is how many to keep, 0 or more"),
    "no models": ({"models": []}, OptionError, "models is \\[\\]; it is a list of names of the run's models"),
    "a name for a list": ({"models": "net"}, OptionError, "models is 'net'; it is a list"),
    "unknown model": ({"models": ["other"]}, NotFoundError, "has no model 'other'. Name one of: 'net'"),
    "no folder": ({"path": "no/where.html"}, OptionError, "no/where.html cannot be written: No such file"),
    "a folder": ({"path": "."}, OptionError, "cannot be written: Is a directory"),
}


@pytest.mark.parametrize(("options", "error", "message"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_told(tmp_path: Path, options: dict[str, object], error: type[Exception], message: str) -> None:
    write_small_run(tmp_path)
    with pytest.raises(error, match=message):
        export_page(open_run(tmp_path), **options)  # type: ignore[arg-type]


def test_a_page_is_made_of_a_folder_as_of_an_open_run(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    run = open_run(tmp_path)
    assert export_page(str(tmp_path), compare=[tmp_path]) == export_page(run, compare=[run])


def test_a_full_disk_is_told_and_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(part: Path, _: bytes) -> None:
        part.touch()
        raise OSError(28, "No space left on device")

    write_small_run(tmp_path / "run")
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OptionError, match=r"No space left on device. Name a file .*, where you may write and there is"):
        export_page(open_run(tmp_path / "run"), tmp_path / "page.html")
    assert [one.name for one in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow
def test_a_page_may_go_into_a_pipe(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    script = "import sys, torchgraph_explorer as t; t.export_page(t.open_run(sys.argv[1]), '/dev/stdout')"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, timeout=60, check=True)
    assert read_page(done.stdout).steps == [0, 10, 20]


def test_a_run_without_a_step_yet_has_a_page(tmp_path: Path) -> None:
    write(tmp_path, GRAPH)
    page = exported(tmp_path)
    assert (page.steps, page.keys, len(page.model["graphs"])) == ([], [], 1)


def test_the_command_line_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_small_run(tmp_path / "run")
    target = tmp_path / "page.html"
    assert main(["export", str(tmp_path), "-o", str(target), "--steps", "2", "--series", "1", "--model", "net"]) == 0
    page = read_page(target.read_bytes())
    assert (page.steps, len(page.arrays["0.present"])) == ([0, 20], 1)
    assert capsys.readouterr().out == f"Wrote {target}, {target.stat().st_size:,} bytes.\n"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["page.html", "run"]


def test_a_notebook_shows_a_run_in_a_frame_that_may_only_run_scripts(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    shown = open_run(tmp_path)._repr_html_()
    sandbox = 'sandbox="allow-scripts allow-downloads"'
    found = re.fullmatch(rf'<style>.*</style><iframe [^>]* {sandbox} srcdoc="([^"]*)">(.*)</iframe>', shown)
    assert found is not None
    assert "Trust Notebook" in found[2]  # all that Jupyter leaves of it until then
    text = found[1].replace("&quot;", '"').replace("&amp;", "&")
    assert read_page(text.encode()).steps == [0, 10, 20]


def test_show_displays_the_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_run(tmp_path)
    shown: list[dict[str, str]] = []
    fake, fake_display = ModuleType("IPython"), ModuleType("IPython.display")
    fake.get_ipython = object  # type: ignore[attr-defined]
    fake_display.display = lambda data, raw: shown.append(data)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", fake_display)
    open_run(tmp_path).show(height=300, steps=1)
    assert "height: 300px" in shown[0]["text/html"]
    assert shown[0]["text/plain"] == repr(open_run(tmp_path))


def test_show_elsewhere_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_run(tmp_path)
    monkeypatch.setitem(sys.modules, "IPython", None)
    with pytest.raises(OptionError, match=r"this is not one. Use export_page\(run, 'page.html'\)"):
        notebook.show(open_run(tmp_path))


def nonfinite_of(tmp_path: Path, bad_step: int | None, **choices: Any) -> tuple[Page, dict[str, Any]]:
    """A page of a long run with NaN in one step, and what it says of that."""
    write_long_run(tmp_path / "long", 1_000, series=30, bad_step=bad_step)
    page = read_page(export_page(open_run(tmp_path / "long"), **choices))
    return page, page.model["nonfinite"]


@pytest.mark.slow
def test_a_page_knows_of_nan_at_every_step_and_shows_the_first_one(tmp_path: Path) -> None:
    page, said = nonfinite_of(tmp_path, 617, steps=10)
    assert (said["frames"], said["bad"], said["is_complete"]) == (1_000, [[617, 617, 1]], True)
    assert said["first"]["step"] == 617
    assert said["first"]["tensor"]["module"] == "layer0"
    assert len(page.steps) == 10
    assert {0, 617, 999} <= set(page.steps)


@pytest.mark.slow
def test_a_page_names_tensors_with_nan_that_it_has_no_numbers_of(tmp_path: Path) -> None:
    page, said = nonfinite_of(tmp_path, 617, steps=10, series=0)
    [tensor] = said["hidden"]["tensors"]
    assert (tensor["module"], tensor["role"], tensor["has_nan"], tensor["has_infinite"]) == (
        "layer0",
        "output",
        True,
        False,
    )
    assert said["hidden"]["at"] == [[[0, 1]] if step == 617 else [] for step in page.steps]


@pytest.mark.slow
def test_a_page_of_a_clean_run_says_that_there_is_no_nan(tmp_path: Path) -> None:
    _, said = nonfinite_of(tmp_path, None, steps=10)
    assert (said["bad"], said["first"], said["hidden"]["tensors"]) == ([], None, [])


@pytest.mark.parametrize(
    ("frames", "wanted", "kept"),
    [
        ([0, 5, 9], None, [0, 5, 9]),
        ([0, 5, 9], 5, [0, 5, 9]),
        ([0, 5, 9], 7, [0, 7, 9]),
        ([0, 3, 6, 9], 8, [0, 3, 8, 9]),
        ([0, 9], 7, [0, 9]),
        ([9], 7, [9]),
        ([], None, []),
    ],
)
def test_the_first_bad_frame_takes_the_place_of_the_nearest(
    frames: list[int], wanted: int | None, kept: list[int]
) -> None:
    assert with_frame(frames, wanted) == kept


@pytest.mark.slow
def test_a_page_of_several_runs_has_the_same_series_of_each_at_the_steps_of_the_first(tmp_path: Path) -> None:
    for name, count in (("a", 40), ("b", 60)):
        write_noise(tmp_path / name / "net", series=6, steps=count)
    runs = [open_run(tmp_path / name / "net") for name in ("a", "b")]
    page = read_page(export_page(runs[0], compare=runs[1:], steps=10, series=4))
    models = page.meta["models"]
    assert page.meta["run"]["run"] == "a/net"
    assert [one["run"] for one in page.meta["others"]] == ["b/net"]
    assert [one["run"] for one in models] == ["a/net", "b/net"]
    places = [
        {(one["module"], one["call"], one["path"], one["kind"]) for one in model["updates"]["series"]["items"]}
        for model in models
    ]
    assert places[0] == places[1]
    assert len(places[0]) == 4
    first, second = (set(model["updates"]["frames"]["step"]) for model in models)
    assert len(first) == len(second) == 10
    assert len(first & second) >= 8, "beside the first and the last step of its own"
