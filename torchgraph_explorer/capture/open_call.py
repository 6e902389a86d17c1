"""A call of a module that is being executed."""

from __future__ import annotations

from typing import Any

from torchgraph_explorer.capture.edge_gradients import InsideGradients
from torchgraph_explorer.capture.path_gradients import Edge, Walk


class OpenCall:
    """A call that has begun and not returned.

    Attributes:
        index: Its number among the step's calls.
        name: The module.
        call: How many calls of the module came before in the step.
        frame: The Python frame that called our hook: that of torch's call of the module.
        edges: Where the gradients of its inputs are delivered, as they came in.
        walk: Its part of the autograd graph.
        attached: How often each name was attached in it.
        inside: What goes from place to place in it; None before it calls another module.
        is_skipped: Neither it nor what it calls is recorded.
    """

    __slots__ = ("attached", "call", "edges", "frame", "index", "inside", "is_skipped", "name", "walk")

    def __init__(  # noqa: PLR0917  # made for each call
        self, index: int, name: str, call: int, frame: Any, first: int
    ) -> None:
        """The call begins. Its autograd nodes will be numbered from `first`."""
        self.index, self.name, self.call, self.frame = index, name, call, frame
        self.edges: dict[Edge, list[str]] = {}
        self.walk = Walk(first)
        self.attached: dict[str, int] | None = None
        self.inside: InsideGradients | None = None
        self.is_skipped = False

    def is_of(self, frame: Any) -> bool:
        """Whether `frame`, which calls our hook, is of this call. After an exception, torch's outer function is."""
        return frame is self.frame or frame is self.frame.f_back
