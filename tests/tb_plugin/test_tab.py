"""The tab in the real TensorBoard, in a real browser."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.browser.page import expect_refused, expect_soon, expect_true
from tests.browser.runs import STEPS, record_digits
from tests.record.examples import segment
from tests.tb_plugin.board import FAST, SLOW, Board, tensorboard
from tests.tb_plugin.hosts import PREFIX, notebook, prefix_stripping_proxy, serving
from tests.tb_plugin.runs import add_scalars, record
from tests.tb_plugin.tab import Tab, open_tab

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("tab")]  # one TensorBoard for many

SHOTS = os.environ.get("TORCHGRAPH_SHOTS")
"""A folder to leave screenshots in, to look at."""

WINDOW: ViewportSize = {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def board(digits_logdir: Path) -> Iterator[Board]:
    """A TensorBoard for the tests that need nothing special of it."""
    with tensorboard("--logdir", str(digits_logdir)) as board:
        yield board


@pytest.fixture(scope="module")
def board_of_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """A TensorBoard of the runs `alpha`, `beta` and `gamma`, which have scalars too."""
    logdir = tmp_path_factory.mktemp("three")
    for name in ("alpha", "beta", "gamma"):
        record(logdir / name, (0, 1))
        add_scalars(logdir / name, [0, 1])
    with tensorboard("--logdir", str(logdir)) as board:
        yield board


@pytest.fixture
def tab_of_three(board_of_three: Board, page: Page) -> Iterator[Tab]:
    """That TensorBoard in the page."""
    yield from watched(page, board_of_three.url)


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """One page for all tests: in a new one the browser reads TensorBoard's code anew, which takes seconds."""
    context = browser.new_context(reduced_motion="reduce")
    yield context.new_page()
    context.close()


@pytest.fixture
def tab(board: Board, page: Page) -> Iterator[Tab]:
    """TensorBoard in it. The browser must have had nothing to complain of."""
    yield from watched(page, board.url)


def watched(page: Page, url: str, *, theme: Literal["light", "dark"] = "light") -> Iterator[Tab]:
    """The page, empty and without anything that TensorBoard has kept in it, until the fixture ends."""
    page.goto("about:blank")
    page.context.new_cdp_session(page).send("Storage.clearDataForOrigin", {"origin": url, "storageTypes": "all"})
    page.set_viewport_size(WINDOW)
    page.emulate_media(color_scheme=theme)
    tab = open_tab(page, url)
    yield tab
    tab.leave()
    assert tab.complaints == []


def shoot(tab: Tab, name: str) -> None:
    if SHOTS:
        tab.page.wait_for_timeout(500)
        tab.page.screenshot(path=f"{SHOTS}/{name}.png")


def expect_graph(tab: Tab) -> None:
    expect(tab.node("classifier#0")).to_be_visible()


def test_the_xray_is_the_first_thing_one_sees_and_leads_to_a_module(tab: Tab) -> None:
    tab.open()
    picture = tab.viewer.get_by_role("application", name=re.compile("^X-ray"))
    expect(picture).to_be_visible()

    def check() -> None:
        assert tab.colours(picture) > 10

    expect_soon(check)
    shoot(tab, "tab_xray")
    picture.click(position={"x": 100, "y": 20})
    expect(tab.viewer.locator("[data-pin]")).to_have_count(1)


def expect_coloured(tab: Tab, chart: Locator) -> None:
    def check() -> None:
        assert tab.colours(chart) > 10

    expect_soon(check)


def drill_and_pin(tab: Tab) -> None:
    """Go into a stage, pin what is in it, and see how its values and gradients spread."""
    tab.node("stage1#0").dblclick()
    tab.node("stage1.0#0").click()
    tab.page.keyboard.press("p")
    for series in ("value", "gradient"):
        strip = tab.viewer.locator(f'.strip[aria-label*="output, {series}"]').first
        expect(strip.locator("canvas").first).to_be_visible()
        expect(strip.locator(".strip-loading")).to_have_count(0)
        expect_coloured(tab, strip)


# The other tests of the tab have TensorBoard as it starts by itself, in the light theme.
@pytest.mark.parametrize(
    ("arguments", "theme"),
    [
        pytest.param((FAST,), "light", id="with the Rust server", marks=pytest.mark.exhaustive),
        pytest.param((SLOW,), "dark", id="without it", marks=pytest.mark.exhaustive),
        pytest.param((FAST, "--path_prefix=/x/y"), "dark", id="below a prefix"),
    ],
)
def test_the_tab_drills_in_pins_and_shows_histograms(
    arguments: tuple[str, ...], theme: Literal["light", "dark"], digits_logdir: Path, page: Page
) -> None:
    with tensorboard("--logdir", str(digits_logdir), *arguments) as board:
        assert board.url.endswith("/x/y/") == (len(arguments) > 1)
        for tab in watched(page, board.url, theme=theme):
            tab.page.goto(board.url)
            tab.switch_to("torchgraph")
            expect_graph(tab)
            if theme == "dark":
                tab.page.evaluate("document.body.classList.add('dark-mode')")
            expect(tab.viewer.locator(f'html[data-theme="{theme}"]')).to_have_count(1)
            drill_and_pin(tab)
            shoot(tab, f"tab-{theme}-{len(arguments)}")
        assert "warning" not in board.said().lower()


def test_the_theme_is_the_hosts(tab: Tab) -> None:
    tab.open()
    expect_graph(tab)
    toggle = "(is) => document.body.classList.toggle('dark-mode', is)"
    for is_dark, theme in ((True, "dark"), (False, "light")):
        tab.page.evaluate(toggle, is_dark)
        expect(tab.viewer.locator(f'html[data-theme="{theme}"]')).to_have_count(1)


def test_nothing_is_asked_while_another_tab_is_in_front(tab: Tab) -> None:
    tab.open(pin="0.classifier#0")
    expect(tab.chart("classifier, output, value")).to_be_visible()
    tab.switch_to("Time Series")
    expect_soon(partial(check_quiet, tab))
    tab.asked.clear()
    tab.switch_to("torchgraph")
    expect_graph(tab)
    expect_soon(partial(check_asked, tab))
    expect_coloured(tab, tab.chart("classifier, output, value"))


def check_quiet(tab: Tab) -> None:
    """The page, which else asks every second, asks for nothing for more than two."""
    tab.asked.clear()
    tab.page.wait_for_timeout(2500)
    assert tab.asked == []


def check_asked(tab: Tab) -> None:
    tab.page.wait_for_timeout(0)  # hears what the page asks for meanwhile
    assert tab.asked


def test_charts_that_change_size_while_hidden_are_drawn_anew(tab: Tab) -> None:
    tab.open(pin="0.classifier#0")
    expect(tab.chart("classifier, output, value")).to_be_visible()
    tab.switch_to("Time Series")
    tab.page.set_viewport_size({"width": 1100, "height": 700})
    tab.switch_to("torchgraph")
    canvas = tab.chart("classifier, output, value").locator("canvas").first
    canvas.scroll_into_view_if_needed()

    def check() -> None:
        width = canvas.evaluate("(one) => one.getBoundingClientRect().width * devicePixelRatio - one.width")
        assert abs(width) < 2

    expect_soon(check)
    expect_coloured(tab, tab.chart("classifier, output, value"))


def test_a_link_to_tensorboard_reproduces_the_view(tab: Tab) -> None:
    tab.open()
    expect_graph(tab)
    tab.node("stage1#0").dblclick()
    tab.node("stage1.0#0").click()
    tab.page.keyboard.press("p")
    expect_true(tab.page, "() => location.hash.includes('pin')")
    assert tab.address.startswith("#torchgraph&p.torchgraph.view=run%3Ddigits")
    link = tab.address
    for other in watched(tab.page, tab.url):  # without anything that was kept in the page
        other.page.goto(f"{tab.url}{link}")
        expect(other.viewer.locator('[data-pin="stage1.0#0"]')).to_be_visible()
        expect_soon(partial(check_address, other, link))


def check_address(tab: Tab, expected: str) -> None:
    assert tab.address == expected


def test_a_link_opened_in_the_same_page_is_followed(tab: Tab) -> None:
    tab.open()
    expect_graph(tab)
    tab.page.evaluate("location.hash = '#torchgraph&p.torchgraph.view=run%3Ddigits%26pin%3D0.classifier%25230'")
    expect(tab.viewer.locator('[data-pin="classifier#0"]')).to_be_visible()


def test_the_first_run_is_one_that_the_hosts_filter_lets_through(tab_of_three: Tab) -> None:
    tab_of_three.page.goto(f"{tab_of_three.url}?runFilter=mma$#torchgraph")
    expect(tab_of_three.viewer.get_by_label("Run", exact=True)).to_have_value("gamma")


def test_behind_a_proxy_that_strips_a_prefix(board: Board, page: Page) -> None:
    with serving(prefix_stripping_proxy(board.url)) as address:
        for tab in watched(page, f"{address}{PREFIX}/"):
            tab.open()
            expect_graph(tab)


def test_in_a_notebook(board: Board, page: Page) -> None:
    with serving(notebook(board.url)) as address:
        for tab in watched(page, address):
            tab.page.goto(address)
            inner = tab.page.frame_locator("#tensorboard")
            inner.get_by_role("tab", name="torchgraph").click()
            viewer = inner.frame_locator('iframe[src*="name=torchgraph"]')
            expect(viewer.locator('.node[data-key="classifier#0"]')).to_be_visible()
            expect(viewer.locator(".connection")).to_contain_text(f"{STEPS} steps")


def test_a_page_that_is_not_tensorboards_may_not_show_the_tab_alone(board: Board, browser: Browser) -> None:
    with serving(notebook(f"{board.url}data/plugin/torchgraph/app.html?host=tensorboard")) as address:
        page = browser.new_page()
        page.goto(address)
        expect(page.locator("iframe")).to_be_visible()
        expect_refused(page)
        page.close()


def test_new_steps_appear_and_a_deleted_run_is_told(tmp_path: Path, page: Page) -> None:
    record_digits(tmp_path, "live", steps=2)
    with tensorboard("--logdir", str(tmp_path)) as board:
        for tab in watched(page, board.url):
            tab.open()
            expect(tab.viewer.locator(".connection")).to_contain_text("2 steps")
            record_digits(tmp_path, "live", steps=3)
            expect(tab.viewer.locator(".connection")).to_contain_text("3 steps")
            shutil.rmtree(tmp_path / "live")
            expect(tab.viewer.locator(".connection")).to_have_text("Run not found")
            shoot(tab, "tab-deleted")
            tab.complaints.clear()  # the browser notes each refusal


def test_a_damaged_run_is_told_in_the_tab_and_other_tabs_work(tmp_path: Path, page: Page) -> None:
    record(tmp_path / "bad", [0])
    add_scalars(tmp_path / "good", [0])
    segment(tmp_path / "bad").write_bytes(b"\xff" * 5000)
    with tensorboard("--logdir", str(tmp_path)) as board:
        for tab in watched(page, board.url):
            tab.open()
            expect(tab.viewer.locator(".notice")).to_contain_text("holds no record that can be read")
            shoot(tab, "tab-damaged")
            tab.switch_to("Time Series")
            expect(tab.page.get_by_text("loss").first).to_be_visible()


def test_a_thousand_steps_are_drawn(tmp_path: Path, page: Page) -> None:
    record(tmp_path / "long", range(1000))
    with tensorboard("--logdir", str(tmp_path)) as board:
        for tab in watched(page, board.url):
            tab.open()
            expect(tab.viewer.locator(".connection")).to_contain_text("1,000 steps")


def test_the_tab_names_the_first_nan_and_leads_there(tab: Tab) -> None:
    tab.open()
    first = tab.viewer.locator(".first-trouble")
    expect(first).to_have_text("First NaN at step 20: classifier (call 1), output")
    first.click()
    expect(tab.viewer.locator("output.readout")).to_contain_text("step 20")
    expect(tab.viewer.locator('.node[data-key="classifier#0"] .node-badge')).to_have_text("first NaN")
    expect(tab.viewer.locator('[data-pin="classifier#0"]')).to_be_visible()
    tab.viewer.get_by_role("tree", name="Findings").get_by_role("treeitem", name="NaN or infinity").click()
    expect(tab.viewer.get_by_role("article", name="Finding: NaN or infinity")).to_contain_text("made NaN or infinity")
    shoot(tab, "nan")


def filter_runs(tab: Tab, text: str) -> None:
    """Type `text` into TensorBoard's own filter, and come back."""
    tab.switch_to("Time Series")
    box = tab.page.locator('input[placeholder="Filter runs (regex)"]')
    box.click()
    box.press("Control+A")
    box.press("Delete")
    box.press_sequentially(text)
    tab.switch_to("torchgraph")


def test_the_runs_are_those_that_tensorboard_filters_also_when_that_changes(tab_of_three: Tab) -> None:
    tab_of_three.open(run="alpha")
    run, runs = tab_of_three.viewer.get_by_label("Run", exact=True), tab_of_three.viewer.get_by_role("searchbox")
    expect(run).to_have_value("alpha")
    for filtered, expected in (
        ("bet|gam", ["beta", "gamma"]),
        ("amm", ["gamma"]),
        ("", ["alpha", "beta", "gamma"]),
    ):
        filter_runs(tab_of_three, filtered)
        expect(runs).to_have_value(filtered)
        expect_soon(partial(check_options, run, expected))
        expect(run).to_have_value(re.compile(filtered or "."))


def test_two_runs_are_compared_as_far_as_tensorboards_filter_lets_them_through(tab_of_three: Tab) -> None:
    tab_of_three.open(run="alpha")
    tab_of_three.viewer.get_by_role("button", name="Compare").click()
    tab_of_three.viewer.get_by_role("dialog").get_by_role("checkbox", name="beta").check()
    tab_of_three.viewer.get_by_role("button", name="Done").click()
    shown = tab_of_three.viewer.locator(".runs-shown .run-label")
    expect(shown).to_have_text(["alpha", "beta"])
    shoot(tab_of_three, "two runs")
    for filtered, count in (("alph", 0), ("", 2)):
        filter_runs(tab_of_three, filtered)
        expect(shown).to_have_count(count)


def check_options(run: Locator, expected: list[str]) -> None:
    assert sorted(run.locator("option").all_text_contents()) == expected


def test_a_picture_and_a_table_are_saved_in_the_tab(tab: Tab, tmp_path: Path) -> None:
    tab.open(pin="0.classifier#0")
    expect(tab.chart("classifier, output, value")).to_be_visible()
    table = tab.viewer.get_by_role("button", name="Save classifier, output, value as CSV")
    with tab.page.expect_download() as waiting:
        table.click()
    waiting.value.save_as(tmp_path / "table.csv")
    assert len((tmp_path / "table.csv").read_text(encoding="utf-8").split()) == STEPS + 1
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        tab.viewer.get_by_label("Save the graph as a picture").first.click()
        with tab.page.expect_download() as waiting:
            tab.viewer.get_by_role("button", name=f"Save as {kind}").click()
        waiting.value.save_as(tmp_path / "picture")
        assert (tmp_path / "picture").read_bytes().startswith(start)


def test_without_runs_it_says_how_one_comes_into_this_folder(tmp_path: Path, page: Page) -> None:
    with tensorboard("--logdir", str(tmp_path)) as board:
        for tab in watched(page, board.url):
            tab.open()
            expect(tab.viewer.get_by_role("status").filter(has_text="No run in the folder")).to_contain_text(
                f'watch(model, backend="tensorboard", logdir="{tmp_path}")'
            )
