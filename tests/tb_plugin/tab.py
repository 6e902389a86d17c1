"""Our tab in TensorBoard's page, by what a user sees and does."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from playwright.sync_api import ConsoleMessage, Frame, FrameLocator, Locator, Page, Request, expect

PAINTED = """(canvas) => {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Set();
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 0) colours.add(data.slice(i, i + 3).join());
  return colours.size;
}"""
"""How many colours a chart has."""


@dataclass
class Tab:
    """A page of TensorBoard, or one that holds TensorBoard in a frame.

    Attributes:
        page: Playwright's page.
        url: TensorBoard's.
        complaints: What the browser complained of in our part of the page.
        asked: The requests to our routes so far.
    """

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("request", self._note)

    def leave(self) -> None:
        """Note no longer what the page asks for and complains of, and empty it."""
        self.page.remove_listener("console", self._hear)
        self.page.remove_listener("request", self._note)
        self.page.goto("about:blank")

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "/plugin/torchgraph/" in message.location["url"]:
            self.complaints.append(message.text)

    def _note(self, request: Request) -> None:
        if "/plugin/torchgraph/api/" in request.url:
            self.asked.append(request.url)

    def open(self, **view: str) -> None:
        """Load TensorBoard's page with our tab in front; `view` is what a link to it names."""
        self.page.goto(f"{self.url}#torchgraph{f'&p.torchgraph.view={quote(urlencode(view))}' if view else ''}")

    @property
    def viewer(self) -> FrameLocator:
        """The inside of our tab."""
        return self.page.frame_locator('iframe[src*="name=torchgraph"]')

    @property
    def frame(self) -> Frame:
        """The frame of our tab, once it has one."""
        expect(self.viewer.locator(".app")).to_be_visible()
        [frame] = [frame for frame in self.page.frames if "/plugin/torchgraph/app.html" in frame.url]
        return frame

    def node(self, key: str) -> Locator:
        """A box of the graph, by its key: `stage1.0#0`."""
        return self.viewer.locator(f'.node[data-key="{key}"] .node-box')

    def chart(self, name: str) -> Locator:
        """A histogram over time: `classifier, output, value`."""
        return self.viewer.locator(f'.strip[aria-label^="{name}:"]')

    def colours(self, chart: Locator) -> int:
        """How many colours a histogram over time is drawn with."""
        return int(chart.locator("canvas").first.evaluate(PAINTED))

    def switch_to(self, name: str) -> None:
        """Choose another tab of TensorBoard."""
        self.page.get_by_role("tab", name=name).click()

    @property
    def theme(self) -> str:
        return str(self.frame.evaluate("document.documentElement.dataset.theme"))

    @property
    def address(self) -> str:
        return str(self.page.evaluate("location.hash"))


def open_tab(page: Page, url: str) -> Tab:
    """A page that is not loaded yet."""
    page.set_default_timeout(15_000)
    return Tab(page, url)
