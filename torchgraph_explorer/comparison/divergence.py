"""The first place at which two runs differ, in the order in which a step computes its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.comparison.execution import backward_order, forward_order, parameter_order
from torchgraph_explorer.schema import ModuleGraph, Role, Series

Flags: TypeAlias = "npt.NDArray[np.bool_]"

DivergenceKind: TypeAlias = Literal["data", "parameter", "computation", "gradient", "update"]
"""What differs first.

- `data`: what the model was given.
- `parameter`: a parameter, before the step began: an update before made it, or what else wrote to it.
- `computation`: what a call returned, or computed inside it; its inputs and parameters agreed.
- `gradient`: the forward pass agreed, a gradient does not.
- `update`: the gradients agreed; what the optimizer got, or did, does not.
"""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two runs differ first.

    Attributes:
        step: The first compared step at which they differ.
        last_equal_step: The compared step before it, at which they agreed: the runs begin to differ after it, by
            `step` at the latest. None if they differ at the first compared step.
        kind: What differs first: `data`, `parameter`, `computation`, `gradient` or `update`.
        module: Qualified name of the module, in the first run; empty for the model itself.
        call: Which call of it in the step; None for a parameter.
        path: Which tensor, as in `TensorInfo.path`.
        series: The series of it that differs.
        distance: How far apart the histograms are at `step`, from 0 to 1; 0 also for differences within a bucket.
        gap: The largest difference of a statistic at `step`, relative to the tensor's magnitude, or of the numbers of
            elements; infinite where they have other numbers of NaN or infinity.
        is_rounding: The difference is not larger than rounding.
        differing: How many of the series that both have differ at `step`.
        compared: How many both have.
        text: All this in sentences.
    """

    step: int
    last_equal_step: int | None
    kind: DivergenceKind
    module: str
    call: int | None
    path: str
    series: Series
    distance: float
    gap: float
    is_rounding: bool
    differing: int
    compared: int
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """What differs first within a step: the kind, and the series, by its index among the matched ones.

    Attributes:
        kind: As in `Divergence`.
        at: The series that differs.
        module: The module to name, if it is not that of the series: what happens between calls happens in their parent.
        call: Which call of it.
        is_guess: It is the likeliest of several, since steps were not logged in between.
    """

    kind: DivergenceKind
    at: int
    module: str | None = None
    call: int | None = None
    is_guess: bool = False


class Step:
    """The matched series at the first step at which some differ."""

    def __init__(self, series: Sequence[Series], differ: Flags, graph: ModuleGraph | None) -> None:
        """`differ` tells of each of `series`, those of the first run, whether it differs at the step."""
        self._series, self._differ, self._graph = series, differ, graph
        self._by_tensor: dict[tuple[str, int | None, Role], list[int]] = {}
        for at in np.flatnonzero(differ).tolist():
            one = series[at]
            self._by_tensor.setdefault((one.module, one.call, one.role), []).append(at)

    def first(self, *, data_first: bool, suspects: npt.NDArray[np.float64] | None) -> Place:
        """What differs first.

        Data may be the cause of parameters that differ if steps were not logged in between (`data_first`). Then all
        parameters differ, too, so that of the highest of `suspects`, one number a series, is named.
        """
        data, parameter = self._data(), self._parameter(suspects)
        before = (data, parameter) if data_first else (parameter, data)
        found = next((one for one in (*before, self._computation(), self._gradient()) if one is not None), None)
        return found or self._other()

    def _at(self, module: str, call: int | None, role: Role, *, kinds: Iterable[str] = ("value",)) -> int | None:
        wanted = frozenset(kinds)
        return next(
            (at for at in self._by_tensor.get((module, call, role), ()) if self._series[at].kind in wanted), None
        )

    def _data(self) -> Place | None:
        """An input of the model that differs although nothing did that was computed before it."""
        for moment in forward_order(self._graph) if self._graph else ():
            if moment.side == "input" and moment.parent is None:
                at = self._at(moment.module, moment.call, "input")
                if at is not None:
                    return Place("data", at)
            elif moment.parent is None and self._at(moment.module, moment.call, "output") is not None:
                return None
        return None

    def _parameter(self, suspects: npt.NDArray[np.float64] | None) -> Place | None:
        found = [
            at
            for at in np.flatnonzero(self._differ).tolist()
            if self._series[at].role == "param" and self._series[at].kind == "value"
        ]
        if not found:
            return None
        if suspects is not None:
            return Place("parameter", max(found, key=lambda at: suspects[at]), is_guess=len(found) > 1)
        return Place("parameter", self._first_module(found))

    def _first_module(self, found: list[int]) -> int:
        order = {name: number for number, name in enumerate(parameter_order(self._graph))} if self._graph else {}
        return min(found, key=lambda at: order.get(self._series[at].module, len(order)))

    def _computation(self) -> Place | None:
        graph = self._graph
        for moment in forward_order(graph) if graph else ():
            role = "input" if moment.side == "input" else "output"
            for each in _ROLES[role]:
                at = self._at(moment.module, moment.call, each)
                if at is None:
                    continue
                if role == "output" or moment.parent is None or graph is None:
                    return Place("computation", at)
                inside = graph.calls[moment.parent]
                return Place("computation", at, inside.module, inside.call)
        return None

    def _gradient(self) -> Place | None:
        for moment in backward_order(self._graph) if self._graph else ():
            call = None if moment.side == "param" else moment.call
            at = self._at(moment.module, call, moment.side, kinds=("grad", "grad_norm"))
            if at is not None:
                return Place("gradient", at)
        return None

    def _other(self) -> Place:
        """Without a graph, or of series that belong to no call: the first of the earliest kind."""
        found = np.flatnonzero(self._differ).tolist()
        kinds: tuple[tuple[DivergenceKind, frozenset[str]], ...] = (
            ("computation", frozenset({"value"})),
            ("gradient", frozenset({"grad", "grad_norm"})),
        )
        for kind, names in kinds:
            at = next((at for at in found if self._series[at].kind in names), None)
            if at is not None:
                return Place(kind, at)
        return Place("update", self._first_module(found))


_ROLES: Mapping[str, tuple[Role, ...]] = MappingProxyType({"input": ("input",), "output": ("attached", "output")})
"""What is known of a call when it begins and when it ends."""

_WORDS = MappingProxyType(
    {
        "data": "what the model is given differs",
        "parameter": "the parameter differs before the step, so the update before it or other code changed it",
        "computation": "its inputs and parameters agree, what it computes differs",
        "gradient": "the forward pass agrees, a gradient differs",
        "update": "the gradients agree, the update differs",
    }
)


_FROM_THE_FIRST = "the parameter differs before the step, so it began different or was changed before"
"""Said of a parameter that differs at the first step that both logged."""


def sentence(found: Place, series: Series, *, step: int, last_equal: int | None, is_rounding: bool) -> str:
    """A divergence in words."""
    when = (
        f"The runs differ at step {step}, the first step that both logged"
        if last_equal is None
        else f"The runs agree up to step {last_equal} and differ at step {step}"
        + ("" if step == last_equal + 1 else ", the next step that both logged")
    )
    module = series.module if found.module is None else found.module
    path = series.path if found.module is None else f"before {series.module}"
    name = f"{f'module {module}' if module else 'the model'}, {path}"
    size = ", by no more than rounding" if is_rounding else ""
    words = _FROM_THE_FIRST if found.kind == "parameter" and last_equal is None else _WORDS[found.kind]
    return f"{when}. The first difference is {'most likely ' if found.is_guess else ''}in {name}: {words}{size}."
