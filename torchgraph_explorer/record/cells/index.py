"""Which blocks of cells a model's record has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.cells.encoding import steps_of
from torchgraph_explorer.record.limits import CELL_BLOCKS


@dataclass(frozen=True, slots=True)
class Block:
    """A block of cells.

    Attributes:
        head: As written.
        steps: Its steps, ascending.
        session: Id of the session that wrote it.
        path: The file.
        body: Where its body begins in the file.
    """

    head: pb.Cells
    steps: npt.NDArray[np.int64]
    session: str
    path: Path
    body: int


class CellIndex:
    """The blocks of one model, in the order of reading. `blocks` only grows."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []

    def add(self, head: pb.Cells, session: str, path: Path, *, body: int, body_size: int) -> None:
        """Note a block. Of very many, the first ones are noted.

        Raises:
            DamageError: It contradicts itself or exceeds a bound.
        """
        steps = steps_of(head, body_size)
        if len(self.blocks) < CELL_BLOCKS:
            self.blocks.append(Block(head, steps, session, path, body))
