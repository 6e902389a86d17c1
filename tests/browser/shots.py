"""Makes the README's pictures of the viewer: `python -m tests.browser.shots`."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.page import SWITCHES, Viewer
from tests.browser.runs import record_broken
from tests.browser.servers import ServerProcess
from tests.browser.xrays import draw_xrays, record_xrays
from tests.chrome import find_chrome
from torchgraph_explorer.demo import run_demo

STEPS = 300
WINDOW = {"width": 1440, "height": 860}
RES = Path(__file__).parents[2] / "res"


ALL_PAINTED = """() => {
  const canvases = [...document.querySelectorAll('.strip canvas')];
  const isInSight = (one) => one.parentElement.getBoundingClientRect().top < innerHeight;
  return canvases.length > 0 && canvases.filter(isInSight).every((one) => one.style.width !== '');
}"""


@dataclass(frozen=True)
class Shot:
    """A picture of the demo's network, or of a run that `choices` name.

    Attributes:
        name: Of the file, without `.png`.
        choices: What is chosen, as in the address.
    """

    name: str
    choices: dict[str, Any] = field(default_factory=dict)


SHOTS = (
    Shot(
        "viewer-light",
        {
            "theme": "light",
            "inside": "stage2.0#0",
            "selected": "stage2.0.conv2#0",
            "pin": ["0.stage2.0.conv2#0", "1.stage2.0.relu#1"],
        },
    ),
    Shot(
        "viewer-dark",
        {
            "theme": "dark",
            "inside": "stage3.0#0",
            "selected": "stage3.0.norm2#0",
            "pin": ["0.stage3.0.norm2#0", "1.stage3.0.shortcut#0"],
            "mode": "bands",
            "colour": "std",
            "step": 150,
        },
    ),
    Shot(
        "viewer-findings",
        {"theme": "light", "run": "broken", "finding": "dead-units@body.1.act#0/output"},
    ),
)


def main() -> None:
    """Train the demo's network and photograph it."""
    with tempfile.TemporaryDirectory() as logdir:
        record_broken(Path(logdir))
        xrays = Path(logdir, "xrays")
        record_xrays(xrays)
        (RES / "xray.svg").write_text(draw_xrays(xrays), encoding="utf-8")
        run_demo(logdir=logdir, steps=STEPS, serve=False, port=0, open_browser=False)
        server = ServerProcess(Path(logdir))
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=find_chrome(), args=list(SWITCHES))
                for shot in SHOTS:
                    take(shot, browser, server.url)
        finally:
            server.stop()


def take(shot: Shot, browser: Browser, url: str) -> None:
    """Save one picture, once everything is drawn."""
    page = browser.new_page(viewport=WINDOW, locale="en-GB", reduced_motion="reduce")  # type: ignore[arg-type]
    viewer = Viewer(page, url)
    viewer.open(**shot.choices)
    expect(page.locator(".panel")).to_have_count(len(shot.choices.get("pin", ["of the finding"])))
    expect(page.get_by_text("Looking for findings")).to_have_count(0, timeout=60_000)
    page.wait_for_function(ALL_PAINTED)
    page.screenshot(path=RES / f"{shot.name}.png")
    assert viewer.complaints == []


if __name__ == "__main__":
    main()
