"""The random numbers that a training draws, which nothing of ours may draw."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import torch


def random_state() -> Callable[[], None]:
    """The state of the generators of torch, Python and numpy, as a function that sets it again."""
    parts: list[Callable[[], object]] = [
        partial(torch.set_rng_state, torch.get_rng_state()),
        partial(random.setstate, random.getstate()),
        partial(np.random.set_state, np.random.get_state()),  # the generator that models use
    ]
    if torch.cuda.is_initialized():
        parts.append(partial(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
    if torch.backends.mps.is_available():
        parts.append(partial(torch.mps.set_rng_state, torch.mps.get_rng_state()))

    def restore() -> None:
        for part in parts:
            part()

    return restore
