"""The folder of temporary files that outlive the process, or that another process reads."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def own_folder() -> Path:
    """A folder of this user in the system's temporary folder.

    Raises:
        OSError: It cannot be made, or it belongs to another user.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir(), f"torchgraph-{user}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and folder.stat().st_uid != user:
        raise PermissionError(f"{folder} belongs to another user")
    return folder
