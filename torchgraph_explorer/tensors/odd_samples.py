"""Which samples of a batch have NaN or infinity, so that the flight recorder keeps these."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from torch import Tensor

from torchgraph_explorer.tensors.copies import Copied, samples_of

INFINITE, NAN = 1, 2
"""How much a sample says: infinity may be meant, as in a mask."""


@dataclass(frozen=True, slots=True)
class OddSamples:
    """Samples to keep in place of others.

    Attributes:
        weight: `NAN` or `INFINITE`.
        samples: As many as before, ascending: those with NaN or infinity, and some of the others.
    """

    weight: int
    samples: tuple[int, ...]


def odd_samples(tensor: Tensor, copied: Copied, *, known: int) -> OddSamples | None:
    """The samples to keep of a batch of which some, but not all, have NaN or infinity. None if there is no reason.

    Args:
        tensor: In host memory: a GPU would have to be waited for.
        copied: What was copied of it.
        known: What is known of this batch from other tensors: 0, `INFINITE` or `NAN`.
    """
    dim, kept = copied.batch_dim, len(copied.samples)
    if dim is None or known == NAN or not tensor.is_cpu or not 0 < kept < copied.shape[dim] or _is_finite(copied):
        return None
    rows = tensor.detach().movedim(dim, 0).reshape(copied.shape[dim], -1)
    for weight, flags in ((NAN, rows.isnan()), (INFINITE, rows.isfinite().logical_not_())):
        odd = np.flatnonzero(flags.any(1).numpy()).tolist()
        if 0 < len(odd) < len(rows):
            return OddSamples(weight, _with_others(odd, copied.samples)) if weight > known else None
    return None


def _is_finite(copied: Copied) -> bool:
    """Whether the means of all neurons are; they are not if an element is not."""
    found = copied.statistics
    values = found.numpy() if isinstance(found, Tensor) else found
    return values is None or isfinite(values.reshape(-1)[: values.size // 3].sum(dtype=np.float64))


def _with_others(odd: list[int], samples: tuple[int, ...]) -> tuple[int, ...]:
    """`odd` ones, and some of `samples`, to compare them with: one at least, if there is room for two."""
    odd = odd[: max(1, len(samples) - 1)]
    others = [one for one in samples if one not in odd]
    chosen = samples_of(len(others), len(samples) - len(odd))
    return tuple(sorted((*odd, *(others[at] for at in chosen))))
