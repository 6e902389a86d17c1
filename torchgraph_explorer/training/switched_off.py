"""`TORCHGRAPH=off` in the environment: nothing is watched."""

from __future__ import annotations

import os
import weakref
from typing import NoReturn

from torch import nn

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.phases import Training
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.console import warn
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.schema import ModuleGraph
from torchgraph_explorer.training.watcher import Watcher

VARIABLE = "TORCHGRAPH"


def is_switched_off() -> bool:
    """Whether the environment says so. A value that means neither off nor on warns, and is ignored."""
    value = os.environ.get(VARIABLE, "")
    if value.lower() not in ("off", "on", ""):
        warn(f"{VARIABLE}={value!r} in the environment is ignored. Set it to 'off' to watch nothing, or to 'on'.")
    return value.lower() == "off"


class SwitchedOff(Watcher):
    """A watcher that watches nothing: nothing is on the model, no thread runs, no file is written."""

    def __init__(self, model: nn.Module, name: str) -> None:
        """Do nothing to `model`."""
        self.name, self.run_dir, self.url, self.viewer = name, None, None, None
        self.pid = os.getpid()
        self._ending = interrupts.lock()
        self._ends_in = None
        self._finished = self._has_ended = self._is_written = True
        self._training = Training()
        self._model = weakref.ref(unwrapped(model))
        self._pipelines = []
        self._inbox = None

    @property
    def recording(self) -> bool:
        """False."""
        return False

    @property
    def graphs(self) -> tuple[ModuleGraph, ...]:
        """None are known."""
        return ()

    def watches(self, model: nn.Module) -> bool:
        """False."""
        return False

    def _recorded(self) -> NoReturn:
        raise OptionError(
            f"Nothing is recorded, since {VARIABLE}='off' is in the environment. Unset it, and train again."
        )
