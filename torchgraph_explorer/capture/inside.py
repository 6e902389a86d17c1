"""What a trace knows of the inside of a call that is being executed."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from torch import Tensor

from torchgraph_explorer.capture.path_gradients import Edge as GradientEdge
from torchgraph_explorer.capture.path_gradients import edge_and_staleness
from torchgraph_explorer.schema import TensorInfo

Level: TypeAlias = "int | None"
"""A call, by number, whose inside is meant; None for the outside of the model."""


@dataclass(slots=True)
class Inside:
    """A call that is being executed, and what is known of its inside.

    Attributes:
        first: Autograd nodes made in it are numbered from here.
        labels: For each edge, the nodes whose tensors deliver their gradient there. They are several if a call
            returned one of its arguments.
        labelled: All nodes in `labels`.
        stale: Stale views, which have no edge before they are used; their versions; their nodes.
        spans: For each call that is over: the numbers of the autograd nodes made in it, from and to, and its node.
        placeholders: Those for tensors that were no arguments.
        unseen: What a call of a simple module was given, as long as nothing is in its inside. Its operations are not
            noted: they show where data goes in an inside that no graph has. None for other calls.
    """

    level: Level
    node: int
    first: int
    labels: dict[GradientEdge, list[int]] = field(default_factory=dict)
    labelled: set[int] = field(default_factory=set)
    stale: list[tuple[Tensor, int, list[int]]] = field(default_factory=list)
    spans: list[tuple[int, int, int]] = field(default_factory=list)
    placeholders: list[int] = field(default_factory=list)
    unseen: Sequence[tuple[TensorInfo, Tensor]] | None = None

    def label(self, tensor: Tensor, nodes: list[int]) -> None:
        """Let the edge of `tensor` belong to `nodes`, from now on."""
        edge, is_stale = edge_and_staleness(tensor)
        if is_stale:
            self.stale.append((tensor, tensor._version, nodes))
            return
        self.labels.setdefault(edge, []).extend(nodes)
        self.labelled.update(nodes)

    def label_stale(self) -> None:
        """Label the stale views that have been used since."""
        stale, self.stale = self.stale, []
        for tensor, version, nodes in stale:
            if tensor._version == version:
                self.label(tensor, nodes)

    def made(self, number: int) -> int | None:
        """The node of the call in which the autograd node with this number was made; None if it is over in no call.

        The calls were made one after the other, so their spans are in order.
        """
        at = bisect_right(self.spans, (number, math.inf)) - 1
        return self.spans[at][2] if at >= 0 and number < self.spans[at][1] else None
