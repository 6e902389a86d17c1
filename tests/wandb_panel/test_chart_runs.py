"""The chart in Chromium: the x-ray, findings, and selected runs side by side, from records."""

from __future__ import annotations

import math
from collections import OrderedDict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.tables import thinned
from tests.wandb_panel.emulator import Chart, Panel, chart_of_records
from torchgraph_explorer import Finding, open_run, watch
from torchgraph_explorer.record.cells.codes import decode
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_wandb import snapshot_process
from torchgraph_wandb import xray_data as chart_xray
from torchgraph_wandb.chart.themes import LIGHT
from torchgraph_wandb.text_encoding import NOT_FINITE, NOT_RECORDED
from torchgraph_wandb.xray_data import curve, xray_data
from torchgraph_wandb.xray_rows import nested

pytestmark = pytest.mark.xdist_group("chart of runs")  # whose records are made once

EIGHT = [f"rate-{number}" for number in range(8)]
STEPS, SPOILT = 12, 7


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.act = nn.Linear(8, 8), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.act(self.inner(x))


class Net(nn.Module):
    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.stem, self.blocks = nn.Linear(8, 8), nn.Sequential(*(Block() for _ in range(blocks)))
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)))


def record(
    logdir: Path,
    run: str,
    *,
    blocks: int = 2,
    scale: float = 1.0,
    steps: int = STEPS,
    spoil: int = -1,
    last: int = STEPS,
) -> None:
    """Train a net; from the step `spoil` on, a weight is NaN, and after the step `last`, the loss is 0."""
    torch.manual_seed(0)
    model = Net(blocks)
    with watch(model, log_freq=1, backend="record", logdir=logdir, run=run, name="Net", verbose=False) as watcher:
        for step in range(steps):
            if step == spoil:
                nn.init.constant_(model.blocks[1].inner.weight, math.nan)  # type: ignore[union-attr, arg-type]
            loss = model(scale * torch.randn(16, 8)).square().mean() * (step <= last)
            loss.backward()
            watcher.log({"train/loss": loss.item()})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logdir = tmp_path_factory.mktemp("runs")
    for number, run in enumerate(EIGHT):
        record(logdir, run, scale=1.0 + 0.1 * number, steps=STEPS if number != 1 else STEPS // 2)
    record(logdir, "spoilt", spoil=SPOILT)
    record(logdir, "huge", scale=1e9)
    record(logdir, "deeper", blocks=4)
    record(logdir, "long", blocks=32, steps=3)
    record(logdir, "still", scale=0.01)
    record(logdir, "all-nan", spoil=0)
    record(logdir, "halted", last=5)
    chain = nn.Sequential(*(nn.Identity() for _ in range(130)), nn.Linear(8, 3))
    with watch(chain, log_freq=1, backend="record", logdir=logdir, run="chain", name="Net", verbose=False):
        chain(torch.randn(16, 8)).square().mean().backward()
    stages = {f"stage{at}": nn.Sequential(*(nn.Identity() for _ in range(3 * at))) for at in range(1, 6)}
    staged = nn.Sequential(OrderedDict(**stages, head=nn.Linear(8, 3)))
    with watch(staged, log_freq=1, backend="record", logdir=logdir, run="staged", name="Net", verbose=False):
        staged(torch.randn(16, 8)).square().mean().backward()
    return logdir


def pinned(panel: Panel, chart: Chart, *, vega: int = 6) -> None:
    """Show the chart, with the first linear layer in it pinned."""
    panel.show(chart, vega=vega)
    panel.drag_out("stem#0")


# Side by side.


@pytest.mark.parametrize("vega", thinned([5, 6], 1))
def test_selected_runs_stand_side_by_side_in_wandbs_order_with_their_names(panel: Panel, runs: Path, vega: int) -> None:
    order = ["rate-3", "rate-0"]
    pinned(panel, chart_of_records(*(runs / run for run in order)), vega=vega)
    assert panel.data("compared_runs", "name") == order
    names = [text for text in panel.texts("compared") if text["text"] in order]
    assert [text["text"] for text in sorted(names, key=lambda text: float(text["left"]))] == order
    strips = panel.items("strip_runs")
    for name, run in zip(names, panel.data("compared_runs", "run"), strict=True):
        own = [strip for strip in strips if strip["datum"]["run"] == run]
        assert len(own) == 7  # of input, output, weight and bias; the input has no gradient
        assert all(abs(strip["left"] - name["left"]) < 4 for strip in own)


def test_they_have_one_axis_written_once_and_lie_in_the_same_rows(panel: Panel, runs: Path) -> None:
    pinned(panel, chart_of_records(runs / "rate-0", runs / "rate-7"))
    ends: dict[str, set[tuple[float, float, float]]] = {}
    for strip in panel.items("strip_runs"):
        datum = strip["datum"]
        ends.setdefault(datum["key"], set()).add((datum["axis_low"], datum["axis_high"], strip["top"]))
        assert datum["axis_low"] <= datum["low"] < datum["high"] <= datum["axis_high"]
    assert {key: len(found) for key, found in ends.items()} == dict.fromkeys(ends, 1)
    assert len(panel.data("axes_runs", "key")) == len(ends)


def test_a_run_whose_values_are_huge_does_not_squash_the_others(panel: Panel, runs: Path) -> None:
    pinned(panel, chart_of_records(runs / "rate-0", runs / "rate-2", runs / "huge"))
    at = {one: (panel.data("strips_runs", one)) for one in ("run_name", "path", "high", "axis_high", "side")}
    inputs = [
        (name, high, axis)
        for name, path, high, axis, side in zip(
            at["run_name"], at["path"], at["high"], at["axis_high"], at["side"], strict=True
        )
        if path == "input[0]" and side == 0
    ]
    assert {axis for _, _, axis in inputs} == {max(high for name, high, _ in inputs if name != "huge")}


def test_values_far_smaller_than_another_runs_are_drawn_at_zero(panel: Panel, runs: Path) -> None:
    pinned(panel, chart_of_records(runs / "rate-0", runs / "still"))
    strips = panel.items("strip_runs")
    at = next(at for at, strip in enumerate(strips) if strip["datum"]["run"].endswith("still"))
    assert strips[at]["datum"]["path"] == "input[0]"
    opacities = [max(pixel[3] for pixel in row) for row in panel.image(at, "heat", slot="runs")]
    assert sum(map(bool, opacities)) in (1, 2)
    colours = [row for row in panel.image(at, "heat", slot="runs") if row[0][3]]
    assert colours[0][0][:3] != [255, 255, 255]


def test_eight_runs_fit_beside_each_other_and_the_step_shown_is_marked_in_each(panel: Panel, runs: Path) -> None:
    pinned(panel, chart_of_records(*(runs / run for run in EIGHT)))
    assert panel.data("compared_runs", "name") == EIGHT
    right = [item["right"] for item in panel.items("strip_runs")]
    assert max(right) <= 1400
    lines = panel.hover_strip("runs", side=0, share=0.54)
    assert lines[1] == "rate-0, step 6"
    panel.page.mouse.down()
    panel.page.mouse.up()
    panel.settle()
    assert panel.signal("chosen_step") == 6
    assert panel.signal("shown_in") == [6, 5, 6, 6, 6, 6, 6, 6]  # the second run ended at step 5


def test_in_a_small_panel_the_other_runs_are_paged_to(panel: Panel, runs: Path) -> None:
    panel.page.set_viewport_size({"width": 480, "height": 300})
    panel.show(chart_of_records(*(runs / run for run in EIGHT)), vega=6)
    first = panel.data("xray_runs", "name")
    assert first == EIGHT[: len(first)]
    panel.press("runs_next")
    assert panel.data("xray_runs", "name") == EIGHT[1 : 1 + len(first)]


def test_a_click_on_a_runs_name_shows_it_in_the_graph(panel: Panel, runs: Path) -> None:
    pinned(panel, chart_of_records(runs / "rate-0", runs / "deeper"))
    assert panel.signal("run_name") == "rate-0"
    [box] = [item for item in panel.items("compared_run") if item["datum"]["name"] == "deeper"]
    panel.page.mouse.click((box["left"] + box["right"]) / 2, (box["top"] + box["bottom"]) / 2)
    panel.settle()
    assert panel.signal("run_name") == "deeper"
    panel.click("blocks#0")
    assert "blocks.3#0" in panel.data("here_nodes", "key")


def test_one_run_has_a_column_for_each_pinned_module_as_before(panel: Panel, runs: Path) -> None:
    pinned(panel, chart_of_records(runs / "rate-0"))
    panel.drag_out("head#0")
    assert (panel.signal("slots"), panel.signal("compared_w")) == (2, 0)
    assert [panel.signal(f"key_{slot}") for slot in range(2)] == ["stem#0", "head#0"]
    assert panel.items("side_by_side")[0]["opacity"] == 0


def test_a_tensor_without_a_gradient_says_so_where_its_strip_would_be(panel: Panel, runs: Path) -> None:
    pinned(panel, chart_of_records(runs / "rate-0"))
    [said] = [text for text in panel.texts("inside_0") if text["text"] == "none recorded"]
    assert said["datum"]["path"] == "input[0]"
    [strip] = [item for item in panel.items("strip_0") if item["datum"]["path"] == "input[0]"]
    assert said["left"] > strip["right"]
    assert strip["top"] < said["top"] < said["bottom"] < strip["bottom"]


# The x-ray.


def values_of(panel: Panel, module: str) -> list[float]:
    """What the tooltip says of each column of a row of the x-ray; infinity if not finite, NaN if not recorded."""
    [cells] = panel.items("xray_cells")
    row = panel.data("xray_shown", "module").index(module)
    y = cells["top"] + (row + 0.5) * panel.signal("xray_row_h")
    count = panel.data("xray_runs", "count")[0]
    found = []
    for column in range(count):
        panel.page.mouse.move(cells["left"] + (column + 0.5) * (cells["right"] - cells["left"]) / count, y)
        panel.settle()
        code = panel.signal("xray_code")
        found.append({NOT_FINITE: math.inf, NOT_RECORDED: math.nan}.get(code, panel.signal("xray_value")))
    return found


def expected(model: ModelRecord, statistic: str, module: str) -> list[float]:
    xray = xray_data(model)
    assert xray is not None
    codes = xray.codes[statistic][xray.modules.index(module)]
    return [math.inf if code & 0x8000 else float(decode(np.array([code]))[0]) for code in codes.tolist()]


def test_the_x_ray_is_the_first_thing_one_sees_and_tells_every_cell(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "spoilt"), vega=6)
    assert panel.signal("xray_w") > 700
    assert panel.data("xray_shown", "module")[:4] == ["", "stem", "blocks", "blocks.0"]
    model = open_run(runs / "spoilt").model()
    assert values_of(panel, "stem") == pytest.approx(expected(model, "output_gradient", "stem"), rel=0.03)
    assert [math.isinf(value) for value in values_of(panel, "blocks.1.act")] == panel.data("xray_loss", "is_bad")
    assert panel.data("xray_loss", "is_bad") == [False] * SPOILT + [True] * (STEPS - SPOILT)
    panel.press("xray_menu_button")
    [row] = [item for item in panel.items("xray_menu_row") if item["datum"]["content"] == "Output std"]
    panel.page.mouse.click((row["left"] + row["right"]) / 2, (row["top"] + row["bottom"]) / 2)
    panel.settle()
    assert values_of(panel, "head") == pytest.approx(expected(model, "output_std", "head"), rel=0.03)


def test_a_click_goes_to_module_and_step_and_one_on_a_label_folds(
    panel: Panel, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_process, "judge", lambda _: [])  # whose marks would lie on the cells
    panel.show(chart_of_records(runs / "spoilt"), vega=5)
    [label] = [item for item in panel.items("xray_label") if item["datum"]["module"] == "blocks.1"]
    panel.page.mouse.click(label["right"] - 2, (label["top"] + label["bottom"]) / 2)
    panel.settle()
    assert [name for name in panel.data("xray_shown", "module") if name.startswith("blocks.1")] == ["blocks.1"]
    assert math.isinf(values_of(panel, "blocks.1")[SPOILT])  # what is inside a folded module is not hidden
    panel.page.mouse.down()
    panel.page.mouse.up()
    panel.settle()
    assert [panel.signal(name) for name in ("here", "found", "chosen_step")] == ["blocks#0", "blocks.1#0", STEPS - 1]
    assert panel.signal("pins") == []
    panel.press("xray_button")
    assert (panel.signal("xray_w"), panel.signal("graph_w")) == (0, 1400)


CELL = """([run, row, column]) => {
    const {image} = view.data('xray_matrix')[run];
    return [...image.getContext('2d').getImageData(column, row, 1, 1).data];
}"""


def test_a_gradient_of_zero_is_grey_and_not_the_smallest(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "halted"), vega=6)
    grey = [*bytes.fromhex(LIGHT["zero"][1:]), 255]
    row = panel.data("xray_shown", "module").index("stem")
    assert [panel.page.evaluate(CELL, [0, row, column]) == grey for column in range(STEPS)] == [False] * 6 + [True] * 6
    assert "zero" in [text["text"] for text in panel.texts("xray")]


def test_what_is_unfolded_stands_below_its_module(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "spoilt"), vega=6)
    before = in_order(panel)
    for _ in range(2):  # fold it, and unfold it
        [label] = [item for item in panel.items("xray_label") if item["datum"]["module"] == "blocks.0"]
        panel.page.mouse.click(label["right"] - 2, (label["top"] + label["bottom"]) / 2)
        panel.settle()
    assert in_order(panel) == before


def in_order(panel: Panel) -> list[str]:
    """The modules of the x-ray from the top down."""
    places = zip(panel.data("xray_shown", "place"), panel.data("xray_shown", "module"), strict=True)
    return [module for _, module in sorted(places)]


def test_runs_share_rows_and_colours_and_what_a_run_lacks_stays_empty(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "rate-0", runs / "deeper"), vega=6)
    modules = panel.data("xray_shown", "module")
    assert modules == [
        *("", "stem", "blocks"),
        *(f"blocks.{block}{part}" for block in range(4) for part in ("", ".inner", ".act")),
        "head",
    ]
    row = modules.index("blocks.3.inner")
    assert panel.page.evaluate(CELL, [0, row, 2])[3] == 0
    assert panel.page.evaluate(CELL, [1, row, 2])[3] == 255
    assert len(panel.data("xray_range_of_all", "low")) == 1


def test_without_room_beside_the_graph_the_x_ray_comes_first_and_a_click_leads_to_the_graph(
    panel: Panel, runs: Path
) -> None:
    panel.page.set_viewport_size({"width": 480, "height": 300})
    panel.show(chart_of_records(runs / "spoilt"), vega=6)
    assert panel.signal("xray_w") == 480
    assert min(panel.signal(name) for name in ("xray_row_h", "xray_loss_h")) > 8
    right = [item["right"] for button in ("theme", "xray_button", "findings_button") for item in panel.items(button)]
    assert max(right) <= 480
    [cells] = panel.items("xray_cells")
    panel.page.mouse.click(cells["left"] + 4, cells["top"] + 1.5 * panel.signal("xray_row_h"))
    panel.settle()
    assert (panel.signal("xray_w"), panel.signal("found")) == (0, "stem#0")


def test_the_number_of_a_step_stands_below_its_cells(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "long"), vega=6)
    assert_numbers_at_ticks(panel, "xray_ticks")
    panel.drag_out("stem#0")
    assert_numbers_at_ticks(panel, "ticks_0")


def assert_numbers_at_ticks(panel: Panel, ticks: str) -> None:
    assert set(panel.data(ticks, "content")) == {"0", "1", "2"}
    assert panel.data(ticks, "label_x") == panel.data(ticks, "tick_x")


def test_names_of_low_rows_keep_off_each_other(panel: Panel, runs: Path) -> None:
    for height in (280, 300, 320, 340):
        panel.page.set_viewport_size({"width": 480, "height": height})
        panel.show(chart_of_records(runs / "long"), vega=6)
        boxes = [box for box in panel.items("xray_label") if box["text"]]
        assert len(boxes) > 8
        assert all(below["top"] >= above["bottom"] - 1 for above, below in pairwise(boxes))


def test_low_rows_name_outer_modules_before_those_inside_them(panel: Panel, runs: Path) -> None:
    for height in (300, 360, 420):
        panel.page.set_viewport_size({"width": 480, "height": height})
        panel.show(chart_of_records(runs / "staged"), vega=6)
        assert panel.signal("xray_row_h") < 9
        boxes = [box for box in panel.items("xray_label") if box["text"]]
        named = [box["datum"]["module"] for box in boxes]
        assert {"stage2", "stage3", "stage4", "stage5"} <= set(named)
        assert any("." in name for name in named)
        assert all(below["top"] >= above["bottom"] - 1 for above, below in pairwise(boxes))


def test_a_loss_is_named_by_its_last_part_where_there_is_no_room_and_its_values_are_told(
    panel: Panel, runs: Path
) -> None:
    for width, name in ((1400, "train/loss"), (400, "loss")):
        panel.page.set_viewport_size({"width": width, "height": 420})
        panel.show(chart_of_records(runs / "rate-0"), vega=6)
        assert [item["text"] for item in panel.items("xray_loss_name")] == [name]
    [area] = panel.items("xray_loss_area")
    panel.page.mouse.move(area["left"] + 1, area["top"] + 20)
    panel.settle()
    value = open_run(runs / "rate-0").model().scalar("train/loss").values[0]
    assert panel.signal("tip")["lines"][:2] == ["train/loss", "step 0"]
    assert float(panel.signal("tip")["lines"][2]) == pytest.approx(value, rel=0.01)


def test_a_loss_that_is_always_nan_says_so(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "all-nan"), vega=6)
    written = [text["text"] for text in panel.texts("xray")]
    assert "NaN" in written
    assert "train/loss" in written
    assert "NaN, ∞" in written


def test_how_many_rows_there_are_keeps_off_the_first_step(panel: Panel, runs: Path) -> None:
    panel.page.set_viewport_size({"width": 400, "height": 300})
    panel.show(chart_of_records(runs / "chain"), vega=6)
    texts = panel.texts("xray")
    [told] = [text for text in texts if "–" in text["text"]]
    [first] = [text for text in texts if text["text"] == "0"]
    assert told["right"] < first["left"]
    bottom = panel.signal("top") + panel.signal("xray_rows_y") + panel.signal("xray_rows_h")
    assert all(box["bottom"] <= bottom + 1 for box in panel.items("xray_label") if box["text"])


@pytest.mark.parametrize(
    ("modules", "rows"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["", "a", "b.c", "b"], [("", 0, 3), ("a", 1, 0), ("b", 1, 1), ("b.c", 2, 0)], id="sorted below"),
        pytest.param(["a.b.c", "d"], [("a.b.c", 0, 0), ("d", 0, 0)], id="without the model itself"),
    ],
)
def test_rows_nest_as_modules_do(modules: list[str], rows: list[tuple[str, int, int]]) -> None:
    found = [(row.module, len(row.above), len(row.inside) - 1) for row in nested(modules)]
    assert found == rows


def test_names_nested_very_deeply_are_no_trouble() -> None:
    names = [".".join("a" * depth) for depth in range(1, 1500)]
    assert len(nested(names)) == len(names)


def test_a_column_of_the_loss_has_the_values_logged_between_recorded_steps(runs: Path) -> None:
    scalar = open_run(runs / "spoilt").model().scalar("train/loss")
    found = curve(scalar, np.array([0, 4, 8]))
    values = scalar.values
    assert found.high.tolist()[0] == values[:4].max()
    assert found.low.tolist()[0] == values[:4].min()
    assert found.mean.tolist()[1] == pytest.approx(values[4:SPOILT].mean())
    assert found.is_bad.tolist() == [False, True, True]


def test_many_steps_make_few_columns_and_hide_no_nan(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = open_run(runs / "spoilt").model()
    monkeypatch.setattr(chart_xray, "MAX_COLUMNS", 4)
    found = xray_data(model)
    assert found is not None
    assert (found.first.tolist(), found.last.tolist()) == ([0, 4, 8], [3, 7, 11])
    assert [bool(code & 0x8000) for code in found.codes["output_std"][0].tolist()] == [False, True, True]


# Findings.


def sixty() -> list[Finding]:
    """Findings with long texts: a root cause, and 59 that follow from it."""
    text = "The output of this module is zero for every sample of the batch, in every unit of it. " * 4
    root = Finding(kind="nan", severity="error", module="blocks.1.inner", call=0, step=3, text=text, advice=text)
    return [
        root,
        *(
            Finding(
                kind="vanishing-gradient",
                module=("stem", "head", None)[number % 3],
                step=number % STEPS,
                last_step=STEPS - 1,
                text=text,
                causes=(root,),
            )
            for number in range(59)
        ),
    ]


@pytest.mark.parametrize(
    "size", thinned([pytest.param((1400, 560), id="large"), pytest.param((480, 300), id="small")], 1)
)
def test_sixty_findings_are_listed_and_one_leads_to_its_place(
    panel: Panel, runs: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(snapshot_process, "judge", lambda _: sixty())
    panel.page.set_viewport_size({"width": size[0], "height": size[1]})
    panel.show(chart_of_records(runs / "rate-0"), vega=6)
    assert len(panel.items("xray_mark")) >= 40
    panel.press("findings_button")
    assert panel.signal("tip")["lines"] == []  # which would hide the list
    assert panel.texts("findings_list")[0]["text"].startswith("Findings 1–")
    assert all(text["right"] <= size[0] for text in panel.texts("findings_list"))
    first, second = panel.items("finding_row")[:2]
    assert (first["datum"]["kind"], second["datum"]["level"]) == ("nan", "1")
    panel.page.mouse.move(second["left"] + 60, second["top"] + 8)
    panel.page.mouse.wheel(0, 100)
    panel.settle()
    assert panel.texts("findings_list")[0]["text"].startswith("Findings 3–")
    panel.page.mouse.wheel(0, -100)
    panel.settle()
    panel.page.mouse.click(first["left"] + 60, first["top"] + 8)
    panel.settle()
    assert [panel.signal(name) for name in ("here", "found", "chosen_step", "pins")] == [
        "blocks.1#0",
        "blocks.1.inner#0",
        3,
        ["blocks.1.inner#0"],
    ]
    assert not panel.signal("findings_open")


def unused(*modules: str) -> list[Finding]:
    text = "`{0}` is never called at a recorded step."
    return [Finding(kind="unused-module", module=module, step=2, text=text.format(module)) for module in modules]


def test_findings_that_say_the_same_are_one_row_which_opens(
    panel: Panel, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [*unused("blocks.0.act", "blocks.1.act", "blocks.2.act"), *unused("head")]
    monkeypatch.setattr(snapshot_process, "judge", lambda _: told)
    panel.show(chart_of_records(runs / "deeper"), vega=6)
    marks = len(panel.items("xray_mark"))
    assert panel.signal("finding_count") == 4
    panel.press("findings_button")
    assert listed(panel) == [("unused-module: 3 modules", "blocks.0–2.act"), ("unused-module", "head")]
    click_row(panel, 0)
    assert [place for _, place in listed(panel)] == ["blocks.0–2.act", *(one.module for one in told)]
    assert (panel.signal("chosen_step"), panel.signal("findings_open"), len(panel.items("xray_mark"))) == (
        -1,
        True,
        marks,
    )
    click_row(panel, 2)
    assert (panel.signal("found"), panel.signal("chosen_step")) == ("blocks.1.act#0", 2)
    assert not panel.signal("findings_open")


def listed(panel: Panel) -> list[tuple[str, str]]:
    rows = sorted(panel.items("finding_row"), key=lambda row: float(row["top"]))
    return [(row["datum"]["kind"], row["datum"]["place"]) for row in rows]


def click_row(panel: Panel, number: int) -> None:
    row = sorted(panel.items("finding_row"), key=lambda row: float(row["top"]))[number]
    panel.page.mouse.click(row["left"] + 60, row["top"] + 8)
    panel.settle()


def test_the_line_above_counts_findings_and_is_red_for_errors(
    panel: Panel, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_process, "judge", lambda _: sixty())
    panel.show(chart_of_records(runs / "rate-0"), vega=5)
    assert panel.items("findings_banner")[0]["fill"] == LIGHT["bad_soft"]
    [said] = [text["text"] for text in panel.texts("panel") if "click for all" in text["text"]]
    assert said.startswith("✕  1 error, 59 warnings:  nan at blocks.1.inner, step 3")


def test_a_healthy_run_has_no_word_of_findings(panel: Panel, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_process, "judge", lambda _: [])
    panel.show(chart_of_records(runs / "rate-0"), vega=6)
    assert (panel.signal("top"), panel.items("findings_button")[0]["opacity"]) == (30, 0)
