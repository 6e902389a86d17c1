"""Copies on their way to host memory. Nothing waits for a GPU but the thread that reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.interrupts import Restoring

Bytes: TypeAlias = "npt.NDArray[np.uint8]"

Stream: TypeAlias = "tuple[torch.device, torch.cuda.Stream | None]"
"""A device, and the stream on it."""


def current_stream(tensor: Tensor | npt.NDArray[Any]) -> Stream | None:
    """The stream in which this thread works on the tensor's device; None for host memory."""
    if isinstance(tensor, np.ndarray) or tensor.is_cpu:
        return None
    device = tensor.device
    return device, torch.cuda.current_stream(device) if device.type == "cuda" else None


def on_host(pieces: Sequence[tuple[Tensor | npt.NDArray[Any], Stream | None]]) -> Callable[[], list[Bytes]]:
    """Begin to copy contiguous `pieces`, given with the streams that made them, to the host. Arrays are there already.

    Returns:
        A function that gives their bytes, in any thread. It waits for the copies.
    """
    streams = dict.fromkeys(stream for _, stream in pieces if stream is not None)
    transfers = {
        stream: _Transfer(stream, [piece for piece, of in pieces if of == stream and isinstance(piece, Tensor)])
        for stream in streams
    }

    def read() -> list[Bytes]:
        parts = {stream: iter(transfer.wait()) for stream, transfer in transfers.items()}
        return [
            next(parts[of]) if of is not None else _bytes(piece).numpy() if isinstance(piece, Tensor) else piece
            for piece, of in pieces
        ]

    return read


def _bytes(piece: Tensor) -> Tensor:
    flat = piece.reshape(-1)
    return (torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat).view(torch.uint8)


class _Transfer:
    """The pieces of one stream, as one copy into pinned memory."""

    def __init__(self, stream: Stream, pieces: list[Tensor]) -> None:
        device, made_in = stream
        self._sizes = [piece.numel() * piece.element_size() for piece in pieces]
        self._done: torch.cuda.Event | None = None
        if made_in is None:
            self._copy = torch.cat([_bytes(piece) for piece in pieces]).cpu()
            return
        own = torch.cuda.Stream(device)
        own.wait_stream(made_in)
        current = torch.cuda.current_stream(device), torch.cuda.current_stream()
        with Restoring(lambda: [torch.cuda.set_stream(each) for each in current]):  # the last sets the device, too
            torch.cuda.set_stream(own)
            together = torch.cat([_bytes(piece) for piece in pieces])
            self._copy = together.to("cpu", non_blocking=True)  # into pinned memory
            self._done = torch.cuda.Event()
            self._done.record(own)
        for piece in pieces:
            piece.record_stream(own)  # the memory is not reused before the copy is made

    def wait(self) -> list[Bytes]:
        if self._done is not None:
            self._done.synchronize()
        ends = np.cumsum(self._sizes)
        return np.split(self._copy.numpy(), ends[:-1])
