"""What a process holds of the system and of torch, to be counted before and after."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from torch import nn
from torch.nn.modules import module as torch_module

from torchgraph_explorer.capture import compiled_entry

_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_OPTIMIZER_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")


def held(*models: nn.Module, optimizer: Any = None) -> dict[str, int]:
    """How many hooks, threads, children and open files there are. Files of `/proc` itself are not among them."""
    hooks = sum(len(getattr(part, kind)) for model in models for part in model.modules() for kind in _HOOKS)
    return {
        "hooks": hooks,
        "optimizer hooks": sum(len(getattr(optimizer, kind, ())) for kind in _OPTIMIZER_HOOKS),
        "hooks on all modules": len(torch_module._global_module_registration_hooks),
        "listeners": len(compiled_entry._compiling._listeners),
        "threads": threading.active_count(),
        "children": len(children()),
        "files": len(list(Path("/proc/self/fd").iterdir())),
    }


def children() -> set[int]:
    """The processes that this one has started and that are not gone."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(number) for task in tasks for number in task.read_text(encoding="utf-8").split()}
