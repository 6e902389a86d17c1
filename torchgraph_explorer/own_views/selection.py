"""What a view gets: what is chosen in the viewer, and its arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.record.tensors.reading import KeptInfo, KeptTensor
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import Series

Statistic = Literal["mean", "std", "largest"]
STATISTICS: tuple[Statistic, ...] = ("mean", "std", "largest")

_NEAR = 8
"""Names that an error tells at most."""


@dataclass(frozen=True)
class ViewSelection:
    """What is chosen in the viewer.

    Attributes:
        run: Name of the run.
        model: The model, as `open_run(...).model(...)` returns it.
        step: The step. If a tensor is chosen, a step at which it was kept. None if the run has no step yet.
        module: Qualified name of the module that is selected in the graph, or that has the chosen tensor; or None.
        series: The series of the chosen tensor's values, or of the chosen gradient; None if no tensor is chosen.
        loss: For a gradient, the name of its backward pass; empty if it has none.
        sample: Position of the chosen sample among the kept ones; None if all of them, or a statistic, are chosen.
        statistic: `mean`, `std` or `largest` of each neuron over the batch, if that is chosen; None otherwise.
        index: Index of the element that was clicked; None if there is none.
        rank: The rank that is chosen; None for the lowest one.
        theme: `light` or `dark`.

    Example:
        >>> def view(selection: ViewSelection) -> str:
        ...     return f"<p>{selection.module} at step {selection.step}</p>"
    """

    run: str
    model: Model
    step: int | None
    module: str | None
    series: Series | None
    loss: str
    sample: int | None
    statistic: Statistic | None
    index: tuple[int, ...] | None
    rank: int | None
    theme: Literal["light", "dark"]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tensors that were kept at the step, as `tensor` takes them."""
        return tuple(dict.fromkeys(_names(one)[0] for one in self._kept()))

    def tensor(self, name: str | None = None, *, call: int | None = None) -> KeptTensor:
        """What was kept of the chosen tensor at the step, or of the one called `name`.

        Args:
            name: As in a pattern of `Keep`, which may contain `*`; the first tensor that it selects is taken.
            call: Which call of the module; None for that of the chosen tensor, or else for the first one.

        Raises:
            NotFoundError: No such tensor was kept at the step, or none is chosen.
        """
        if name is None:
            if self.series is None or self.step is None:
                raise NotFoundError(f"No tensor is chosen. {self._where_to_choose()}")
            return self.model.tensor(self.series, self.step, rank=self.rank, loss=self.loss)
        return self.model.tensor(self._find(name, call).series, self._step(), rank=self.rank)

    def array(self, name: str | None = None, *, call: int | None = None) -> npt.NDArray[Any]:
        """The numbers of that tensor: of the chosen sample, of all kept samples, or the chosen statistic.

        A tensor without a batch dimension is returned whole.

        Raises:
            NotFoundError: As in `tensor`.
        """
        tensor = self.tensor(name, call=call)
        if tensor.batch_dim is None:
            return tensor.values
        if self.statistic is not None:
            found = {"mean": tensor.mean, "std": tensor.std, "largest": tensor.largest}[self.statistic]
            assert found is not None  # it has a batch dimension
            return found
        if self.sample is None:
            return tensor.values
        part: npt.NDArray[Any] = tensor.values.take(min(self.sample, len(tensor.samples) - 1), axis=tensor.batch_dim)
        return part

    def _where_to_choose(self) -> str:
        if len(self.model.kept.steps):
            return "Choose one on the left, or name one: selection.tensor(name)."
        return "This run kept none: `watch(model, keep=Keep(...))` keeps tensors."

    def _find(self, name: str, call: int | None) -> KeptInfo:
        kept = self._kept()
        found = [one for one in kept if any(fnmatchcase(own, name) for own in _names(one))]
        if call is not None:
            found = [one for one in found if one.series.call in (call, None)]
        if not found:
            names = list(dict.fromkeys(_names(one)[0] for one in kept))
            near = get_close_matches(name, names, _NEAR, 0.3) or names[:_NEAR]
            called = "" if call is None else f" of call {call}"
            there = f"There is {', '.join(near)}." if near else "Nothing was kept there."
            raise NotFoundError(f"No tensor {name!r}{called} was kept at step {self.step}. {there}")
        chosen = None if self.series is None else self.series.call
        return next((one for one in found if chosen is not None and one.series.call == chosen), found[0])

    def _kept(self) -> tuple[KeptInfo, ...]:
        try:
            return self.model.kept_at(self._step(), rank=self.rank).tensors
        except NotFoundError:
            return ()

    def _step(self) -> int:
        if self.step is None:
            raise NotFoundError("The run has no step yet.")
        return self.step


def selection_from(asked: Mapping[str, Any], run: str, model: Model) -> ViewSelection:
    """The selection that the server asks for.

    Raises:
        RecordError: The model's record cannot be read.
    """
    series, module, steps = asked["series"], asked["module"], model.steps
    step = asked["step"] if asked["step"] is not None or not len(steps) else int(steps[-1])
    sample = asked["sample"]
    return ViewSelection(
        run=run,
        model=model,
        step=step,
        module=series[0] if series is not None else module,
        series=None if series is None else Series(-1, *series),
        loss=asked["loss"],
        sample=sample if isinstance(sample, int) else None,
        statistic=sample if sample in STATISTICS else None,
        index=None if asked["index"] is None else tuple(asked["index"]),
        rank=asked["rank"],
        theme=asked["theme"],
    )


def _names(one: KeptInfo) -> tuple[str, ...]:
    """The names that a tensor has, the one to show first."""
    return tuple(dict.fromkeys(_all_names(one)))


def _all_names(one: KeptInfo) -> Iterator[str]:
    module, role, path = one.series.module, one.series.role, one.series.path
    within = f"{module}." if module else ""
    if role == "param":
        yield f"{within}{path}"
    elif role == "attached":
        yield path
        yield f"{within}{path}"
    elif role == "output" and path == "output" and module:
        yield module
    else:
        yield f"{module}:{path}"
        yield f"{module}:{role}"
    yield f"{module}:{role}"
