"""Sphinx's settings of the documentation site. `make docs` builds it; see `docs/site/build.py`.

The source folder is the repository, so that the pages' links to files elsewhere in it are the same here and on GitHub.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchgraph_explorer.version import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tb_plugin"), str(ROOT / "wandb_panel")]

project = "torchgraph explorer"
author = "the authors of torchgraph explorer"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/site/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "torchgraph_explorer/server/http_api.md",
]
# Not walked through: they are large.
exclude_patterns = ["**/node_modules", ".*", "build", "runs", "tests", "benchmarks"]

myst_heading_anchors = 4
# `` `name` `` in a docstring is code, as in Markdown.
default_role = "code"
highlight_language = "text"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
# A longer signature has a line for each parameter.
maximum_signature_line_length = 100
python_use_unqualified_type_names = True
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"torchgraph explorer {__version__}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5cad", "color-brand-content": "#0b5cad"},
    "dark_css_variables": {"color-brand-primary": "#8ab8ff", "color-brand-content": "#8ab8ff"},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def folders_as_text(app: Sphinx, page: str, source: list[str]) -> None:
    """Make a link to a folder of the repository, which has no page here, its text."""
    place = (Path(app.srcdir) / page).parent
    source[0] = LINK.sub(lambda link: f"`{link[1]}`" if (place / link[2]).is_dir() else link[0], source[0])


ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
}
"""What axe finds missing in furo's pages. Code that is wider than the page can be scrolled by keyboard."""


def make_accessible(app: Sphinx, fault: Exception | None) -> None:
    """Add to the pages what assistive technology needs."""
    for page in Path(app.outdir).rglob("*.html") if fault is None else ():
        if "_demo" not in page.parts:
            text = page.read_text(encoding="utf-8")
            for lacking, whole in ACCESSIBLE.items():
                text = text.replace(lacking, whole)
            page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("build-finished", make_accessible)
    app.connect("source-read", folders_as_text)
