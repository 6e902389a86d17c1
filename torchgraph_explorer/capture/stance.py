"""Has `torch.compile` step aside while a logged step runs: hooks inside compiled code are not called."""

from __future__ import annotations

import sys
from typing import Any

import torch


def force_eager() -> Any:
    """Run compiled modules as they were written, until what this returns is left with `__exit__`.

    None where nothing was ever compiled in this process; dynamo would take seconds to import. What was compiled
    is neither thrown away nor compiled again.
    """
    if "torch._dynamo" not in sys.modules:
        return None
    return torch.compiler.set_stance("force_eager")
