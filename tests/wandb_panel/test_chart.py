"""The chart in Chromium, from what the server was sent."""

from __future__ import annotations

import math
import re

import pytest

from tests.tables import thinned
from tests.wandb_panel.conftest import Online
from tests.wandb_panel.emulator import Chart, Panel, chart_of
from tests.wandb_panel.loopback import StoredRun

pytestmark = pytest.mark.xdist_group("wandb")  # one training online, and one process that has wandb

KEY = "torchgraph/Net"
BLOCK = ["blocks.0.inner#0", "blocks.0.relu#0", "blocks.0.outer#0", "blocks.0#0@residual", "blocks.0.relu#1"]


@pytest.fixture
def chart(online: Online) -> Chart:
    return chart_of(online.backend, KEY, online.backend.only_run())


@pytest.mark.parametrize("vega", thinned([5, 6], 1))
def test_one_clicks_into_a_module_drags_one_out_and_sees_its_histograms(chart: Chart, panel: Panel, vega: int) -> None:
    panel.show(chart, vega=vega)
    panel.click("blocks#0")
    panel.click("blocks.0#0")
    assert set(BLOCK) <= set(panel.data("here_nodes", "key"))
    panel.drag_out("blocks.0.inner#0")
    assert panel.signal("pins") == ["blocks.0.inner#0"]
    assert panel.data("tensors_0", "path") == [
        "input[0]",
        "output",
        "weight",
        "bias",
        "weight: update / value",
    ]
    assert sorted(panel.data("strips_0", "side")) == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    lines = panel.hover_strip(0, side=0, share=0.99)
    assert lines[:2] == ["input, values", "step 9"]
    assert re.fullmatch(r".* to .*:  [\d,]+ of 512 \(.*%\)", lines[2])
    assert lines[3].startswith("mean ")
    assert "all finite" in lines


def test_the_heat_is_really_painted(chart: Chart, panel: Panel) -> None:
    panel.show(chart, vega=5)
    panel.drag_out("stem#0")
    script = """() => {
        const image = view.data('strips_0')[0].image_heat;
        const data = image.getContext('2d').getImageData(0, 0, image.width, image.height).data;
        return [image.width, image.height, data.filter((value, at) => at % 4 === 0 && value < 250).length];
    }"""
    width, height, painted = panel.page.evaluate(script)
    assert (width, height) == (10, 22)
    assert painted > width * height / 4


def test_the_parents_are_listed_and_lead_back(chart: Chart, panel: Panel) -> None:
    panel.show(chart, vega=5)
    panel.click("blocks#0")
    panel.click("blocks.1#0")
    assert panel.data("trail", "title") == ["all calls", "Net", "blocks", "blocks.1"]
    panel.press_parent("Net")
    assert panel.signal("here") == "#0"


def test_an_attached_tensor_and_a_second_call_have_columns_of_their_own(chart: Chart, panel: Panel) -> None:
    panel.show(chart, vega=5)
    panel.click("blocks#0")
    panel.click("blocks.0#0")
    panel.drag_out("blocks.0#0@residual")
    panel.drag_out("blocks.0.relu#1")
    assert panel.data("tensors_0", "path") == ["residual"]
    assert panel.data("tensors_1", "path") == ["input[0]", "output"]


def test_typing_narrows_the_list_and_a_click_jumps(chart: Chart, panel: Panel) -> None:
    panel.show(chart, vega=5)
    panel.press("find")
    panel.page.keyboard.type("outer")
    panel.settle()
    assert panel.data("listed", "key") == ["blocks.0.outer#0", "blocks.1.outer#0"]
    panel.page.mouse.click(60, 30 + 32 + 18 + 9)
    panel.settle()
    assert (panel.signal("here"), panel.signal("found")) == ("blocks.1#0", "blocks.1.outer#0")


def test_a_search_that_is_deleted_leaves_the_list_in_its_order(chart: Chart, panel: Panel) -> None:
    panel.show(chart, vega=5)
    panel.press("find")
    before = dict(zip(panel.data("listed", "key"), panel.data("listed", "place"), strict=True))
    panel.page.keyboard.type("outer")
    for _ in "outer":
        panel.page.keyboard.press("Backspace")
    panel.settle()
    assert dict(zip(panel.data("listed", "key"), panel.data("listed", "place"), strict=True)) == before


def test_nodes_are_coloured_by_a_statistic(chart: Chart, panel: Panel) -> None:
    panel.show(chart, vega=5)
    assert all(map(math.isnan, panel.data("here_nodes", "shade")))
    panel.colour_by("spread of output")
    assert panel.signal("colour_names")[panel.signal("colour_by")] == "spread of output"
    assert not panel.signal("colour_menu_open")
    shades = panel.data("here_nodes", "shade")
    assert len(shades) - sum(map(math.isnan, shades)) == 3


def test_what_was_dragged_is_not_dragged_any_more(chart: Chart, panel: Panel) -> None:
    panel.show(chart, vega=5)
    panel.drag_out("stem#0")
    assert not panel.signal("is_dragging")


def test_all_of_a_graph_is_put_in_the_middle(chart: Chart, narrow_panel: Panel) -> None:
    narrow_panel.show(chart, vega=5)
    narrow_panel.press("xray_button")  # the graph alone
    narrow_panel.press("zoom_in")
    narrow_panel.press("zoom_fit")
    places = [narrow_panel.place(key) for key in narrow_panel.data("here_nodes", "key")]
    assert sum(x for x, _ in places) / len(places) == pytest.approx(400, abs=5)
    assert all(30 + 22 < y < 420 - 26 for _, y in places)


def test_the_wheel_enlarges_around_the_pointer_and_a_drag_moves(chart: Chart, panel: Panel) -> None:
    panel.show(chart, vega=5)
    x, y = panel.place("blocks#0")
    panel.page.mouse.move(x, y)
    panel.page.mouse.wheel(0, -400)
    panel.settle()
    assert panel.signal("camera")["k"] > 1.5
    assert panel.place("blocks#0") == pytest.approx((x, y), abs=1)
    panel.page.mouse.move(200, 400)
    panel.page.mouse.down()
    panel.page.mouse.move(230, 380, steps=3)
    panel.page.mouse.up()
    panel.settle()
    assert panel.place("blocks#0") == pytest.approx((x + 30, y - 20), abs=1)
    assert panel.signal("here") == "#0"


def test_a_tooltip_tells_shapes_and_extra_repr(chart: Chart, panel: Panel) -> None:
    panel.show(chart, vega=5)
    panel.page.mouse.move(*panel.place("stem#0"))
    panel.settle()
    assert panel.signal("tip")["lines"] == [
        "stem",
        "Linear",
        "input: 32×8 float32, no gradient",
        "output: 32×16 float32",
        "in_features=8, out_features=16, bias=True",
        "144 parameters",
    ]


def test_at_800_px_two_columns_fit_and_the_others_can_be_reached(chart: Chart, narrow_panel: Panel) -> None:
    narrow_panel.show(chart, vega=6)
    for key in ("stem#0", "blocks#0", "head#0"):
        narrow_panel.drag_out(key)
    assert (narrow_panel.signal("slots"), narrow_panel.signal("first")) == (2, 1)
    narrow_panel.press("columns_previous")
    assert narrow_panel.signal("key_0") == "stem#0"
    narrow_panel.page.mouse.move(narrow_panel.signal("graph_w") + 60, 300)
    narrow_panel.page.mouse.wheel(0, 100)
    narrow_panel.settle()
    assert narrow_panel.signal("scroll_0") > 0
    assert narrow_panel.signal("scroll_1") == 0


def test_several_selected_runs_are_told_apart(online: Online, panel: Panel) -> None:
    first = online.backend.only_run()
    second = StoredRun("other", first.entity, first.project, "the other one", first.config, first.summary)
    table = online.backend.run_file(first, f"{KEY}_table")
    online.backend.files[f"run/other/{first.summary[f'{KEY}_table']['path']}"] = table
    panel.show(chart_of(online.backend, KEY, first, second), vega=5)
    assert (panel.signal("run_count"), panel.signal("run_name")) == (2, first.display_name)
    nodes = panel.data("here_nodes", "key")
    assert len(nodes) == len(set(nodes))
    panel.press("run_next")
    assert panel.signal("run_name") == "the other one"


def test_without_data_it_says_that_it_waits(chart: Chart, panel: Panel) -> None:
    panel.show(Chart(chart.spec, chart.fields, chart.strings, []), vega=6)
    assert panel.signal("run_count") == 0
    assert panel.signal("here") == ""
