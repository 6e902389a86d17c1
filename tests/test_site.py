"""The documentation site: Sphinx builds it without a warning, its links lead somewhere, it asks nobody else."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest

from tests import warm
from tests.shared import FORKED
from tests.tables import matrix

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parent.parent
LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}
"""What a browser fetches by itself."""

pytestmark = [pytest.mark.slow, FORKED, pytest.mark.timeout(600)]


def _build_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_build", ROOT / "docs/site/build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUILD = _build_script()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site without the demo's pages, whose commands have tests of their own."""
    folder = tmp_path_factory.mktemp("site") / "html"
    done = warm.run(*BUILD.sphinx(folder)[1:], timeout=500)
    assert (done.returncode, done.stderr) == (0, "")
    for name in BUILD.DEMOS:
        (folder / "_demo").mkdir(exist_ok=True)
        (folder / "_demo" / name).write_text("a page of the demo")
    return folder


class References(HTMLParser):
    """The addresses in a page, and what can be referred to in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[tuple[str, str, str]] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            elif name in ("href", "src"):
                self.links.append((tag, name, value or ""))


def broken(folder: Path) -> Iterator[str]:
    """The links of the pages in `folder` that lead to no file of it, or to no place in that file."""
    pages = {page: References(page) for page in folder.rglob("*.html") if "_demo" not in page.parts}
    for page, references in pages.items():
        for _, _, link in references.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            missing = unquote(parts.fragment) and target in pages and unquote(parts.fragment) not in pages[target].ids
            if not target.exists() or missing:
                yield f"{page.relative_to(folder)}: {link}"


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    assert len(list((site / "docs").glob("*.html"))) >= len(list((ROOT / "docs").glob("*.md")))
    assert list(broken(site)) == []


def test_a_broken_link_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="there"><a href="a.html#there"><a href="#gone"><img src="none.png">')
    assert list(broken(tmp_path)) == ["a.html: #gone", "a.html: none.png"]


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        found = [link for tag, name, link in References(page).links if (tag, name) in LOADED and urlsplit(link).netloc]
        assert found == [], page
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*['\"]?https?:", sheet.read_text(encoding="utf-8")) == [], sheet


def test_the_site_names_no_path_of_the_machine_that_built_it(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert str(ROOT) not in page.read_text(encoding="utf-8"), page


AXE = ROOT / "torchgraph_explorer/web/node_modules/axe-core/axe.min.js"
FOUND = """() => axe.run(document, {resultTypes: ['violations'], iframes: false}).then(({violations}) =>
  violations.flatMap(({id, nodes}) => nodes.map(({html}) => `${id}: ${html}`)))"""


@pytest.mark.parametrize(("theme", "width"), matrix(["light", "dark"], [1400, 390]))
def test_axe_has_nothing_to_say_of_the_site(site: Path, browser: Browser, theme: Any, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme)
    page = context.new_page()
    for name in ("index", "options", "site/demo"):
        page.goto((site / f"docs/{name}.html").as_uri())
        page.evaluate(AXE.read_text(encoding="utf-8"))
        assert page.evaluate(FOUND) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
    context.close()
