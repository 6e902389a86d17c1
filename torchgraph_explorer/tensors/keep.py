"""`Keep`: which tensors are kept whole, and how many of them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.per_label import PerLabel
from torchgraph_explorer.tensors.patterns import Pattern, parsed

WHEN = ("logged", "flagged")
"""The values of `when`."""

BEFORE = 3
"""Steps before a flagged one that are kept by default."""


MOST_ON_PAGE = 200
"""10⁶ bytes of kept tensors on a page: `server.export.MOST_TENSOR_MEGABYTES`."""


@dataclass(frozen=True, slots=True, init=False)
class Keep:
    """Which tensors to keep whole, for `watch(model, keep=Keep(...))`.

    Attributes:
        patterns: The patterns that select tensors.
        samples: How many samples of a batch are kept; None for all.
        log_freq: How many training steps are between kept ones, or a schedule for each label. None: each logged step is
            kept.
        megabytes: The most that the kept tensors of a run take on disk, in 10⁶ bytes.
        batch_dim: The dimension along which samples are taken.
        when: `logged`: steps are kept as they come. `flagged`: they wait in memory, and are kept if something asks for
            them.
        before: How many steps before such a step are kept, too.
        wandb_megabytes: The most that they add to W&B's page, in 10⁶ bytes.

    Example:
        >>> with watch(model, keep=Keep("classifier"), backend="record", run="kept", log_freq=1, verbose=False):
        ...     train(model)
        >>> open_run("runs/kept").model().kept.steps
        array([0])
    """

    patterns: tuple[Pattern, ...]
    samples: int | None
    log_freq: int | PerLabel | None
    megabytes: float
    batch_dim: int
    when: str
    before: int
    wandb_megabytes: float

    def __init__(
        self,
        *patterns: str,
        samples: int | None = 8,
        log_freq: int | PerLabel | None = None,
        megabytes: float = 512,
        batch_dim: int = 0,
        when: str = "logged",
        before: int | None = None,
        wandb_megabytes: float = 0,
    ) -> None:
        """Keep the tensors that one of `patterns` selects, with their gradients.

        Args:
            patterns: Names. `*` stands for any characters, including dots, `?` for one and `[ab]` for one of several.
                `"encoder"` is what the module of this qualified name returns, `"encoder.weight"` a parameter, and
                `"attention"` a tensor that was given this name with `attach`. `"encoder:input"`, `"encoder:output"` and
                `"encoder:param"` are what the module is given, what it returns, and its own parameters;
                `":output"` is what the model itself returns.
            samples: How many samples of a batch to keep, spread evenly over it; None for all. Parameters, and tensors
                without a batch dimension, are kept whole.
            log_freq: Keep a logged step every so many steps of the training: with `watch(log_freq=10)`, 100 keeps one
                in ten logged steps. None keeps each logged step. `PerLabel(every=100)` has a schedule for each label
                that `watcher.label` gives.
            megabytes: The most that the kept tensors of a run may take on disk, in 10⁶ bytes. Whenever half of what is
                left is used, steps are kept half as often.
            batch_dim: The dimension along which samples are taken.
            when: With "flagged", the latest of these steps wait in memory, and are kept only if `watcher.keep`, NaN or
                infinity, a finding, or an exception of the training asks for one.
            before: With `when="flagged"`, how many steps before such a step are kept, too; 3 by default.
            wandb_megabytes: How many MB of kept tensors are in the page that is logged to W&B, where everybody who sees
                the run can see them. By default 0, since they may be people's data.

        Raises:
            OptionError: An argument has a value that is not allowed.
        """
        _check_what(patterns, samples, batch_dim)
        _check_when(log_freq, when, before)
        _check_sizes(megabytes, wandb_megabytes)
        object.__setattr__(self, "patterns", tuple(map(parsed, patterns)))
        object.__setattr__(self, "samples", None if samples is None else int(samples))
        is_number = log_freq is not None and not isinstance(log_freq, PerLabel)
        object.__setattr__(self, "log_freq", int(log_freq) if is_number else log_freq)  # type: ignore[arg-type]
        object.__setattr__(self, "megabytes", float(megabytes))
        object.__setattr__(self, "batch_dim", int(batch_dim))
        object.__setattr__(self, "when", when)
        object.__setattr__(self, "before", BEFORE if before is None else int(before))
        object.__setattr__(self, "wandb_megabytes", float(wandb_megabytes))

    @property
    def is_flagged(self) -> bool:
        """Whether steps are kept only if something asks for them."""
        return self.when == "flagged"


def _check_what(patterns: tuple[str, ...], samples: int | None, batch_dim: int) -> None:
    """Refuse what does not say which tensors, or which part of them, to keep.

    Raises:
        OptionError: An argument has a value that is not allowed.
    """
    if not patterns:
        raise OptionError("Keep() names no tensor. Pass at least one pattern: Keep('head', '*.weight'), or Keep('*').")
    if samples is not None and not _is_whole(samples, least=1):
        raise OptionError(
            f"samples={samples!r} is not a number of samples. Pass a whole number, 1 or more, or None for all."
        )
    if not _is_whole(batch_dim):
        raise OptionError(f"batch_dim={batch_dim!r} is not a dimension. Pass a whole number, such as 0.")


def _check_when(log_freq: int | PerLabel | None, when: str, before: int | None) -> None:
    """Refuse what does not say in which steps to keep tensors.

    Raises:
        OptionError: An argument has a value that is not allowed.
    """
    if log_freq is not None and not isinstance(log_freq, PerLabel) and not _is_whole(log_freq, least=1):
        raise OptionError(
            f"log_freq={log_freq!r} is not a number of steps. Pass a whole number, 1 or more, a PerLabel, or None."
        )
    if when not in WHEN:
        raise OptionError(
            f"when={when!r} does not say when to keep tensors. Pass 'logged', or 'flagged' to keep only steps that "
            f"something asks for."
        )
    if before is not None and (when != "flagged" or not _is_whole(before, least=0)):
        raise OptionError(
            f"before={before!r} with when={when!r}. Pass a whole number of steps, 0 or more, and when='flagged'."
        )


def _check_sizes(megabytes: float, wandb_megabytes: float) -> None:
    """Refuse what is no size of a run's kept tensors, or of those in a page.

    Raises:
        OptionError: An argument has a value that is not allowed.
    """
    if not _is_positive(megabytes):
        raise OptionError(f"megabytes={megabytes!r} is not a size. Pass a number above 0.")
    if not (_is_positive(wandb_megabytes) or wandb_megabytes == 0) or wandb_megabytes > MOST_ON_PAGE:
        raise OptionError(
            f"wandb_megabytes={wandb_megabytes!r} is not a size for a page. Pass a number from 0 to {MOST_ON_PAGE}."
        )


def _is_whole(value: object, *, least: int | None = None) -> bool:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return is_whole and (least is None or int(value) >= least)  # type: ignore[call-overload]


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < float("inf")
