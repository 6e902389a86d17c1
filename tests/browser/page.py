"""The viewer in a page, by what a user sees and does."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import ConsoleMessage, Error, Locator, Page, expect

OFF = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "MediaRouter",
    "OptimizationHints",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "SpareRendererForSitePerProcess",
)
"""Features of the browser that are switched off: those that Playwright does without, since only one such list counts,
and the process that is started beforehand for the next page, which takes an eighth of the processor time of a page."""

SWITCHES = (
    f"--disable-features={','.join(OFF)}",
    "--no-sandbox",
    "--disable-gpu",
    "--in-process-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--js-flags=--no-opt --no-maglev",
)
"""Of the browser: no graphics card is needed, and nothing is fetched behind the test's back. Its optimizing compilers
are off, and what would draw on a graphics card has no process of its own: pages are short-lived here, and these take a
sixth of the processor time of one."""

SECONDS_TO_SHOW = 30
"""How long a test waits for what a browser is to show, on a machine that is busy with other tests."""

GUTTER_PX = 46
"""From a strip's left side to its plot, where the value axis is written."""

GAP_PX = 8
"""From the plot to the bars."""

MARKED_COLUMNS = """(strip) => {
  const canvas = strip.querySelector('canvas');
  const colour = getComputedStyle(document.documentElement).getPropertyValue('--chart-nonfinite').trim();
  const wanted = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, 6);
  const columns = new Set();
  for (let i = 0; i < data.length; i += 4)
    if (wanted.every((part, k) => data[i + k] === part)) columns.add((i / 4) % canvas.width);
  return [...columns].sort((a, b) => a - b);
}"""

CONTROLS = """() => [...document.querySelectorAll('button, input, select, summary, [tabindex="0"]')]
  .filter((one) => !one.disabled && !one.closest('[inert]') && one.checkVisibility())
  .filter((one) => one.type !== 'radio' || one.checked)
  .map((one) => one.ariaLabel || one.title || one.textContent.trim() || one.name || one.outerHTML)"""

FOCUSED = """() => {
  const one = document.activeElement;
  const shown = one.classList.contains('sr-only') ? one.parentElement : one;
  const {outlineStyle, outlineWidth} = getComputedStyle(shown);
  const isRinged = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
  return {name: one.ariaLabel || one.title || one.textContent.trim() || one.name || one.outerHTML, isRinged};
}"""


@dataclass
class Viewer:
    """A page of the viewer.

    Attributes:
        page: Playwright's page.
        url: Of the server.
        complaints: What the browser complained of: errors on the console, exceptions nobody caught, breaches of the
            Content-Security-Policy. A test that provokes some takes them out.
    """

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("pageerror", self._hear_error)

    def leave(self) -> None:
        """Listen no longer to what the browser complains of."""
        self.page.remove_listener("console", self._hear)
        self.page.remove_listener("pageerror", self._hear_error)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location['url']})")

    def _hear_error(self, error: Error) -> None:
        self.complaints.append(str(error))

    def open(self, run: str | None = None, **choices: Any) -> None:
        """Load the page with choices as the address has them; by default nothing is chosen."""
        chosen = {**({} if run is None else {"run": run}), **choices}
        self.page.goto(f"{self.url}#{urlencode(chosen, doseq=True)}")

    def settle(self) -> None:
        """Wait for two frames: what was done before is drawn then."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def node(self, key: str) -> Locator:
        """A box of the graph, by its key: `stage1.0#0`, `#0/input[0]`, `#0@features`."""
        return self.page.locator(f'.node[data-key="{key}"]')

    def panel(self, key: str) -> Locator:
        """The column of a pinned node."""
        return self.page.locator(f'[data-pin="{key}"]')

    @property
    def panels(self) -> Locator:
        """Where nodes are dropped to pin them."""
        return self.page.locator('[data-drop="panels"]')

    @property
    def strips(self) -> Locator:
        """Every histogram over time."""
        return self.panels.get_by_role("slider")

    def chart(self, name: str) -> Locator:
        """The histogram over time whose name begins so: `classifier, output, value`."""
        return self.page.get_by_role("slider", name=re.compile(f"^{re.escape(name)}:"))

    def statistics(self, name: str) -> dict[str, float]:
        """The statistics below a strip, as numbers."""
        figure = self.page.locator("figure").filter(has=self.chart(name))
        pairs = figure.locator("[data-fact]").evaluate_all(
            "(all) => all.map((one) => [one.dataset.fact, one.querySelector('dd').textContent])"
        )
        return {fact: number(text) for fact, text in pairs}

    @property
    def crumbs(self) -> Locator:
        """The way from the model to the call that is open."""
        return self.page.get_by_role("navigation", name="Where you are").get_by_role("button")

    @property
    def readout(self) -> Locator:
        """The step on show, in the bar at the bottom."""
        return self.page.locator("output.readout")

    @property
    def slider(self) -> Locator:
        """Chooses the step, in the bar at the bottom."""
        return self.page.locator("input.time-slider")

    @property
    def connection(self) -> Locator:
        """Whether the page is live, in the header."""
        return self.page.locator(".connection")

    @property
    def tip(self) -> Locator:
        """The tooltip of the strips."""
        return self.page.locator(".tip")

    def button(self, name: str) -> Locator:
        """A button, by its name or how that begins."""
        return self.page.get_by_role("button", name=re.compile(f"^{re.escape(name)}"))

    def choose(self, label: str, option: str) -> None:
        """Take an option of a list."""
        self.page.get_by_label(label, exact=True).select_option(label=option)

    def select_mode(self, mode: str) -> None:
        """Press Heat, Bands or Line."""
        self.panels.locator(".segments").get_by_text(mode, exact=True).click()

    def point_at(self, strip: Locator, frame: float, *, of: int, height: float = 0.5) -> None:
        """Move the mouse onto a frame of a strip that shows `of` frames, at a share of the plot's height."""
        expect_painted(strip)
        strip.scroll_into_view_if_needed()
        box, bars = strip.bounding_box(), strip.locator("canvas").nth(1).bounding_box()
        assert box is not None
        assert bars is not None
        left, right = box["x"] + GUTTER_PX, bars["x"] - GAP_PX
        x = left + (frame + 0.5) / of * (right - left)
        self.page.mouse.move(x, box["y"] + 10 + (1 - height) * (box["height"] - 30))

    def drag(self, source: Locator, target: Locator) -> None:
        """Press on one thing, and let go on the other."""
        source.hover()
        self.page.mouse.down()
        target.hover(force=True)
        self.page.mouse.up()

    def search(self, words: str) -> Locator:
        """Open the search by its key and type; what was found."""
        self.page.keyboard.press("/")
        self.page.get_by_role("combobox", name="Name or class").fill(words)
        return self.page.get_by_role("listbox", name="Calls").get_by_role("option")

    def marked_columns(self, strip: Locator) -> list[int]:
        """Columns of a strip's pixels that carry the mark of NaN and infinity."""
        expect_painted(strip)
        columns: list[int] = strip.evaluate(MARKED_COLUMNS)
        return columns


def number(text: str) -> float:
    """What the viewer wrote: `−1.2e−7`, `32 %`, `16.4k`."""
    sign = text.replace("−", "-").removesuffix(" %")
    scale = {"k": 1e3, "M": 1e6, "B": 1e9}.get(sign[-1], 1.0)
    return float("nan") if sign == "–" else float(sign.rstrip("kMB")) * scale


def expect_soon(check: Callable[[], None]) -> None:
    """`check` passes within the time that a browser may take: for what Playwright's `expect` has no matcher for."""
    deadline = time.monotonic() + SECONDS_TO_SHOW
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def expect_true(place: Page | Locator, script: str, *, arg: Any = None) -> None:
    """`script` is true in the page, or of the element, before long.

    `Page.wait_for_function` evaluates text within the page. In a run beside others, the page's Content-Security-Policy
    did not let it do so again.
    """

    def check() -> None:
        assert place.evaluate(script, arg)

    expect_soon(check)


def expect_painted(strip: Locator) -> None:
    """A strip's history has come and is drawn."""
    for canvas in (0, 1):  # the plot and the bars
        expect(strip.locator("canvas").nth(canvas)).to_have_attribute("style", re.compile("width"))


def expect_refused(page: Page) -> None:
    """The browser shows an error in the page's iframe, in place of what it was to load."""

    def check() -> None:
        page.wait_for_timeout(0)  # hears where the iframe went meanwhile
        assert [frame.url for frame in page.frames[1:]] == ["chrome-error://chromewebdata/"]

    expect_soon(check)


def expect_open(viewer: Viewer, *names: str) -> None:
    """The call that is open is the last of these, inside the others."""
    expect(viewer.crumbs).to_have_text(list(names))
