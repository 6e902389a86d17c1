"""The chart in Chromium, from records of trainings in which something is wrong, missing, or to be compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.tables import thinned
from tests.troubled import record_troubled
from tests.wandb_panel.emulator import Panel, chart_of_records
from tests.wandb_panel.test_table import counted
from torchgraph_explorer import Finding, open_run, watch
from torchgraph_wandb import snapshot_process
from torchgraph_wandb.chart.datasets import COLOUR_CHOICES
from torchgraph_wandb.chart.strip_layout import BOX, HEAT, LANE, RIM
from torchgraph_wandb.chart.themes import DARK, LIGHT
from torchgraph_wandb.heat_strips import INNER, heat_strips

pytestmark = pytest.mark.xdist_group("chart of records")  # which are made once

SMALL, LARGE = (480, 300), (1400, 560)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records: two trainings to compare, some in which NaN comes up, and one of which some is not recorded."""
    logdir = tmp_path_factory.mktemp("runs")
    for run in ("all", "deep", "clean"):
        record_troubled(logdir, run)
    record(logdir, "near", chain(), scale=1.0)
    record(logdir, "far", chain(), scale=5.0)
    record(logdir, "sometimes", Sometimes())
    record(logdir, "unrolled", Unrolled())
    return logdir


class Unrolled(nn.Module):
    """Calls one layer again and again, and then layers of which each gets what all before it gave."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.dense = nn.Linear(8, 8), nn.ModuleList([nn.Linear(8, 8) for _ in range(7)])

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(20):
            x = torch.tanh(self.cell(x))
        found = [x]
        for layer in self.dense:
            found.append(layer(torch.stack(found).sum(0)))
        return found[-1]


def chain() -> nn.Module:
    torch.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (nn.Linear(8, 8), nn.ReLU())]
    return nn.Sequential(*layers)


class Sometimes(nn.Module):
    """Leaves a layer out at even steps, gives zeros, and from step 6 on nothing finite."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.rare, self.act, self.zero = nn.Linear(8, 8), nn.Linear(8, 8), nn.Identity(), nn.Identity()
        self.passes = 0

    def forward(self, x: Tensor) -> Tensor:
        self.passes += 1
        y = self.first(x)
        y = y if self.passes % 2 else self.rare(y)
        lost = self.act(y.detach() * (torch.nan if self.passes > 6 else 1.0))
        return y.sum() + torch.nan_to_num(lost).sum() + self.zero(torch.zeros(4)).sum()


def record(logdir: Path, run: str, model: nn.Module, *, scale: float = 1.0, steps: int = 10) -> None:
    torch.manual_seed(1)
    with watch(model, log_freq=1, backend="record", logdir=logdir, run=run, name="Net", verbose=False):
        for _ in range(steps):
            model(scale * torch.randn(32, 8)).square().mean().backward()


@pytest.fixture
def panel_of(panel: Panel) -> Callable[[tuple[int, int]], Panel]:
    """Gives the panel some size before anything is drawn in it."""

    def sized(size: tuple[int, int]) -> Panel:
        panel.page.set_viewport_size({"width": size[0], "height": size[1]})
        return panel

    return sized


# NaN and infinity.


@pytest.mark.parametrize("theme", thinned(["light", "dark"], 1))
def test_what_is_not_finite_is_red_and_hatched_in_every_colouring(panel: Panel, runs: Path, theme: str) -> None:
    panel.show(chart_of_records(runs / "all", theme=theme), vega=6)
    colours = {"light": LIGHT, "dark": DARK}[theme]
    for look in COLOUR_CHOICES:
        panel.colour_by(look)
        assert panel.node("stem#0")["fill"] == colours["bad_soft"], look
        assert len({item["key"] for item in panel.page.evaluate("view.data('hatching')")}) >= 4, look
    assert {badge["badge"] for badge in panel.page.evaluate("view.data('badges')")} == {"NaN"}


def test_what_is_around_it_is_marked_and_so_is_the_way_there(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "deep"), vega=5)
    assert panel.data("badges", "key") == []  # at the last step all is well again
    panel.press("nonfinite_banner")
    assert panel.data("trail", "title") == ["✕ all calls", "✕ Net", "✕ body", "✕ body.1"]
    panel.press_parent("✕ Net")
    assert dict(zip(panel.data("badges", "key"), panel.data("badges", "badge"), strict=True)) == {
        "body#0": "NaN, ∞ inside"
    }
    assert panel.node("body#0")["fill"] == LIGHT["paper"]


def test_the_banner_names_the_first_step_and_call_and_leads_there(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "deep"), vega=6)
    [said] = [text["text"] for text in panel.texts("panel") if "First" in text["text"]]
    assert "First NaN at step 3: body.1.act (call 1), output" in said
    assert "2 of 10 recorded steps have NaN or infinity" in said
    panel.press("nonfinite_banner")
    assert [panel.signal(name) for name in ("shown", "here", "found", "pins")] == [
        3,
        "body.1#0",
        "body.1.act#0",
        ["body.1.act#0"],
    ]
    assert panel.data("nonfinite_nodes", "key") == ["body.1.act#0"]


def test_a_clean_run_has_neither_banner_nor_mark(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "clean"), vega=5)
    assert [text["text"] for text in panel.texts("panel") if "✕" in text["text"]] == []
    assert (panel.signal("top"), panel.data("badges", "key")) == (30, [])


def test_a_run_of_one_step_says_which_and_shows_its_loss_as_a_dot(panel: Panel, tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="one", verbose=False) as watcher:
        model(torch.randn(8, 4)).square().mean().backward()
        watcher.log({"loss": 0.5})
    panel.show(chart_of_records(tmp_path / "one"), vega=6)
    shown = [text["text"] for text in panel.texts("panel")]
    assert ("step 0" in shown, shown.count("0.5")) == (True, 1)
    assert panel.data("xray_loss_shown", "is_alone") == [True]
    middle = panel.signal("xray_loss_y") + panel.signal("xray_loss_h") / 2
    assert panel.data("xray_loss_shown", "mean_y") == [pytest.approx(middle)]


def test_a_column_of_the_loss_between_others_without_a_number_is_a_dot(panel: Panel, tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="one", verbose=False) as watcher:
        for loss in (0.5, np.nan, 0.3, np.nan, 0.2, 0.1):
            model(torch.randn(8, 4)).square().mean().backward()
            watcher.log({"loss": loss})
    panel.show(chart_of_records(tmp_path / "one"), vega=6)
    assert panel.data("xray_loss_shown", "is_alone") == [True, False, True, False, False, False]


def test_the_time_bar_marks_bad_steps_and_chooses_the_step(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "deep"), vega=6)
    assert panel.data("step_marks", "mark") == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    show_step(panel, 4)
    assert panel.signal("shown") == 4
    assert panel.data("badges", "badge") == ["NaN, ∞ inside"]
    [bar] = panel.items("time")
    panel.page.mouse.move(bar["left"] + 4, bar["top"] + 8)
    panel.page.mouse.down()
    panel.page.mouse.move(bar["right"] - 4, bar["top"] + 8, steps=4)
    panel.page.mouse.up()
    panel.settle()
    assert panel.signal("chosen_step") == -1  # the last one, which goes on with the training
    assert panel.signal("camera") == {"k": 1, "x": 0, "y": 0}


def show_step(panel: Panel, step: int) -> None:
    """Click the time bar of a run of ten steps."""
    [bar] = panel.items("time")
    panel.page.mouse.click(
        bar["left"] + (bar["right"] - bar["left"]) * (step + 0.5) / 10, (bar["top"] + bar["bottom"]) / 2
    )
    panel.settle()


def test_zero_not_finite_and_not_recorded_are_three_looks_of_nodes(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "sometimes"), vega=5)
    panel.colour_by("size of output")
    show_step(panel, 8)
    looks = {key: panel.node(f"{key}#0") for key in ("zero", "act", "rare", "first")}
    assert looks["zero"]["fill"] == LIGHT["paper"]
    assert looks["act"]["fill"] == LIGHT["bad_soft"]
    assert (looks["rare"]["fill"], looks["rare"]["strokeDash"]) == (LIGHT["missing"], [3, 3])
    assert looks["first"]["fill"].startswith("rgb")
    said = {text["text"] for text in panel.texts("stage")}
    assert {"0", "not finite", "not recorded", "zero", "NaN, ∞"} <= said


def test_zero_not_finite_and_not_recorded_are_three_looks_of_strips(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "sometimes"), vega=6)
    panel.pin("rare#0")
    panel.pin("act#0")

    def column(slot: int, step: int, path: str = "output") -> set[tuple[int, ...]]:
        at = panel.data(f"strips_{slot}", "path").index(path)
        return {tuple(row[step]) for row in panel.image(at, "heat", slot=slot)}

    red, pale, grey, line = (rgb(LIGHT[name]) for name in ("bad", "bad_soft", "missing", "missing_ink"))
    assert column(0, 0) == {grey, line}
    assert column(1, 9) == {red, pale}
    assert rgb(LIGHT["paper"]) in column(0, 1, "bias")  # of its 8 elements, in 22 rows
    assert not (column(0, 1) | column(0, 1, "bias")) & {red, pale, grey, line}
    assert panel.hover_strip(0, side=0, share=0.05, strip=1)[2] == "not recorded at this step"


def rgb(colour: str) -> tuple[int, ...]:
    return (*(int(colour[at : at + 2], 16) for at in (1, 3, 5)), 255)


def test_a_step_with_some_nan_is_marked_above_its_strip(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "deep"), vega=5)
    panel.press("nonfinite_banner")
    at = panel.data("strips_0", "path").index("output")
    lane = panel.image(at, "lane")
    assert [step for step in range(10) if any(row[step][3] for row in lane)] == [3, 4]
    assert panel.hover_strip(0, side=0, share=0.35, strip=1)[-1] == "NaN or infinity: 1"


# Themes.


@pytest.mark.parametrize("vega", thinned([5, 6], 0))
def test_the_theme_is_a_setting_and_a_button(panel: Panel, runs: Path, vega: int) -> None:
    panel.show(chart_of_records(runs / "clean", theme="dark"), vega=vega)
    assert (panel.signal("theme"), panel.page.evaluate("view.background()")) == ("dark", DARK["paper"])
    panel.pin("stem#0")
    dark = panel.image(0, "heat")
    panel.press("theme")
    assert (panel.signal("theme"), panel.page.evaluate("view.background()")) == ("light", LIGHT["paper"])
    assert panel.node("head#0")["fill"] == LIGHT["paper"]
    assert panel.image(0, "heat") != dark


def test_without_the_setting_it_is_light(panel: Panel, runs: Path) -> None:
    chart = chart_of_records(runs / "clean")
    chart.strings.clear()
    panel.show(chart, vega=6)
    assert panel.signal("theme") == "light"


@pytest.mark.parametrize("colours", [pytest.param(LIGHT, id="light"), pytest.param(DARK, id="dark")])
@pytest.mark.parametrize(
    ("ink", "ground"),
    [
        *((ink, ground) for ink in ("ink", "soft", "faint", "accent") for ground in ("paper", "canvas", "bar")),
        *(("bad", ground) for ground in ("paper", "canvas", "bad_soft")),
        *(("ink", ground) for ground in ("bad_soft", "missing", "glow")),
        ("bad_ink", "bad"),
        ("warn", "warn_soft"),
        ("tip_ink", "tip"),
    ],
)
def test_what_is_written_can_be_read(colours: dict[str, str], ink: str, ground: str) -> None:
    light, dark = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Relative, as WCAG has it."""
    parts = [value / 255 for value in rgb(colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


# HeatStrips.


def test_below_each_strip_stand_its_steps_and_no_text_lies_on_the_heat(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "near"), vega=6)
    panel.pin("0#0")
    assert panel.data("ticks_0", "content")[:3] == ["0", "4", "9"]
    strips_ = panel.items("strip_0")
    texts = panel.texts("inside_0")
    assert {"0", "4", "9"} <= {text["text"] for text in texts}
    assert [text["text"] for text in texts if any(overlap(text, strip) for strip in strips_)] == []


def overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    return across > 1 and down > 1


@pytest.mark.parametrize("down", thinned([0.03, 0.12, 0.3, 0.5, 0.62, 0.9], 0, 4))  # an end of the axis, and within
def test_the_row_that_is_pointed_at_is_counted(panel: Panel, runs: Path, down: float) -> None:
    model = open_run(runs / "near").model()
    [series] = model.find("2", role="output", kind="value")
    frames = [model.frame(number) for number in range(len(model))]
    low, high = heat_strips(frames, model.series, reject=model.session.reject_outlier_proportion).axes[series.id]
    below = counted(frames[7], series.id, low + (high - low) * np.linspace(0, 1, INNER + 1))
    counts = np.diff([0.0, *below, 256.0])
    panel.show(chart_of_records(runs / "near"), vega=6)
    panel.pin("2#0")
    line = panel.hover_strip(0, side=0, share=0.75, down=down, strip=1)[2]
    row = INNER + 1 - panel.signal("strip_tip")["row"]
    assert line.split(":  ")[1].split(" (")[0] == f"{round(counts[row]):,} of 256"


def test_axes_and_colours_stay_when_one_flips_between_runs(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "near", runs / "far"), vega=6)
    panel.press("side_by_side")  # from now on one run at a time
    panel.colour_by("spread of output")
    panel.pin("2#0")

    def seen() -> tuple[list[str], list[float], list[float], list[float]]:
        ends = [text["text"] for text in panel.texts("inside_0")]
        return ends, panel.data("strips_0", "axis_low"), panel.data("strips_0", "axis_high"), panel.signal("shades")

    near, own = seen(), panel.data("strips_0", "high")
    panel.press("run_next")
    assert panel.signal("run_name") == "far"
    assert seen() == near
    assert panel.data("strips_0", "high") != own  # they are not the same runs


def test_a_run_with_a_narrower_axis_is_drawn_where_its_values_are(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "near", runs / "far"), vega=5)
    panel.press("side_by_side")
    panel.pin("0#0")
    axis_low, axis_high, low, high = (
        panel.data("strips_0", name)[0] for name in ("axis_low", "axis_high", "low", "high")
    )
    assert axis_low < low < high < axis_high

    def told_at(value: float) -> str:
        down = (LANE + RIM + HEAT * (axis_high - value) / (axis_high - axis_low)) / BOX
        return panel.hover_strip(0, side=0, share=0.5, down=down)[2]

    assert "of 256" in told_at((low + high) / 2)
    assert panel.signal("tip_low") < (low + high) / 2 + (axis_high - axis_low) / HEAT
    assert panel.signal("tip_high") > (low + high) / 2 - (axis_high - axis_low) / HEAT
    assert told_at((high + axis_high) / 2).startswith("above ")
    assert told_at((low + axis_low) / 2).startswith("below ")


# Columns, menus, sizes.


@pytest.mark.parametrize("size", thinned([SMALL, (900, 500), LARGE, (2000, 560)], 0, 2), ids=str)
def test_a_seventh_module_is_shown_and_the_others_can_be_reached(
    panel_of: Callable[[tuple[int, int]], Panel], runs: Path, size: tuple[int, int]
) -> None:
    panel = panel_of(size)
    panel.show(chart_of_records(runs / "near"), vega=6)
    panel.press("xray_button")  # the graph alone
    for number in range(7):
        panel.press("zoom_fit")
        panel.pin(f"{number}#0")
    slots = panel.signal("slots")
    shown = [panel.signal(f"key_{slot}") for slot in range(slots)]
    assert shown == [f"{number}#0" for number in range(7 - slots, 7)]
    span = f"{8 - slots}–7 of 7" if slots > 1 else "7 of 7"
    assert span in {text["text"] for text in panel.texts("toolbar")}
    for _ in range(7):
        panel.press("columns_previous")
    assert panel.signal("key_0") == "0#0"
    panel.page.mouse.move(size[0] - 60, size[1] - 60)
    panel.page.mouse.wheel(80, 0)
    panel.settle()
    assert panel.signal("key_0") == "1#0"


def test_colours_are_chosen_from_a_menu_that_goes_away(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "clean"), vega=5)
    panel.press("colour_button")
    assert panel.data("colour_choices", "content") == list(COLOUR_CHOICES)
    panel.page.keyboard.press("Escape")
    panel.settle()
    assert (panel.signal("colour_menu_open"), panel.signal("colour_by")) == (False, 0)
    panel.press("colour_button")
    panel.page.mouse.click(700, 400)
    panel.settle()
    assert (panel.signal("colour_menu_open"), panel.data("colour_choices", "content")) == (False, [])
    panel.colour_by("zeros in output")
    assert panel.signal("colour_by") == COLOUR_CHOICES.index("zeros in output")


@pytest.mark.parametrize("run", thinned(["all", "near"], 0))  # with a banner there is less room
def test_a_small_panel_leaves_room_for_the_graph(
    panel_of: Callable[[tuple[int, int]], Panel], runs: Path, run: str
) -> None:
    panel = panel_of(SMALL)
    panel.show(chart_of_records(runs / run), vega=6)
    panel.pin(panel.data("here_nodes", "key")[1])
    assert panel.signal("graph_w") >= 200
    assert panel.signal("sight_h") >= 140  # below the line of findings
    right = [item["right"] for button in ("find", "colour_button", "zoom_fit", "theme") for item in panel.items(button)]
    assert max(right) <= SMALL[0]


def test_how_sessions_join_is_said_in_the_chart(panel: Panel, tmp_path: Path) -> None:
    record(tmp_path, "again", chain(), steps=6)
    with pytest.warns(UserWarning, match="recorded again"):
        record(tmp_path, "again", chain(), steps=3)
    panel.show(chart_of_records(tmp_path / "again"), vega=6)
    assert any("Two sessions are mixed" in text["text"] for text in panel.texts("panel"))


# Repeated calls, and edges that are labels.


def test_a_repeated_call_is_one_node_whose_strip_chooses_the_call(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "unrolled"), vega=5)
    assert [key for key in panel.data("here_nodes", "key") if key.startswith("cell")] == ["cell#0"]
    assert panel.node("cell#0")["datum"]["label"] == "cell ×20"
    last = max(panel.items("call_cell"), key=lambda cell: float(cell["left"]))
    panel.page.mouse.click((last["left"] + last["right"]) / 2, (last["top"] + last["bottom"]) / 2)
    panel.settle()
    panel.pin("cell#19")
    assert panel.data("tensors_0", "owner")[0] == "cell#19"
    panel.page.keyboard.press("[")
    panel.settle()
    assert "cell#17" in panel.data("here_nodes", "key")
    panel.press("find_0")
    assert "cell#19" in panel.data("here_nodes", "key")
    assert panel.complaints == []


def test_pointing_at_the_label_of_a_stub_draws_its_lines_and_a_click_leads_there(panel: Panel, runs: Path) -> None:
    panel.show(chart_of_records(runs / "unrolled"), vega=6)
    assert set(panel.data("here_edges", "ends")) == {""}
    [label] = [one for one in panel.items("stub") if one["datum"]["leads"] and one["datum"]["arrives"] == "1"][:1]
    place = (label["left"] + label["right"]) / 2, (label["top"] + label["bottom"]) / 2
    panel.page.mouse.move(*place)
    panel.settle()
    drawn = [ends.split("/") for ends in panel.data("here_edges", "ends") if ends]
    assert [label["datum"]["leads"], label["datum"]["at"]] in drawn
    panel.page.mouse.click(*place)
    panel.settle()
    assert (
        panel.signal("found")
        == dict(zip(panel.data("here_nodes", "at"), panel.data("here_nodes", "key"), strict=True))[
            label["datum"]["leads"]
        ]
    )


class Vast(nn.Module):
    """Gives values of both signs near 1e18, through layers whose long names differ at their ends only."""

    def __init__(self) -> None:
        super().__init__()
        self.long_name = "a_name_that_is_longer_than_any_node_and_any_list_has_room_for_"
        for end in ("first", "last"):
            self.add_module(self.long_name + end, nn.Linear(8, 8))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.children():
            x = layer(x)
        return x


def test_huge_numbers_keep_their_sign_and_long_names_their_end(panel: Panel, tmp_path: Path) -> None:
    model = Vast()
    record(tmp_path, "vast", model, scale=1e18)
    panel.show(chart_of_records(tmp_path / "vast"), vega=6)
    assert {item["text"][-5:] for item in panel.texts("stage") if "…" in item["text"]} == {"first", "_last"}
    panel.press("find")
    listed = [item["text"] for item in panel.texts("list") if "…" in item["text"]]
    assert [text[-5:] for text in listed] == ["first", "_last"]
    panel.press("find")
    panel.drag_out(f"{model.long_name}last#0")
    left = panel.signal("graph_w")
    ends = [item for item in panel.texts("inside_0") if item["text"].startswith("−") and "e18" in item["text"]]
    assert ends
    assert all(item["left"] >= left for item in ends)


def test_a_tooltip_is_not_wider_than_a_small_panel(panel: Panel, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "All of the outputs of this module are zero, for every sample of the batch. " * 3
    finding = Finding(kind="dead-units", severity="error", module="0", call=0, step=3, text=text, advice=text)
    monkeypatch.setattr(snapshot_process, "judge", lambda _: [finding])
    panel.page.set_viewport_size({"width": 400, "height": 300})
    panel.show(chart_of_records(runs / "near"), vega=6)
    [button] = panel.items("findings_button")
    panel.page.mouse.move(button["left"] + 4, button["top"] + 4)
    panel.settle()
    lines = panel.texts("tooltip")
    assert len(lines) > 3
    assert all(line["right"] <= 400 for line in lines)
