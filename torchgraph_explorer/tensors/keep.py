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
        patterns: What selects them.
        samples: Samples of a batch that are kept; None for all.
        log_freq: Steps of the training between kept ones, or a schedule for each label; None: each logged step is kept.
        megabytes: The most that the kept tensors of a run take on disk, in 10⁶ bytes.
        batch_dim: The dimension along which samples are taken.
        when: `logged`: steps are kept as they come. `flagged`: they wait in memory until something asks for them.
        before: Steps before one that was asked for, which are kept with it.
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
            patterns: Names, in which `*` stands for any characters, also dots, `?` for one and `[ab]` for one of some.
                `"encoder"` is what the module of this qualified name returns, `"encoder.weight"` a parameter, and
                `"attention"` a tensor that was given this name with `attach`. `"encoder:input"`, `"encoder:output"` and
                `"encoder:param"` are what the module is given, what it returns, and its own parameters;
                `":output"` is what the model itself returns.
            samples: How many samples of a batch to keep, spread evenly over it; None for all. Parameters, and tensors
                without a batch dimension, are kept whole.
            log_freq: Keep one in so many steps of the training, of those that are logged: with `watch(log_freq=10)`, a
                100 keeps one in ten logged steps. None keeps each of them. `PerLabel(every=100)` has a schedule for
                each label that `watcher.label` gives.
            megabytes: The most that the kept tensors of a run may take on disk. When half of what is left is used,
                steps are kept half as often.
            batch_dim: The dimension along which samples are taken.
            when: "flagged" makes a flight recorder: the latest of these steps wait in memory, and are kept only if
                `watcher.keep`, NaN or infinity, a finding, or an exception of the training asks for one.
            before: With `when="flagged"`, how many steps before it are kept, too; 3 by default.
            wandb_megabytes: Kept tensors that fit into so many MB are in the page that is logged to W&B, for everybody
                who sees the run there. None are by default: they may be people's data.

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
        if log_freq is not None and not isinstance(log_freq, PerLabel) and not _is_whole(log_freq, least=1):
            raise OptionError(
                f"log_freq={log_freq!r} is no number of steps. Pass a whole number from 1, a PerLabel, or None."
            )
        if not _is_positive(megabytes):
            raise OptionError(f"megabytes={megabytes!r} is no size. Pass a number above 0.")
        if not _is_whole(batch_dim):
            raise OptionError(f"batch_dim={batch_dim!r} is no dimension. Pass a whole number, such as 0.")
        if when not in WHEN:
            raise OptionError(
                f"when={when!r} does not say when to keep tensors. Pass 'logged', or 'flagged' to keep only steps that "
                f"something asks for."
            )
        if before is not None and (when != "flagged" or not _is_whole(before, least=0)):
            raise OptionError(
                f"before={before!r} with when={when!r}. Pass a whole number of steps from 0, with when='flagged'."
            )
        if not (_is_positive(wandb_megabytes) or wandb_megabytes == 0) or wandb_megabytes > MOST_ON_PAGE:
            raise OptionError(
                f"wandb_megabytes={wandb_megabytes!r} is no size of a page. Pass a number from 0 to {MOST_ON_PAGE}."
            )
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


def _is_whole(value: object, *, least: int | None = None) -> bool:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return is_whole and (least is None or int(value) >= least)  # type: ignore[call-overload]


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < float("inf")
