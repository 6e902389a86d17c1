"""W&B's chart panel, emulated: what its app makes of a run's configuration, a preset and the tables, in Chromium.

See panel.html for the part that runs in the browser.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Error, Page

from tests.wandb_panel.loopback import Backend, StoredRun
from torchgraph_explorer import open_run
from torchgraph_wandb import snapshot_process
from torchgraph_wandb.chart.spec import chart_spec
from torchgraph_wandb.nonfinite_search import NOT_SEARCHED, continue_search
from torchgraph_wandb.panels import fields
from torchgraph_wandb.table import COLUMNS
from torchgraph_wandb.table import table_rows as table_rows_of

HERE = Path(__file__).parent
LIBRARIES = HERE / "node_modules"


@dataclass(frozen=True)
class Chart:
    """What the panel is drawn from."""

    spec: dict[str, Any]
    fields: dict[str, str]
    strings: dict[str, str]
    rows: list[dict[str, Any]]


def chart_of(backend: Backend, key: str, *runs: StoredRun) -> Chart:
    """The panel that these runs, when they are selected, show under `key`."""
    panel = runs[0].config["_wandb"]["value"]["visualize"][key]["panel_config"]
    return Chart(
        spec=backend.charts[panel["panelDefId"]]["spec"],
        fields=panel["fieldSettings"],
        strings=panel["stringSettings"],
        rows=[row for run in runs for row in table_rows(backend, run, asked_table(panel))],
    )


def chart_of_records(*run_dirs: Path, theme: str = "light") -> Chart:
    """The panel that runs would show whose records are in these folders."""
    rows, judge = [], vars(snapshot_process)["judge"]  # which a test may have replaced
    for run_dir in run_dirs:
        own = {"id": run_dir.name, "name": run_dir.name, "_defaultColorIndex": 0}
        rows += [{**dict(zip(COLUMNS, row, strict=True)), **own} for row in packed_rows(run_dir, judge)]
    return Chart(chart_spec(), fields(), {"theme": theme}, rows)


@cache
def packed_rows(run_dir: Path, _judge: object) -> list[tuple[str, str]]:
    """The table of a record that does not change any more, as `_judge` finds its findings: packed once."""
    model = open_run(run_dir).model()
    return table_rows_of(snapshot_process.chart_data(model, continue_search(model, NOT_SEARCHED), engine="rows"))


def asked_table(panel: dict[str, Any]) -> str:
    """The key of the table that a panel asks for."""
    [run_sets] = panel["userQuery"]["queryFields"]
    [table] = [field for field in run_sets["fields"] if field["name"] == "summaryTable"]
    key: str = table["args"][0]["value"]
    return key


def table_rows(backend: Backend, run: StoredRun, key: str) -> list[dict[str, Any]]:
    """A run's table as the panel gets it: what belongs to the run itself overwrites columns of that name."""
    table = json.loads(backend.run_file(run, key))
    own = {"id": run.name, "name": run.display_name, "_defaultColorIndex": 0}
    return [{**dict(zip(table["columns"], row, strict=True)), **own} for row in table["data"]]


class Panel:
    """The chart in a browser, as somebody uses it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", self._heard_error)

    def leave(self) -> None:
        """Listen no longer to what the browser complains of, and end the chart."""
        self.page.remove_listener("console", self._heard)
        self.page.remove_listener("pageerror", self._heard_error)
        self.page.mouse.up()
        self.page.mouse.move(0, 0)
        self.page.evaluate("window.clear?.()")

    def _heard(self, message: ConsoleMessage) -> None:
        # Vega 6 warns of every specification that names Vega 5; the test itself reads pixels of a canvas.
        if not message.text.startswith(("WARN The input spec", "Canvas2D", "WARN Input spec")):
            self.complaints.append(message.text)

    def _heard_error(self, error: Error) -> None:
        self.complaints.append(str(error))

    def show(self, chart: Chart, *, vega: int) -> None:
        size = self.page.viewport_size
        assert size is not None
        if not self.page.evaluate("'vega6' in window"):
            self._load()
        self.page.evaluate("chart => show(chart)", {**chart.__dict__, **size, "release": vega})

    def _load(self) -> None:
        """What W&B's app loads once, and then draws any number of charts with; both releases of Vega."""
        self.page.set_content((HERE / "panel.html").read_text(encoding="utf-8"))
        for library in ("lodash/lodash.min.js", "immer/dist/immer.umd.production.min.js"):
            self.page.add_script_tag(path=LIBRARIES / library)
        for release in (5, 6):
            self.page.add_script_tag(path=LIBRARIES / f"vega{release}/build/vega.min.js")
            self.page.evaluate(f"window.vega{release} = window.vega; delete window.vega; 0")

    def signal(self, name: str) -> Any:
        return self.page.evaluate("name => view.signal(name)", name)

    def data(self, name: str, field: str) -> list[Any]:
        found: list[Any] = self.page.evaluate("([name, field]) => view.data(name).map(d => d[field])", [name, field])
        return found

    def place(self, key: str) -> tuple[float, float]:
        """The middle of a node, on the page."""
        at = self.data("here_nodes", "key").index(key)
        return self.data("here_nodes", "cx")[at], self.data("here_nodes", "cy")[at] + self.signal("top")

    def items(self, mark: str) -> list[dict[str, Any]]:
        """What is drawn as the marks of this name: their places on the page, colours, texts, dashes and data."""
        found: list[dict[str, Any]] = self.page.evaluate("name => itemsOf(name)", mark)
        return found

    def node(self, key: str) -> dict[str, Any]:
        """How a node is drawn."""
        return next(item for item in self.items("node") if item["datum"]["key"] == key)

    def texts(self, mark: str) -> list[dict[str, Any]]:
        """What is written within the group of this name, and where: left, top, right and bottom on the page."""
        found: list[dict[str, Any]] = self.page.evaluate("name => textsIn(name)", mark)
        return found

    def image(self, strip: int, name: str, *, slot: int | str = 0) -> list[list[list[int]]]:
        """The pixels of an image of a strip, row by row, as red, green, blue and opacity."""
        found: list[list[list[int]]] = self.page.evaluate(
            "([slot, strip, name]) => pixelsOf(slot, strip, name)", [slot, strip, name]
        )
        return found

    def click(self, key: str) -> None:
        self.page.mouse.click(*self.place(key))
        self.settle()

    def drag_out(self, key: str) -> None:
        """Drag a node to the right edge."""
        x, y = self.place(key)
        right = self.signal("width") - 40
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move((x + right) / 2, y + 20, steps=3)
        self.page.mouse.move(right, y + 30, steps=3)
        self.page.mouse.up()
        self.settle()

    def pin(self, key: str) -> None:
        """Click the button in a node's upper right corner."""
        at, zoom = self.data("here_nodes", "key").index(key), self.signal("zoom")
        x, y = self.place(key)
        width, height = (self.data("here_nodes", side)[at] for side in "wh")
        self.page.mouse.click(x + width / 2 - 9 * zoom, y - height / 2 + 10 * zoom)
        self.settle()

    def hover_strip(self, slot: int | str, *, side: int, share: float, down: float = 0.5, strip: int = 0) -> list[str]:
        """Point at a strip of a column, at a share of its width and height; the lines of the tooltip."""
        there = [item for item in self.items(f"strip_{slot}") if item["datum"]["side"] == side][strip]
        width, height = there["right"] - there["left"], there["bottom"] - there["top"]
        self.page.mouse.move(there["left"] + width * share, there["top"] + height * down)
        self.settle()
        lines: list[str] = self.signal("tip")["lines"]
        return lines

    def press(self, button: str) -> None:
        """Click one of the buttons of the bar."""
        self._click_on(self.items(button)[0])

    def colour_by(self, look: str) -> None:
        """Choose what nodes are coloured by."""
        self.press("colour_button")
        self._click_on(next(item for item in self.items("colour_menu_row") if item["datum"]["content"] == look))

    def _click_on(self, item: dict[str, Any]) -> None:
        self.page.mouse.click((item["left"] + item["right"]) / 2, (item["top"] + item["bottom"]) / 2)
        self.settle()

    def press_parent(self, title: str) -> None:
        """Click a name in the list of parents, on its first letters."""
        at = self.data("trail", "title").index(title)
        left = self.data("trail", "end")[at] - self.data("trail", "room")[at] + self.signal("trail_left")
        self.page.mouse.click(left + 16, self.signal("top") + 12)
        self.settle()

    def settle(self) -> None:
        self.page.wait_for_timeout(60)
        self.page.evaluate("view.runAsync().then(() => null)")

    def pixels(self) -> bytes:
        return self.page.screenshot()


@contextmanager
def panel_in(page: Page, *, width: int = 1400, height: int = 560) -> Iterator[Panel]:
    """A panel of that size, with nothing in it yet, nor afterwards."""
    page.set_viewport_size({"width": width, "height": height})
    panel = Panel(page)
    try:
        yield panel
    finally:
        panel.leave()
