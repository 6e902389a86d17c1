"""What a call of the model is part of."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch._C import _TorchDispatchModeKey as ModeKey

PIPELINE, FINDS_SHAPES = "torch.distributed.pipelining.stage", "_forward_metadata_inference"
"""Where torch runs a stage of a pipeline on uninitialised memory, with gradients, to find out shapes."""


def is_captured() -> bool:
    """Whether a CUDA graph is being captured, which must contain nothing of ours."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def is_no_step() -> bool:
    """Whether the model is not called to compute something: it is compiled or traced, or a checkpoint runs it again.

    Nor is it where a pipeline finds out shapes.

    `make_fx` and AOTAutograd trace with a dispatch mode; the second one's tensors have no elements.
    """
    if torch.compiler.is_compiling():  # first and alone: dynamo would break the graph at what follows
        return True
    return (
        torch._C._current_graph_task_id() != -1
        or torch._C._get_tracing_state() is not None
        or (torch._C._len_torch_dispatch_stack() > 0 and _is_traced())
        or (PIPELINE in sys.modules and _is_within_pipelines_search())
    )


def _is_traced() -> bool:
    return any(torch._C._get_dispatch_mode(key) is not None for key in (ModeKey.PROXY, ModeKey.FUNCTIONAL))


def _is_within_pipelines_search() -> bool:
    frame: Any = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == FINDS_SHAPES and frame.f_globals.get("__name__") == PIPELINE:
            return True
        frame = frame.f_back
    return False


def is_in_backward() -> bool:
    """Whether a backward pass goes on, as where a checkpoint runs the model again."""
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1
