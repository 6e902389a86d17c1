"""The files of the built viewer."""

from __future__ import annotations

from pathlib import Path

from torchgraph_explorer.server.response import Response, problem

BUNDLE = Path(__file__).parent.parent / "web" / "dist"

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
"""Content types by suffix. The system's own table is not used: on some systems it is wrong."""

FOR_EVER = "public, max-age=31536000, immutable"
"""For files in assets/, whose names have a hash of the content."""

MISSING = (
    "The viewer is not built. It is built when the package is installed; in a clone run 'make install', "
    "or 'npm ci && npm run build' in torchgraph_explorer/web."
)


def bundle_file(path: str, folder: Path = BUNDLE) -> Response:
    """The file at `path` below the bundle; `/` is the page itself."""
    name = path.lstrip("/") or "index.html"
    if name == "index.html" and not (folder / name).is_file():
        return problem(500, MISSING)
    place = _inside(folder, name)
    if place is None or place.suffix not in TYPES:
        return problem(404, f"There is no {path!r} here.")
    caching = FOR_EVER if name.startswith("assets/") else "no-cache"
    return Response(200, TYPES[place.suffix], place.read_bytes(), (("Cache-Control", caching),))


def _inside(folder: Path, name: str) -> Path | None:
    """The file `name` in `folder`; None if there is none, or if it is outside after links are resolved."""
    try:
        place = (folder / name).resolve()
        return place if place.is_relative_to(folder.resolve()) and place.is_file() else None
    except (OSError, ValueError):
        return None
