"""What the record says of a watch: who made it, where, and with which settings."""

from __future__ import annotations

import os
import platform
import time
import uuid

import torch
from torch import nn

from torchgraph_explorer.capture.distributed import Rank
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.schema import Session
from torchgraph_explorer.training.options import Settings
from torchgraph_explorer.training.schedule import schedule_name
from torchgraph_explorer.version import __version__
from torchgraph_explorer.writing_process import host, own_processes

WITHOUT_HISTOGRAMS = (
    "log has 'scalars': no histograms are recorded. Saturated activations are not looked for, and runs are compared by "
    "their statistics alone."
)


def describe(model: nn.Module, settings: Settings, name: str, *, rank: Rank | None, notes: tuple[str, ...]) -> Session:
    """The session of a watch of `model` by `name`; `rank` is that of this process where the ranks make one record."""
    return Session(
        id=uuid.uuid4().hex,
        model=name,
        class_name=type(unwrapped(model)).__name__,
        created=time.time(),
        host=host(),
        pid=os.getpid(),
        versions={
            "torchgraph_explorer": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        log=settings.log,
        log_freq=schedule_name(settings.log_freq),
        sample_n=settings.sample_n,
        bins=settings.bins,
        reject_outlier_proportion=settings.reject_outlier_proportion,
        clock=settings.time_log[0] if settings.time_log else None,
        rank=rank.number if rank is not None else None,
        world_size=rank.world_size if rank is not None else 1,
        processes=own_processes(),
        notes=notes if settings.histograms else (*notes, WITHOUT_HISTOGRAMS),
    )
