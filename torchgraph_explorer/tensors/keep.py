"""`Keep`: which tensors are kept whole, and how many of them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.tensors.patterns import Pattern, parsed


@dataclass(frozen=True, slots=True, init=False)
class Keep:
    """Which tensors to keep whole, for `watch(model, keep=Keep(...))`.

    Attributes:
        patterns: What selects them.
        samples: Samples of a batch that are kept; None for all.
        log_freq: One in so many logged steps is kept; None for each.
        megabytes: The most that the kept tensors of a run take on disk, in 10⁶ bytes.
        batch_dim: The dimension along which samples are taken.
    """

    patterns: tuple[Pattern, ...]
    samples: int | None
    log_freq: int | None
    megabytes: float
    batch_dim: int

    def __init__(
        self,
        *patterns: str,
        samples: int | None = 8,
        log_freq: int | None = None,
        megabytes: float = 512,
        batch_dim: int = 0,
    ) -> None:
        """Keep the tensors that one of `patterns` selects, with their gradients.

        Args:
            patterns: Names, in which `*` stands for any characters, also dots, `?` for one and `[ab]` for one of some.
                `"encoder"` is what the module of this qualified name returns, `"encoder.weight"` a parameter, and
                `"attention"` a tensor that was given this name with `attach`. `"encoder:input"`, `"encoder:output"` and
                `"encoder:param"` are what the module is given, what it returns, and its own parameters;
                `":output"` is what the model itself returns.
            samples: How many samples of a batch to keep, spread evenly over it; None for all. Parameters, and tensors
                without a batch dimension, are kept whole.
            log_freq: Keep one in so many of the logged steps; None for each of them.
            megabytes: The most that the kept tensors of a run may take on disk. When half of what is left is used,
                steps are kept half as often.
            batch_dim: The dimension along which samples are taken.

        Raises:
            OptionError: An argument is not one of those allowed.
        """
        if not patterns:
            raise OptionError(
                "Keep() names no tensor. Pass at least one pattern: Keep('head', '*.weight'), or Keep('*')."
            )
        if samples is not None and not _is_whole(samples, least=1):
            raise OptionError(
                f"samples={samples!r} is no number of samples. Pass a whole number from 1, or None for all."
            )
        if log_freq is not None and not _is_whole(log_freq, least=1):
            raise OptionError(
                f"log_freq={log_freq!r} is no number of logged steps. Pass a whole number from 1, or None."
            )
        if not _is_positive(megabytes):
            raise OptionError(f"megabytes={megabytes!r} is no size. Pass a number above 0.")
        if not _is_whole(batch_dim):
            raise OptionError(f"batch_dim={batch_dim!r} is no dimension. Pass a whole number, such as 0.")
        object.__setattr__(self, "patterns", tuple(map(parsed, patterns)))
        object.__setattr__(self, "samples", None if samples is None else int(samples))
        object.__setattr__(self, "log_freq", None if log_freq is None else int(log_freq))
        object.__setattr__(self, "megabytes", float(megabytes))
        object.__setattr__(self, "batch_dim", int(batch_dim))


def _is_whole(value: object, *, least: int | None = None) -> bool:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return is_whole and (least is None or int(value) >= least)  # type: ignore[call-overload]


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < float("inf")
