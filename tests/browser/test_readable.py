"""Graphs with fan-outs and equal siblings: what is a label, what is a line, and what is stacked."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, expect

from tests.browser.page import Viewer
from torchgraph_explorer import open_run
from torchgraph_explorer.server.export import export_page

LONG = "a_head_whose_name_is_longer_than_any_node_of_the_graph_is_wide"


def stub(viewer: Viewer, text: str) -> Locator:
    return viewer.page.locator(".stub").filter(has=viewer.page.get_by_text(text, exact=True))


def labels(viewer: Viewer) -> list[str]:
    found: list[str] = viewer.page.locator(".node-label").evaluate_all("(all) => all.map((one) => one.textContent)")
    return found


def test_a_fan_out_is_a_label_at_each_target_that_shows_its_line_and_leads_to_its_source(
    viewer: Viewer, denoiser: str
) -> None:
    viewer.open(denoiser)
    expect(stub(viewer, "time_emb")).to_have_count(7)
    lines = viewer.page.locator(".edge.is-selected")
    expect(lines).to_have_count(0)
    stub(viewer, "→ 7").hover()
    expect(lines).to_have_count(7)
    stub(viewer, "time_emb").nth(2).hover()
    expect(lines).to_have_count(1)
    expect(viewer.page.get_by_role("tooltip")).to_contain_text("time_emb → blocks.3")
    stub(viewer, "time_emb").nth(2).click()
    expect(viewer.node("time_emb#0")).to_have_attribute("aria-selected", "true")
    expect(lines).to_have_count(9)  # from the timestep, to the first block, and those of the stubs


def test_inputs_stand_in_the_order_of_the_signature_and_no_two_nodes_read_alike(viewer: Viewer, denoiser: str) -> None:
    viewer.open(denoiser)
    expect(viewer.node("#0/input['sample']")).to_contain_text("sample")
    left, right = (viewer.node(f"#0/input['{name}']").bounding_box() for name in ("sample", "timestep"))
    assert left is not None
    assert right is not None
    assert left["x"] < right["x"]
    shown = labels(viewer)
    assert len(set(shown)) == len(shown)
    [short] = [one for one in shown if one.startswith("a_head")]
    assert re.fullmatch(r"a_head_\w*…\w*_is_wide", short)
    viewer.node(f"{LONG}#0").hover()
    expect(viewer.page.get_by_role("tooltip")).to_contain_text(LONG)


def expect_stacked(viewer: Viewer, count: int) -> None:
    """The blocks are a stack, and what is chosen of it can be changed."""
    expect(viewer.node("blocks.1#0")).to_have_count(0)
    expect(viewer.node("blocks.0#0").locator(".node-times")).to_have_text(f" ×{count}")
    expect(viewer.page.locator(".stub")).to_have_count(0)


def test_equal_siblings_are_stacked_on_demand_and_opened_by_a_click(viewer: Viewer, denoiser: str) -> None:
    viewer.open(denoiser, colour="std")
    button = viewer.page.get_by_role("button", name="Stack equal modules")
    button.click()
    expect_stacked(viewer, 8)
    expect(viewer.page).to_have_url(re.compile("stack=blocks.0"))
    expect(viewer.node("blocks.0#0").locator(".node-calls rect")).to_have_count(9)  # one for each block, on a track
    viewer.page.reload()
    expect_stacked(viewer, 8)
    viewer.page.get_by_role("slider", name="blocks.0").fill("5")
    expect(viewer.node("blocks.5#0")).to_contain_text("blocks.5")
    viewer.page.locator(".stack-open").click()
    expect(viewer.node("blocks.1#0")).to_be_visible()
    viewer.search("blocks.6").first.click()
    viewer.page.locator(".canvas").press("s")
    expect(viewer.node("blocks.6#0")).to_contain_text("×8")


def test_nodes_are_coloured_by_their_parameters_and_how_these_are_updated(viewer: Viewer, denoiser: str) -> None:
    viewer.open(denoiser)
    for label in ("Parameters, norm", "Gradient of parameters, norm", "Update ratio, largest"):
        viewer.choose("Colour", label)
        expect(viewer.page.locator(".legend-ramp")).to_be_visible()
        expect(viewer.node("blocks.0#0")).to_have_class(re.compile("by-value"))
        expect(viewer.node("blocks.0#0").locator(".node-hatch")).to_have_count(0)
    viewer.node("blocks.0#0").hover()
    expect(viewer.page.get_by_role("tooltip")).to_contain_text(re.compile(r"Update ratio, largest: \d"))
    viewer.node("blocks.0#0").dblclick()
    expect(viewer.node("blocks.0.main#0")).to_have_class(re.compile("by-value"))


def test_an_exported_page_has_the_stacks_too(viewer: Viewer, denoiser: str, logdir: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    export_page(open_run(logdir / denoiser), path)
    viewer.page.goto(path.as_uri())
    expect(stub(viewer, "time_emb")).to_have_count(7)
    viewer.page.get_by_role("button", name="Stack equal modules").click()
    expect_stacked(viewer, 8)
    viewer.page.locator(".stack-open").click()
    expect(viewer.node("blocks.1#0")).to_be_visible()
