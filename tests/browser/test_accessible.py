"""The whole viewer against axe-core: names, roles, contrast, keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import torchgraph_explorer
from tests.browser.page import Viewer
from tests.tables import matrix, thinned
from torchgraph_explorer import open_run
from torchgraph_explorer.server.export import export_page

AXE = Path(torchgraph_explorer.__file__).parent / "web" / "node_modules" / "axe-core" / "axe.min.js"
"""A development dependency of the viewer: `npm ci` in its folder installs it."""

LEFT_OUT = {
    "label-content-name-mismatch": "A badge on a node has a number, which the node's name spells out: `3 findings`.",
}

FOUND = """(leftOut) => axe.run(document, {
  resultTypes: ['violations'],
  rules: Object.fromEntries(leftOut.map((one) => [one, {enabled: false}])),
}).then(({violations}) => violations.flatMap(({id, nodes}) =>
  nodes.map(({target, failureSummary}) => `${id}: ${target.join(' ')} ${failureSummary}`)))"""


def face(name: str) -> Callable[[Viewer], None]:
    def show(viewer: Viewer) -> None:
        viewer.page.locator(".xray-bar .segments").get_by_text(name, exact=True).click()
        last = viewer.page.get_by_role("listitem") if name == "Changes" else viewer.page.get_by_role("rowheader")
        expect(last.first).to_be_visible()

    return show


def press(key: str) -> Callable[[Viewer], None]:
    return lambda viewer: viewer.page.keyboard.press(key)


STATES: dict[str, tuple[dict[str, Any], Callable[[Viewer], None] | None]] = {
    "x-ray": ({}, None),
    "table": ({}, face("Table")),
    "changes": ({"step": 20}, face("Changes")),
    "panels": ({"pin": "0.classifier#0", "step": 20}, None),
    "help": ({}, press("?")),
    "search": ({}, press("/")),
}


# The themes differ in colours only: in `make test` each state is seen in one of them, in turns.
@pytest.mark.parametrize(("state", "theme"), matrix(list(STATES), ["light", "dark"]))
def test_axe_has_nothing_to_say(viewer: Viewer, digits: str, state: str, theme: str) -> None:
    choices, act = STATES[state]
    viewer.open(digits, theme=theme, **choices)
    expect(viewer.node("classifier#0")).to_be_visible()
    shown = ".strip canvas[style]" if "pin" in choices else ".xray-picture canvas[style]"
    expect(viewer.page.locator(shown).first).to_be_visible()
    if act is not None:
        act(viewer)
    assert found(viewer) == []


@pytest.mark.parametrize("width", thinned([1440, 390], 1))
def test_axe_has_nothing_to_say_of_an_exported_page_of_two_runs(
    offline: Viewer, logdir: Path, sweep: str, tmp_path: Path, width: int
) -> None:
    first, second = (open_run(logdir / sweep / f"net_{name}") for name in ("base", "sparse"))
    export_page(first, tmp_path / "page.html", compare=[second])
    offline.page.set_viewport_size({"width": width, "height": 844})
    offline.page.goto((tmp_path / "page.html").as_uri())
    expect(offline.page.get_by_role("main")).to_be_visible()
    expect(offline.node("head#0")).to_be_visible()
    assert found(offline) == []


@pytest.mark.parametrize("theme", thinned(["light", "dark"], 1))
def test_axe_has_nothing_to_say_of_a_finding_and_its_explanation(viewer: Viewer, broken: str, theme: str) -> None:
    viewer.open(broken, theme=theme, finding="dead-units@body.1.act#0/output")
    viewer.page.get_by_text("About this kind of finding").click()
    viewer.page.get_by_role("button", name="units", exact=True).click()
    expect(viewer.page.get_by_role("button", name="Back to Dead units")).to_be_visible()
    assert found(viewer) == []


def found(viewer: Viewer) -> list[str]:
    """What axe says of the page."""
    viewer.page.evaluate(AXE.read_text(encoding="utf-8"))
    return list(viewer.page.evaluate(FOUND, list(LEFT_OUT)))
