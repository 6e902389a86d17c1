"""The HTML panel: the page that the server was sent, in a frame as W&B puts it into one."""

from __future__ import annotations

import html
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, FrameLocator, Locator, Page, expect

from tests.tables import thinned
from tests.wandb_panel.conftest import Online

pytestmark = pytest.mark.xdist_group("wandb")  # one training online, and one process that has wandb

HOST = """<!doctype html><meta charset="utf-8"><title>W&amp;B</title><body style="margin:0">
<iframe sandbox="{allowed}" style="width:1200px;height:700px;border:0" srcdoc="{page}"></iframe>"""

BLOCK = "blocks.0#0"

SOON_MS = 30_000


@pytest.fixture
def host(browser: Browser) -> Iterator[Page]:
    """A page without a network, in which nothing may fail."""
    context = browser.new_context(viewport={"width": 1200, "height": 700}, offline=True)
    page, faults = context.new_page(), []

    def heard(message: ConsoleMessage) -> None:
        if message.type == "error":
            faults.append(message.text)

    page.on("console", heard)
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    context.close()
    assert faults == []


@pytest.mark.parametrize("allowed", thinned(["allow-scripts", "allow-scripts allow-same-origin"], 0))
def test_one_opens_a_module_and_pins_it_in_the_html_panel(online: Online, host: Page, allowed: str) -> None:
    sent = online.backend.run_file(online.backend.only_run(), "torchgraph/Net_page").decode()
    host.set_content(HOST.format(allowed=allowed, page=html.escape(sent)))
    frame = host.frame_locator("iframe")
    expect(node(frame, "stem#0")).to_be_visible(timeout=SOON_MS)
    node(frame, "blocks#0").dblclick()
    node(frame, BLOCK).hover()
    host.mouse.down()
    frame.locator('[data-drop="panels"]').hover(force=True)
    host.mouse.up()
    expect(frame.get_by_role("slider", name="blocks.0, output, value: 10 steps, 0 to 9")).to_be_visible(timeout=SOON_MS)


@pytest.mark.parametrize("size", thinned([(900, 420), (480, 300), (380, 220)], 2), ids=str)
def test_in_a_small_html_panel_one_sees_the_x_ray_first(online: Online, host: Page, size: tuple[int, int]) -> None:
    sent = online.backend.run_file(online.backend.only_run(), "torchgraph/Net_page").decode()
    framed = HOST.format(allowed="allow-scripts", page=html.escape(sent))
    host.set_content(framed.replace("width:1200px;height:700px", f"width:{size[0]}px;height:{size[1]}px"))
    xray = host.frame_locator("iframe").locator(".panel.xray canvas").first
    expect(xray).to_be_visible(timeout=SOON_MS)
    box = xray.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size[0]
    host.frame_locator("iframe").get_by_role("button", name="Panels").click()
    expect(xray).not_to_be_visible()
    expect(node(host.frame_locator("iframe"), "stem#0")).to_be_visible()


def node(frame: FrameLocator, key: str) -> Locator:
    return frame.locator(f'.node[data-key="{key}"]')
