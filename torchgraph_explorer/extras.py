"""The command that installs what an extra of this package needs.

It names the libraries and not the package, so it is right wherever the package came from: a clone, a wheel or an index.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires

PACKAGE = "torchgraph-explorer"


def installing(extra: str) -> str:
    """A command for a shell that installs the libraries of `extra`, as in pyproject.toml.

    Where this package is not installed, as in a source tree on the path, it is one for the tree's folder.
    """
    try:
        libraries = _libraries(requires(PACKAGE) or (), extra)
    except PackageNotFoundError:
        libraries = []
    return " ".join(["pip install", *(f'"{library}"' for library in libraries or [f".[{extra}]"])])


def _libraries(requirements: list[str] | tuple[()], extra: str) -> list[str]:
    """Those of `requirements`, as `name>=1; extra == "demo"`, that are only of `extra`, with their versions."""
    marked = [requirement.partition(";") for requirement in requirements]
    return [name.strip() for name, _, marker in marked if re.search(rf"""extra\s*==\s*['"]{extra}['"]""", marker)]
