"""Where nothing is watched: with `TORCHGRAPH=off` in the environment, and where a helper process imports the script."""

from __future__ import annotations

import os
import weakref
from multiprocessing.process import current_process
from typing import NoReturn

import torch
from torch import nn

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.phases import Training
from torchgraph_explorer.capture.safe_hook import Hook
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


def is_imported_anew() -> bool:
    """Whether this process has just begun and imports the script that began it, as each worker of a DataLoader does.

    So do all processes that `multiprocessing` begins by the methods `spawn` and `forkserver`.
    """
    return bool(getattr(current_process(), "_inheriting", False))


class SwitchedOff(Watcher):
    """A watcher that watches nothing: nothing is on the model, no thread runs, no file is written."""

    cause = f"{VARIABLE}='off' is in the environment. Unset it, and train again."

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
        raise OptionError(f"Nothing is recorded, since {self.cause}")


class ImportedAnew(SwitchedOff):
    """What `watch` returns while a helper process imports the script: that process is not the one that trains.

    If it trains the model after all, a warning says what to do.
    """

    cause = (
        "`watch` was called while a process of `multiprocessing` imported your script, and such processes usually do "
        "not train. Call `watch` in the function that trains."
    )

    def __init__(self, model: nn.Module, name: str) -> None:
        """Wait for a forward pass of a training."""
        super().__init__(model, name)
        self._handle = unwrapped(model).register_forward_pre_hook(Hook(self._called, lambda _fault: None))

    def _called(self, model: nn.Module, *_arguments: object) -> None:
        if model.training and torch.is_grad_enabled():
            self._handle.remove()
            warn(f"{self.name}: nothing is recorded, since {self.cause}")
