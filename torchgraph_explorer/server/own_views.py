"""`api/view`: pages that functions of the user's draw, behind an interface. See http_api.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torchgraph_explorer.server.response import Response

HTML = "text/html; charset=utf-8"

POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; media-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""Content-Security-Policy of a view's page. Its scripts run, but load and send nothing, and see nothing of the viewer.

A page may still replace itself by another one. The viewer's own policy allows only pages of this server in its iframes.
"""


@dataclass(frozen=True, slots=True)
class ViewInfo:
    """A view.

    Attributes:
        name: Its name, unique.
        version: Another one whenever its file was changed.
    """

    name: str
    version: str


class OwnViews(Protocol):
    """The views that there are. For many threads."""

    def infos(self) -> Sequence[ViewInfo]:
        """What a client has to know of each view."""

    def page(self, name: str, asked: Mapping[str, Any], *, is_fresh: bool) -> str:
        """The HTML page of the view called `name` for a selection, as `asked_for` returns it.

        `is_fresh`: load the view again before. A view that fails has a page that says so.

        Raises:
            NotFoundError: There is no such view.
        """


def page_response(page: str) -> Response:
    """The answer that has a view's page."""
    return Response(200, HTML, page.encode("utf-8", "replace"), policy=POLICY)
