"""Runs one program with or without its marked lines, and prints what came of it as JSON.

`python -m examples.loops.program NAME with` or `without`, in the folder where its record is to be.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

MARK = "  # <--\n"


def outcome(name: str, *, watched: bool) -> dict[str, Any]:
    """What the program called `name` has trained, and which modules were called for it."""
    path = Path(__file__).with_name(f"{name}.py")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    source = "".join(line for line in lines if watched or not line.endswith(MARK))
    main = {"__name__": f"examples.loops.{name}"}
    exec(compile(source, path, "exec"), main)
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    called: dict[nn.Module, None] = {}
    with contextlib.nullcontext() if watched else register_module_forward_hook(_Noting(called)):
        model, updates = main["main"]()  # type: ignore[operator]
    return {
        "weights": _digest(model),
        "updates": updates,
        "called": sorted(name for name, module in model.named_modules() if module in called),
        "moved": sorted(name for name, each in model.named_parameters() if each.grad is not None),
    }


class _Noting:
    """A hook on all modules that notes those that were called in training."""

    def __init__(self, called: dict[nn.Module, None]) -> None:
        self._called = called

    def __call__(self, module: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, Tensor) and output.requires_grad:
            self._called[module] = None


def _digest(model: nn.Module) -> str:
    """Of the bytes of all parameters and buffers."""
    digest = hashlib.sha256()
    for name, each in model.state_dict().items():
        digest.update(name.encode() + each.numpy().tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    print("\n" + json.dumps(outcome(sys.argv[1], watched=sys.argv[2] == "with")))
