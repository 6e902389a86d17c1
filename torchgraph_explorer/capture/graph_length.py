"""How long the autograd graph of a step has become, since torch cannot free a long one that was looked at.

Where Python code has read a node of the graph, torch 2.13 frees the node by a function that calls itself for the node
behind it. On a stack of 8 MiB, that ends between 40,000 and 60,000 nodes in a row: the process dies. A loop over
thousands of elements makes as many, and reading `tensor.grad_fn` is enough.
"""

from __future__ import annotations

import threading

from torchgraph_explorer.capture.path_gradients import sequence_number

USUAL_STACK = 8 << 20
"""Bytes of the stack of a thread on most systems."""

NODES_ON_USUAL_STACK = 30_000
"""Autograd nodes that are looked at on such a stack."""

TOO_LONG = (
    "A step's autograd graph is so long that torch could not free it after it was looked at. For the rest of the step, "
    "values are recorded, but no gradients of inputs and outputs, and the graph assumes where gradient flows."
)


def most_nodes() -> int:
    """The most nodes of one graph that are looked at: as many as the stack is sure to bear."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_STACK, getrlimit
    except ImportError:  # Windows, where Python reserves 2 MB
        return NODES_ON_USUAL_STACK // 4
    size = getrlimit(RLIMIT_STACK)[0]
    is_usual = size == RLIM_INFINITY or size >= USUAL_STACK
    return NODES_ON_USUAL_STACK if is_usual else NODES_ON_USUAL_STACK * size // USUAL_STACK


class GraphLength:
    """Counts the autograd nodes that a thread makes in a step, between backward passes.

    Attributes:
        most: So many may be looked at.
    """

    def __init__(self) -> None:
        """Count the nodes that this thread makes from now on."""
        self._first, self._thread = sequence_number(), threading.get_ident()
        self.most = most_nodes()
        self._is_freed = False

    def begin_pass(self) -> None:
        """A forward pass begins. Unless a backward pass came before, it may continue the graph of the last one."""
        thread = threading.get_ident()
        if self._is_freed or thread != self._thread:
            self._first, self._thread, self._is_freed = sequence_number(), thread, False

    def end_backward(self) -> None:
        """A backward pass has ended: what the next forward pass makes is a graph of its own."""
        self._is_freed = True

    @property
    def is_over(self) -> bool:
        """Whether no further node may be looked at."""
        return sequence_number() - self._first > self.most
