"""Where temporary files are left that outlive the process, or are for another one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def own_folder() -> Path:
    """A folder in the system's temporary one that is nobody else's.

    Raises:
        OSError: There can be none.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir(), f"torchgraph-{user}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and folder.stat().st_uid != user:
        raise PermissionError(f"{folder} belongs to another user")
    return folder
