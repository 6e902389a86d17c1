"""What the training loop says of a step: its label, the categories of its samples, and tensors of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.printable import LONGEST


@dataclass(slots=True)
class Told:
    """What was said of one step.

    Attributes:
        step: Its number.
        label: Its label; None without.
        categories: One for each sample of the batch; empty without.
    """

    step: int
    label: str | None = None
    categories: tuple[str, ...] = field(default=())


def checked_label(label: object, call: str = "label(", example: str = "label('05_iterations')") -> str | None:
    """`label`, which `call` was given, if it can be one.

    Raises:
        OptionError: It cannot.
    """
    if label is None or (isinstance(label, str) and 0 < len(label) <= LONGEST):
        return label
    raise OptionError(
        f"watcher.{call}{label!r:.80}) is not a label. Pass a short text for this kind of step: {example}, or None."
    )


def checked_reason(what: str, reason: object, *, example: str = "loss above 3") -> str:
    """`reason`, which the method `what` was given, cut to a length that can be recorded.

    Raises:
        OptionError: It is no text.
    """
    if isinstance(reason, str) and reason.strip():
        return reason[:LONGEST]
    raise OptionError(f"watcher.{what}({reason!r:.80}) is not a str. Pass one: {what}({example!r}).")


def checked_categories(categories: Any) -> tuple[str, ...]:
    """The categories of the samples of a batch as texts. Waits for a tensor that is on a GPU.

    Raises:
        OptionError: They are not one str or number for each sample.
    """
    if isinstance(categories, Tensor) or hasattr(categories, "tolist"):
        categories = categories.tolist()
    is_row = isinstance(categories, Sequence) and not isinstance(categories, (str, bytes))
    if is_row and not any(isinstance(one, (list, tuple)) for one in categories):
        return tuple(map(str, categories))
    raise OptionError(
        f"watcher.samples({categories!r:.80}) was not given categories. Pass one str or number for each sample of the "
        f"batch: samples(['cat', 'dog', 'cat']), or a tensor of one dimension."
    )
