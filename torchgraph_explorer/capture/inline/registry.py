"""What operations in compiled code refer to by number: compiled code is kept for the process, and holds no objects."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from torchgraph_explorer import interrupts


@dataclass(frozen=True, slots=True)
class ProbeSite:
    """Where an operation is in the compiled code.

    Attributes:
        number: Its index among all sites. A module that is called twice has its sites twice.
        module: Name of the module.
        role: `input` or `output`.
        path: Which of the module's inputs or outputs.
    """

    number: int
    module: str
    role: str
    path: str


class OpenWindow:
    """Which compiled form runs now. The compiler takes both attributes for constants, and guards the code with them.

    Several may need the form with operations, and stop to need it in any order.

    Attributes:
        on: The form with the operations in it.
        whole: Among them are those for the model itself.
    """

    def __init__(self) -> None:
        """Begin with the compiled form that has no operations in it."""
        self.on, self.whole = False, False
        self._holders: dict[object, bool] = {}

    def hold(self, holder: object, *, whole: bool) -> None:
        """Run the form with operations, until `release` is called with the same object."""
        self._holders[holder] = whole
        self._update()

    def release(self, holder: object) -> None:
        """`holder` does not need it any more. May be called again, and for one that never did."""
        self._holders.pop(holder, None)
        self._update()

    def release_all(self) -> None:
        """Switch to the form without operations, even if somebody still holds the other one."""
        self._holders.clear()
        self._update()

    def _update(self) -> None:
        """The last one to come decides."""
        needs = list(self._holders.values())
        self.on, self.whole = bool(needs), bool(needs and needs[-1])


class Probes(Protocol):
    """Takes what the operations in one model show."""

    def show(self, site: ProbeSite, what: int, tensor: Tensor) -> None:
        """The operation at `site` shows its tensor."""

    def fail(self, module: str, fault: Exception) -> object:
        """`module` cannot be captured, because of `fault`."""


@dataclass
class InlineRegistry:
    """The probes of all models and the sites of all operations. Sites are never removed: compiled code has them.

    Attributes:
        window: Which compiled form runs now.
        keys: Numbers for probes.
        probes: By number, as long as their model is watched.
        sites: By number, each with that of its probes.
        lock: Held while a site is added.
    """

    window: OpenWindow = field(default_factory=OpenWindow)
    keys: Iterator[int] = field(default_factory=itertools.count)
    probes: weakref.WeakValueDictionary[int, Probes] = field(default_factory=weakref.WeakValueDictionary)
    sites: list[tuple[int, ProbeSite]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=interrupts.lock)
