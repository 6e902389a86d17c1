"""Copies on their way to host memory. Nothing waits for a GPU but the thread that reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.reduce.to_host import Stream, ToHost, current_stream, relaxed

Bytes: TypeAlias = "npt.NDArray[np.uint8]"


def stream_of(tensor: Tensor | npt.NDArray[Any]) -> Stream | None:
    """The stream in which this thread works on the tensor's device; None for host memory."""
    return None if isinstance(tensor, np.ndarray) or tensor.is_cpu else current_stream(tensor.device)


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
    """The pieces of one stream, as one copy."""

    def __init__(self, stream: Stream, pieces: list[Tensor]) -> None:
        self._sizes = [piece.numel() * piece.element_size() for piece in pieces]
        self._copy = ToHost(stream, pieces, lambda pieces: [torch.cat([_bytes(piece) for piece in pieces])])

    def wait(self) -> list[Bytes]:
        with relaxed():
            [copy] = self._copy.wait()
        ends = np.cumsum(self._sizes)
        return np.split(copy.numpy(), ends[:-1])
