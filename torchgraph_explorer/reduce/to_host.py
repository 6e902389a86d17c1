"""Copies on their way from a device to host memory. Nothing waits for the device but the thread that reads them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TypeAlias

import torch
from torch import Tensor

from torchgraph_explorer.interrupts import Restoring
from torchgraph_explorer.reduce.cuda_driver import driver

Stream: TypeAlias = "tuple[torch.device, torch.cuda.Stream | None]"
"""A device, and the stream on it; None where the device has no streams."""

RELAXED = 2
"""`CU_STREAM_CAPTURE_MODE_RELAXED` of the driver."""


def current_stream(device: torch.device) -> Stream:
    """The stream in which this thread works on `device`. Autograd runs a backward in the stream of its forward."""
    return device, torch.cuda.current_stream(device) if device.type == "cuda" else None


class ToHost:
    """Tensors of one stream on their way into pinned memory, in a stream of our own."""

    def __init__(
        self,
        of: Stream,
        tensors: Sequence[Tensor],
        prepare: Callable[[Sequence[Tensor]], Sequence[Tensor]] = lambda tensors: tensors,
    ) -> None:
        """Begin to copy what `prepare` makes of `tensors`, in that stream."""
        self._done: torch.cuda.Event | None = None
        device, made_in = of
        if made_in is None:
            self._copies = [tensor.cpu() for tensor in prepare(tensors)]
            return
        current = torch.cuda.current_stream(device), torch.cuda.current_stream()
        with (
            relaxed(),
            Restoring(lambda: [torch.cuda.set_stream(each) for each in current]),
        ):  # the last sets the device
            own = _own_stream(device)
            # Who begins to capture a graph waits for the device first, as `torch.cuda.graph` does. Then nothing is left
            # to wait for, and waiting would make the copy a part of the graph.
            if not _is_captured(made_in):
                own.wait_stream(made_in)
            torch.cuda.set_stream(own)
            self._copies = [tensor.to("cpu", non_blocking=True) for tensor in prepare(tensors)]
            self._done = torch.cuda.Event()
            self._done.record(own)
            for tensor in tensors:
                tensor.record_stream(own)  # the memory is not reused before the copy is made

    def wait(self) -> list[Tensor]:
        """The copies, in host memory. To be called in any thread, within `relaxed` if one may capture a graph."""
        if self._done is not None:
            self._done.synchronize()
        return self._copies


def _own_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream of our own that is not captured: torch has a few, and hands them out in turn, to the user as well."""
    own = _first_own_stream(device)
    while _is_captured(own):
        own = torch.cuda.Stream(device)
    return own


@cache
def _first_own_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


def _is_captured(stream: torch.cuda.Stream) -> bool:
    torch.cuda.set_stream(stream)
    return torch.cuda.is_current_stream_capturing()


@contextmanager
def relaxed() -> Iterator[None]:
    """A context in which what this thread asks of CUDA does not end the capture of a graph that goes on.

    Without it, asking whether a copy is made, or for memory, makes the capture of any thread fail.
    """
    mode = ctypes.c_int(RELAXED)
    cuda = driver() if torch.cuda.is_initialized() else None
    exchange = getattr(cuda, "cuThreadExchangeStreamCaptureMode", None)
    if exchange is None or exchange(ctypes.byref(mode)):
        yield
        return
    try:
        yield
    finally:
        exchange(ctypes.byref(mode))
