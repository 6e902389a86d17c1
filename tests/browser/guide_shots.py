"""Makes the pictures of docs/guide.md, docs/find-the-bug.md and docs/views.md: `python -m tests.browser.guide_shots`.

The runs are recorded from examples/, or are those in a folder that is named: `... guide_shots runs gradient-vanishing`
takes one picture.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from examples import attention_text, find_the_bug, guide
from tests.browser.page import SWITCHES, Viewer
from tests.chrome import find_chrome
from tests.processes import python, torchgraph

ROOT = Path(__file__).parents[2]
RES = ROOT / "res" / "guide"
VIEW = ROOT / "examples" / "attention_view.py"

SETTLED = """() => !document.querySelector('[aria-busy=true], [data-late]')
  && !document.body.innerText.includes('Looking for findings') && !document.body.innerText.includes('Loading …')"""


def tensor(module: str, role: str, path: str, call: int | None = 0) -> str:
    """A tensor, as the address names it."""
    return json.dumps([module, call, role, path], separators=(",", ":"))


def output(module: str) -> str:
    """What a module returns."""
    return tensor(module, "output", "output")


def beside(name: str) -> str:
    """A tensor that another one is compared with, as the address names it."""
    return json.dumps([name, "value"], separators=(",", ":"))


def nothing(_page: Page) -> None:
    """Do nothing more."""


def scroll_to_scatter(page: Page) -> None:
    """Show the last part of the page."""
    page.locator(".tensor-scatter").scroll_into_view_if_needed()


def scroll_facts(page: Page) -> None:
    """Show the numbers of the selected module."""
    page.locator(".details-box table").last.scroll_into_view_if_needed()


def point_at_a_letter(page: Page) -> None:
    """Point at a letter in the third text of the view."""
    letters = page.frame_locator("iframe").locator("p").nth(2).locator("span")
    expect(letters).to_have_count(attention_text.CONTEXT)
    letters.nth(50).hover()


@dataclass(frozen=True)
class Shot:
    """A picture.

    Attributes:
        name: Of the file, without `.png`.
        run: Name of the run.
        choices: What is chosen, as in the address.
        act: What is done before the picture is taken.
        size: Of the window.
    """

    name: str
    run: str
    choices: dict[str, Any] = field(default_factory=dict)
    act: Callable[[Page], None] = nothing
    size: tuple[int, int] = (1040, 600)


def tensors(name: str, **choices: Any) -> dict[str, Any]:
    """The page of tensors, with one of them."""
    return {"view": "tensors", "tensor": name, **choices}


BUG = (
    Shot("bug-losses", "faulty", {"scalars": 1, "xray": 0, "hide": "modules"}, size=(820, 460)),
    Shot("bug-network", "faulty", {"view": "network"}, size=(1040, 540)),
    Shot(
        "bug-probabilities",
        "faulty",
        tensors(tensor("", "attached", "probabilities"), sample="all", label="10 numbers"),
        size=(1040, 560),
    ),
    Shot(
        "bug-dependencies",
        "faulty",
        tensors(output("writer"), sample="all", label="10 numbers", list="graph", closed="time,neurons,scatter"),
    ),
    Shot(
        "bug-culprit",
        "faulty",
        tensors(
            output("writer"),
            sample="all",
            label="10 numbers",
            other=beside(output("writer.last")),
            closed="time,neurons",
        ),
        scroll_to_scatter,
        size=(1040, 760),
    ),
    Shot(
        "bug-beside",
        "faulty",
        tensors(
            output("writer"),
            sample="all",
            label="10 numbers",
            beside="run:mended",
            closed="time,neurons,scatter",
        ),
        size=(1040, 460),
    ),
    Shot("bug-mended", "mended", {"scalars": 1, "xray": 0, "hide": "modules"}, size=(820, 460)),
    Shot(
        "bug-closest",
        "mended",
        tensors(
            tensor("", "attached", "loss per sample", None),
            sample="all",
            label="10 numbers",
            other=beside(tensor("", "attached", "closest sum", None)),
            closed="time,neurons",
        ),
        scroll_to_scatter,
        size=(1040, 720),
    ),
)

GUIDE = (
    Shot("gradient-vanishing", "vanishing", {"colour": "grad_norm", "step": 0}, size=(1040, 760)),
    Shot("inputs", "inputs", {"pin": ["0.1#0"], "selected": "1#0"}),
    Shot(
        "last-relu",
        "last-relu",
        tensors(output("3"), sample="all", other=beside(tensor("", "attached", "target", None)), closed="time,neurons"),
        scroll_to_scatter,
        size=(1040, 700),
    ),
    Shot("towers", "towers", {"colour": "grad_norm"}),
    Shot("several-inputs", "towers", {"selected": "head#0"}, scroll_facts, size=(1040, 560)),
    Shot("latent", "vae", {"pin": ["0.#0@latent"], "selected": "#0@latent"}),
    Shot(
        "residual",
        "residual",
        {"inside": "1#0", "pin": ["0.1#0@branch", "1.1#0@skip"], "hide": "modules"},
        size=(1040, 600),
    ),
    Shot("toy", "toy", tensors(tensor("", "param", "a", None), kind="gradient", list="graph", step=0)),
    Shot("killed", "killed", tensors(output("2"), sample="all", kind="gradient", closed="time,neurons,scatter")),
    Shot("nan", "nan", tensors(output("2"), sample="all", step=30, closed="time,neurons,scatter"), size=(1040, 560)),
    Shot("initialisation", "initialisation", {"colour": "std", "step": 0}, size=(1040, 760)),
    Shot(
        "attention",
        "attention",
        tensors(tensor("blocks.1.attention", "attached", "weights"), closed="time,neurons,scatter"),
        size=(1040, 640),
    ),
    Shot("collapse", "collapse", tensors(output("2"), sample="std"), size=(1040, 640)),
)

VIEWS = (Shot("view-attention", "attention", {"view": "own"}, point_at_a_letter, size=(1040, 560)),)

SHOTS = (*BUG, *GUIDE, *VIEWS)


def main() -> None:
    """Record what is to be seen, and photograph it."""
    given, *names = [*sys.argv[1:], ""][: max(1, len(sys.argv) - 1)]
    RES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        logdir = given or folder
        if not given:
            record(logdir)
        with serving(logdir) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chrome(), args=list(SWITCHES))
            for shot in SHOTS:
                if not names or shot.name in names:
                    take(shot, browser, url)


def record(logdir: str) -> None:
    """All runs."""
    guide.record([make.__name__ for make in guide.RUNS], logdir)
    find_the_bug.train("faulty", ends_active=True, logdir=logdir)
    find_the_bug.train("mended", ends_active=False, logdir=logdir)
    attention_text.main(logdir=logdir)


@contextmanager
def serving(logdir: str) -> Iterator[str]:
    """The address of a server with the view."""
    command = torchgraph("serve", logdir, "--port", "0", "--no-browser", "--view", f"{VIEW}:attention")
    with python(*command, stderr=None) as server:
        assert server.stdout is not None
        found = re.search(r" at (http://\S+)$", server.stdout.readline().strip())
        assert found is not None
        yield found[1]


def take(shot: Shot, browser: Browser, url: str) -> None:
    """Save one picture, once everything is drawn."""
    width, height = shot.size
    page = browser.new_page(
        viewport={"width": width, "height": height}, locale="en-GB", reduced_motion="reduce", color_scheme="light"
    )
    viewer = Viewer(page, url)
    viewer.open(shot.run, **shot.choices)
    expect(viewer.connection).to_contain_text("Finished")
    page.wait_for_function(SETTLED)
    shot.act(page)
    page.wait_for_timeout(1500)  # charts draw when they come into sight
    page.wait_for_function(SETTLED)
    page.screenshot(path=RES / f"{shot.name}.png")
    assert viewer.complaints == [], viewer.complaints
    page.close()


if __name__ == "__main__":
    main()
