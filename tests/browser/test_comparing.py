"""Runs that are compared in a browser: the choice, panels, alignment, names that differ, the graph, and a page."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Locator, Request, Route, expect

from tests.browser import runs
from tests.browser.page import Viewer, expect_painted, expect_true
from tests.tables import thinned
from torchgraph_explorer import open_run
from torchgraph_explorer.server.export import export_page

LAST = runs.SWEEP_STEPS - 1


def others(sweep: str, *names: str) -> list[str]:
    """The choice of runs, as the address has it."""
    return [f"{number}.{quote(f'{sweep}/net_{name}', safe='')}/net" for number, name in enumerate(names, start=1)]


def compare(viewer: Viewer, sweep: str, *names: str, **choices: object) -> None:
    """Open the first run with the others beside it."""
    viewer.open(f"{sweep}/net_{names[0]}", model="net", **{"with": others(sweep, *names[1:])}, **choices)
    expect(column(viewer).locator(".runs-shown li")).to_have_count(len(names))


def column(viewer: Viewer) -> Locator:
    return viewer.page.get_by_role("region", name="Compared runs")


def expect_drawn(strip: Locator) -> None:
    """The strip is drawn as soon as it can be seen."""
    strip.scroll_into_view_if_needed()
    expect_painted(strip)


def expect_link(viewer: Viewer, text: str, *, times: int) -> None:
    """The address has the text so often."""
    expect_true(viewer.page, "([text, times]) => location.hash.split(text).length === times + 1", arg=[text, times])


def test_long_names_of_runs_leave_the_list_in_columns_and_the_title_whole(own_viewer: Viewer, own_logdir: Path) -> None:
    for number, name in enumerate(("short", f"sweep-{'learning-rate-' * 6}1", f"sweep-{'learning-rate-' * 6}2")):
        runs.record_short(own_logdir, name, steps=1 + number)
    own_viewer.page.set_viewport_size({"width": 390, "height": 800})
    for name in ("short", f"sweep-{'learning-rate-' * 6}2"):
        own_viewer.open(name)
        expect(own_viewer.node("#0/input[0]")).to_be_visible()
        own_viewer.page.keyboard.press("c")
        title = own_viewer.page.get_by_role("heading", name=re.compile("^Compare "))
        expect(title).to_contain_text("with")
        assert title.evaluate("(title) => title.scrollWidth <= title.clientWidth")
        names = own_viewer.page.locator(".runs-name")
        expect(names).to_have_count(2)
        assert len(set(names.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().left)"))) == 1
        assert names.evaluate_all("(all) => all.every((one) => one.offsetWidth > 200)")
        own_viewer.page.keyboard.press("Escape")


def test_names_of_runs_beside_a_panel_are_not_broken_at_each_hyphen(own_viewer: Viewer, own_logdir: Path) -> None:
    names = ("resnet18-lr0.1-wd1e-4-seed0", "resnet18-lr0.001-wd1e-4-seed2", "b")
    for number, name in enumerate(names):
        runs.record_short(own_logdir, name, steps=1 + number)
    model = open_run(own_logdir / "b").models[0]
    own_viewer.page.set_viewport_size({"width": 1440, "height": 900})
    chosen = [f"{number}.{name}/{model}" for number, name in enumerate(names[1:], start=1)]
    own_viewer.open(names[0], pin=["0.0.a#0"], **{"with": chosen})
    labels = column(own_viewer).locator(".runs-shown .run-label")
    expect(labels).to_have_text(list(names))
    tall = labels.evaluate_all("(all) => all.filter((one) => one.offsetHeight > 25).map((one) => one.textContent)")
    assert tall == []
    places = (
        column(own_viewer).locator(".runs-shown .run-chip").evaluate_all("(all) => all.map((one) => one.offsetLeft)")
    )
    assert len(set(places)) == 1
    short = column(own_viewer).locator(".runs-shown li").last
    assert short.evaluate("(item) => item.offsetHeight < 40")


def test_runs_are_chosen_from_a_list_with_a_filter_and_stay_in_the_link(viewer: Viewer, sweep: str) -> None:
    viewer.open(f"{sweep}/net_base", model="net", pin="0.trunk#0")
    viewer.button("Compare").click()
    dialog = viewer.page.get_by_role("dialog", name="Compare runs")
    dialog.get_by_role("searchbox").fill("sweep/net_(again|spa)")
    expect(dialog.get_by_role("checkbox")).to_have_count(3)  # with that for all that match
    for box in dialog.locator("li").get_by_role("checkbox").all():
        box.check()
    viewer.page.keyboard.press("Escape")
    items = column(viewer).locator(".runs-shown li")
    expect(items).to_have_text(
        [re.compile("^Abase.*on show"), re.compile("^B(again|sparse)"), re.compile("^C(again|sparse)")]
    )
    for label in ("base", "again", "sparse"):
        expect_drawn(viewer.chart(f"{label}: trunk, output, value"))
    expect_link(viewer, "with=", times=2)
    viewer.page.reload()
    expect(items).to_have_count(3)
    expect(viewer.button("Compare: 3 runs")).to_be_visible()
    viewer.button("Show sparse").click()
    expect(items.first).to_contain_text("sparse")
    expect(items).to_have_count(3)
    viewer.button("Remove base").click()
    expect(items).to_have_count(2)
    viewer.button("Stop comparing").click()
    expect(column(viewer)).to_have_count(0)
    expect_link(viewer, "with=", times=0)


def test_all_runs_that_match_are_compared_while_that_is_chosen(viewer: Viewer, sweep: str) -> None:
    viewer.open(f"{sweep}/net_base", model="net", **{"with": "all"})
    viewer.page.get_by_role("searchbox").fill("sweep/net_[bos]")
    expect(column(viewer).locator(".run-label")).to_have_text(
        ["base", re.compile("other|sparse"), re.compile("other|sparse")]
    )
    expect_link(viewer, "match=", times=1)
    viewer.page.reload()  # as one who follows the link
    expect(column(viewer).locator(".run-label")).to_have_count(3)
    viewer.page.get_by_role("searchbox").fill("")


def test_a_panel_shows_each_series_of_all_runs_on_one_axis_and_their_histograms_at_the_step(
    viewer: Viewer, sweep: str
) -> None:
    compare(viewer, sweep, "base", "again", "sparse", pin="0.trunk#0", step=10)
    strips = [viewer.chart(f"{label}: trunk, output, value") for label in ("base", "again", "sparse")]
    for strip in strips:
        expect_drawn(strip)
    figure = viewer.page.locator("figure").filter(has=strips[0])
    expect(figure.locator(".outline")).to_have_count(3)
    rows = figure.locator(".runs-table tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(1).locator("small")).to_have_text(["="] * 6)
    expect(rows.nth(1).locator("td").first).to_have_text("0")
    expect(rows.nth(2).locator("small").first).to_have_text(re.compile(r"^[+−]"))
    part = viewer.page.locator(".divergence")
    expect(part).to_have_text("BNo difference at the 16 steps that both logged.")
    viewer.button("Compare the graph with sparse").click()
    expect(part).to_contain_text(
        "differ at step 0, the first step that both logged. The first difference is in module trunk, weight"
    )
    part.get_by_role("button", name="Go there").click()
    expect(viewer.readout).to_contain_text("step 0")
    expect(column(viewer).locator(".runs-ranked li").first).to_be_visible()
    viewer.panel("trunk#0").locator(".panel-body").evaluate("(it) => it.scrollTo({top: 0})")  # it is at the weight
    viewer.slider.press("End")
    viewer.page.keyboard.press(",")
    viewer.select_mode("Line")
    plot = viewer.panels.get_by_role("slider", name="trunk, output, value, in 3 runs")
    expect(plot).to_have_attribute(
        "aria-valuetext", re.compile(r"^step 14: A base \S+, B again \S+, C sparse \(step 15\) \S+$")
    )
    plot.press("ArrowRight")
    expect(plot).to_have_attribute("aria-valuetext", re.compile(r"step 15: .*C sparse \S+$"))
    for way in ("Mean and spread", "Side by side"):
        viewer.choose("Runs", way)
    expect_drawn(strips[2])
    for mode in ("Ridge", "Overlay"):
        viewer.select_mode(mode)
        viewer.chart("sparse: trunk, output, value").scroll_into_view_if_needed()
        expect(viewer.chart("sparse: trunk, output, value").locator("path")).to_have_count(4)


@pytest.mark.parametrize("mode", ["Heat", "Line", "Ridge"])
def test_a_run_that_answers_last_is_shown_like_the_others(viewer: Viewer, sweep: str, mode: str) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    viewer.page.route(re.compile(r"/api/.*net_sparse"), hold)
    compare(viewer, sweep, "base", "again", "sparse", pin="0.trunk#0", step=10)
    viewer.select_mode(mode)
    figure = viewer.page.locator(".runs-chart").first
    figure.scroll_into_view_if_needed()
    expect(figure.locator(".outline")).to_have_count(2)
    assert held
    for route in held:
        route.continue_()
    viewer.page.unroute_all()
    expect(figure.locator(".outline")).to_have_count(3)
    if mode == "Line":
        expect(figure.locator(".runs-plot")).to_have_attribute("aria-valuetext", re.compile(r"C sparse \S+$"))
    elif mode == "Ridge":
        expect(figure.locator(".ridges").nth(2).locator("path")).to_have_count(4)
    else:
        expect_painted(figure.locator(".strip").nth(2))


def test_a_run_whose_time_axis_comes_last_is_told_like_the_others(viewer: Viewer, sweep: str) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    viewer.page.route(re.compile(r"/api/scalars.*net_sparse"), hold)
    compare(viewer, sweep, "base", "sparse", pin="0.trunk#0", step=10, mode="line", time="scalar:tokens")
    plot = viewer.page.locator(".runs-plot").first
    expect(plot).to_have_attribute("aria-valuetext", re.compile(r"A base \S+, B sparse –$"))
    for route in held:
        route.continue_()
    viewer.page.unroute_all()
    expect(plot).to_have_attribute("aria-valuetext", re.compile(r"A base \S+, B sparse \(step 5\) \S+\d$"))


def test_charts_are_made_and_fetched_when_they_come_near(viewer: Viewer, sweep: str) -> None:
    asked: list[str] = []

    def hear(request: Request) -> None:
        asked.append(request.url)

    viewer.page.on("request", hear)
    viewer.page.set_viewport_size({"width": 1280, "height": 400})
    compare(viewer, sweep, "base", "again", "other", pin=["0.trunk#0", "1.head#0"])
    charts = viewer.page.locator(".runs-chart")
    expect(viewer.page.locator(".divergence")).not_to_contain_text("looking")
    expect(charts.first.locator(".strip")).to_have_count(2)  # the third run has no such module
    far = charts.filter(has_not=viewer.page.locator(".strip"))
    assert far.count() > charts.count() / 2
    fetched = [parse_qs(urlsplit(url).query) for url in asked if "/api/history" in url]
    series = {number for one in fetched if one["run"][0].endswith("again") for number in one["series"][0].split(",")}
    assert 0 < len(series) < charts.count() / 2
    last = charts.last
    height = last.bounding_box()
    last.scroll_into_view_if_needed()
    expect(last.locator(".strip-loading")).to_have_count(0)
    expect_drawn(last.locator(".strip").last)
    drawn = last.bounding_box()
    assert height is not None
    assert drawn is not None
    assert abs(height["height"] - drawn["height"]) < 120  # what was read does not jump
    viewer.page.remove_listener("request", hear)


def test_runs_are_aligned_by_step_clock_or_scalar_at_the_nearest_logged_step(viewer: Viewer, sweep: str) -> None:
    compare(viewer, sweep, "base", "sparse", "other", step=7)
    steps = column(viewer).locator(".runs-shown .run-step")
    expect(steps).to_have_text(["step 7", "step 5", "step 7"])
    expect(column(viewer)).to_contain_text("Each run is at its logged step nearest to step 7")
    viewer.choose("Aligned by", "tokens")
    expect(steps).to_have_text(["step 7", "step 5", "step 7"])
    viewer.slider.press("Home")
    expect(steps).to_have_text(["step 0", "step 0", "step 0"])
    viewer.open(f"{sweep}/net_base", model="net", **{"with": others(sweep, "sparse")}, step=LAST, time="scalar:tokens")
    expect(steps).to_have_text([f"step {LAST}", "step 5"])  # 160 tokens are nearer to its 120 than to its 220
    viewer.choose("Aligned by", "epoch")
    expect(steps).to_have_text([f"step {LAST}", f"step {LAST}"])
    viewer.page.get_by_role("region", name="Scalars").scroll_into_view_if_needed()
    loss = viewer.page.get_by_role("img", name=re.compile("A loss"))
    expect(loss.locator(".scalar-line")).to_have_count(2)


def test_modules_are_matched_by_name_or_by_a_rename_map_and_the_graph_shows_what_differs(
    viewer: Viewer, sweep: str
) -> None:
    compare(viewer, sweep, "base", "other", pin="0.trunk#0")
    unmatched = column(viewer).locator(".runs-unmatched")
    expect(unmatched).to_contain_text("1 module of A, 1 module of B")
    expect(viewer.panel("trunk#0").locator(".run-line.is-none").first).to_contain_text("has no such series")
    expect(viewer.node("trunk#0").locator(".node-change")).to_have_text("not in B")
    expect(viewer.node("head#0").locator(".node-change")).to_have_text("other shape")
    expect(viewer.page.get_by_role("note", name="Only in other")).to_contain_text("stem Linear")
    column(viewer).get_by_text("Renamed modules").click()
    column(viewer).get_by_role("textbox").fill("trunk = stem")
    expect(unmatched).to_have_count(0)
    expect(viewer.node("trunk#0").locator(".node-change")).to_have_count(0)
    expect(viewer.page.get_by_role("note")).to_have_count(0)
    expect_drawn(viewer.chart("other: trunk, output, value"))
    viewer.choose("Colour", "Output standard deviation − that of B")
    expect(viewer.node("head#0")).to_have_class(re.compile("by-value"))
    expect_link(viewer, "rename=trunk", times=1)
    column(viewer).get_by_role("textbox").fill("trunk")
    expect(column(viewer)).to_contain_text("Write a name on each side of one =")


def test_an_exported_page_of_two_runs_opens_with_them_compared(
    offline: Viewer, logdir: Path, sweep: str, tmp_path: Path
) -> None:
    first, second = (open_run(logdir / sweep / f"net_{name}") for name in ("base", "sparse"))
    export_page(first, tmp_path / "page.html", compare=[second])
    offline.page.goto(f"{(tmp_path / 'page.html').as_uri()}#pin=0.head%230&step=7")
    expect(column(offline).locator(".run-label")).to_have_text(["base", "sparse"])
    expect(column(offline).locator(".runs-shown .run-step")).to_have_text(["step 7", "step 5"])
    expect_drawn(offline.chart("sparse: head, output, value"))
    expect(offline.page.locator(".divergence")).to_contain_text("the gradients agree, the update differs")


@pytest.mark.parametrize("size", thinned([(1440, 900), (1280, 800), (900, 600)], 2), ids=str)
def test_panels_beside_which_nothing_is_pinned_are_whole_and_have_their_titles(
    viewer: Viewer, sweep: str, size: tuple[int, int]
) -> None:
    viewer.page.set_viewport_size({"width": size[0], "height": size[1]})
    compare(viewer, sweep, "base", "sparse")
    xray = viewer.page.get_by_role("region", name="X-ray")
    title = xray.get_by_role("heading", name="X-ray")
    expect(title).to_be_visible()
    assert title.evaluate("(it) => it.scrollWidth <= it.clientWidth && getComputedStyle(it).clipPath === 'none'")
    for panel in (column(viewer), xray):
        box = panel.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= size[0]


def test_some_of_the_series_that_differ_most_are_in_sight_on_a_laptop(viewer: Viewer, sweep: str) -> None:
    viewer.page.set_viewport_size({"width": 1366, "height": 620})
    compare(viewer, sweep, "base", "sparse")
    ranked = column(viewer).locator(".runs-ranked li")
    for place in range(2):
        expect(ranked.nth(place)).to_be_in_viewport(ratio=1)


def test_a_series_that_differs_is_in_sight_in_the_panel_that_a_click_opens(viewer: Viewer, sweep: str) -> None:
    viewer.page.set_viewport_size({"width": 1440, "height": 700})
    compare(viewer, sweep, "base", "sparse")
    viewer.page.get_by_role("button", name="Go there").click()
    weight = viewer.page.locator("[data-pin] .tensor.is-sought")
    expect(weight.get_by_role("heading")).to_contain_text("weight")
    expect(weight.get_by_role("heading")).to_be_in_viewport(ratio=1)
    ranked = column(viewer).locator(".runs-ranked li").filter(has_text="bias").first
    ranked.get_by_role("button").click()
    expect(weight.get_by_role("heading")).to_contain_text("bias")
    expect(weight.get_by_role("heading")).to_be_in_viewport(ratio=1)
