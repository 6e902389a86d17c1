"""`TORCHGRAPH=off`: every watch is nothing."""

from __future__ import annotations

import os

from torchgraph_explorer.console import warn

VARIABLE = "TORCHGRAPH"


def is_switched_off() -> bool:
    """Whether the environment says that nothing is to be watched. Another value than `off` or `on` warns."""
    value = os.environ.get(VARIABLE, "on")
    if value.lower() not in ("off", "on", ""):
        warn(f"{VARIABLE}={value!r} in the environment is ignored. Set it to 'off' to watch nothing, or to 'on'.")
    return value.lower() == "off"
