"""Finds out what only the live training knows of one logged step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn
from torch.optim import Optimizer

from torchgraph_explorer.capture.facts.answers import Answers
from torchgraph_explorer.capture.facts.cleared import ClearedGradients
from torchgraph_explorer.capture.facts.clipping import Norms
from torchgraph_explorer.capture.facts.directions import Directions
from torchgraph_explorer.capture.facts.late import LateChanges
from torchgraph_explorer.capture.facts.leftover import LeftoverGradients
from torchgraph_explorer.capture.facts.names import few, gradients_of, named_parameters
from torchgraph_explorer.capture.facts.operations import Operations, operations
from torchgraph_explorer.capture.facts.participation import Participation
from torchgraph_explorer.capture.facts.pending import PendingFacts, Row
from torchgraph_explorer.capture.facts.standardised import Standardised
from torchgraph_explorer.capture.facts.units import STEPS_COMPARED, UnitRows, UnitWindows, WeightRows
from torchgraph_explorer.capture.gradient_hooks import Measure, current_backward
from torchgraph_explorer.capture.modules_by_name import ModulesByName
from torchgraph_explorer.capture.no_dispatch import NoDispatch, plain
from torchgraph_explorer.capture.optimizer_steps import ModelOptimizers, held_by
from torchgraph_explorer.capture.tensor_infos import Described
from torchgraph_explorer.schema import Call, ParameterGroup, TrainingFacts

MOST_GROUPS = 64
"""Most parameter groups that are recorded. A loop with an optimizer for each parameter may have more."""

FIRST_DETAILED, EVERY_DETAILED = 16, 4
"""What takes long is measured in so many first logged steps, and in every so many later ones."""

_NamelessGroup: TypeAlias = "Callable[..., ParameterGroup]"
"""Makes a group of parameters, given `optimizer`: the name of an optimizer is known after its update."""

_NO_MODEL = nn.Module()

_DECOUPLED = frozenset({"AdamW", "Lion", "Muon", "Adafactor"})
"""Classes of optimizers that apply weight decay to the weights, although their groups do not say so."""


class StepFactsRecorder:
    """What is found out about one step. No method raises: after a fault there are no facts.

    Attributes:
        fault: What went wrong; None so far.
    """

    def __init__(
        self,
        model: nn.Module,
        modules: ModulesByName,
        *,
        optimizers: ModelOptimizers,
        measure: Measure,
        windows: UnitWindows,
        number: int,
        lock: threading.RLock,
    ) -> None:
        """The first pass of a step through `model` begins.

        Args:
            model: The watched model.
            modules: Its modules that are recorded, by name.
            optimizers: The optimizers that hold its parameters.
            measure: Measures tensors of the step.
            windows: Remember units from step to step.
            number: How many logged steps were before this one.
            lock: Held while a gradient is read.
        """
        self._operations, self._cleared = Operations(measure), ClearedGradients()
        self._lock = lock
        self._answers: Answers | None = None
        self._directions: Directions | None = None
        self._standardised: Standardised | None = None
        self.fault: Exception | None = None
        self._model, self._modules, self._optimizers, self._measure = model, modules, optimizers, measure
        self._is_training = True
        self._other_mode: tuple[str, ...] = ()
        self._batch_size: int | None = None
        self._groups: dict[int, list[_NamelessGroup]] = {}
        self._moved: list[ParameterGroup] = []
        self._scale: Row | None = None
        self._scaler: Any = None
        self._is_scaled = self._is_stepped = False
        self._windows, self._number = windows, number
        self._units: UnitRows | None = None
        self._weights: WeightRows | None = None
        self._is_ahead = False
        self._is_detailed = number < FIRST_DETAILED or number % EVERY_DETAILED == 0
        self._do(self._begin)

    def _do(self, act: Callable[[], object]) -> None:
        with NoDispatch():
            self._try(act)

    def _try(self, act: Callable[..., object], *arguments: object) -> None:
        if self.fault is None:
            try:
                act(*arguments)
            except Exception as fault:  # a fault of ours in the middle of the training
                self.fault = fault

    def _note_fault(self, fault: Exception) -> None:
        """A hook of ours has failed."""
        self.fault = self.fault or fault

    def _begin(self) -> None:
        self._parameters = named_parameters(self._modules)
        self._participation = Participation(self._parameters, self._optimizers.without)
        self._leftover, self._norms = LeftoverGradients(self._measure), Norms(self._measure)
        self._late = LateChanges(self._measure)
        mode = self._model.training
        others = few(name for name, module in self._modules.items() if module.training != mode)
        self._is_training, self._other_mode = mode, others
        if self._is_detailed:
            classes = {name: type(module).__name__ for name, module in self._modules.items()}
            self._units = UnitRows(self._measure, self._windows, classes)
            self._answers = Answers(self._measure, self._modules, self._lock, is_early=self._number < STEPS_COMPARED)
            parts = {name for name in self._modules if name and "." not in name}
            self._directions = Directions(
                self._measure, self._lock, parts if self._windows.returns_numbers is not False else set()
            )
        if self._number < STEPS_COMPARED:
            self._weights = WeightRows(self._measure, self._parameters)
            self._standardised = Standardised(self._measure, self._modules, self._windows)

    @property
    def looked_at(self) -> tuple[set[str], set[str]]:
        """The modules for which `begin_call` and `end_call` still do something: ever fewer in a step."""
        if self._units is None:
            return set(), set()
        first, last = self._units.looked_at
        first.add("")
        parts = self._directions.parts if self._directions is not None else set()
        if self._standardised is None and not parts:
            return first, last
        inputs, outputs = (set(), set()) if self._standardised is None else self._standardised.looked_at
        return first | inputs, last | outputs | parts

    def begin_call(self, name: str, call: int, inputs: Described) -> None:
        """Module `name` is called, for the time `call` in the step."""
        if name == "" and self._answers is not None:
            self._try(self._answers.begin, inputs)
        if (one := self._standardised) is not None and name in one.looked_at[0]:
            self._try(one.look, name, "input", inputs)
        if (units := self._units) is not None and name in units.looked_at[0]:
            self._try(units.begin, name, call, [plain(tensor) for _, tensor in inputs])

    def end_call(self, name: str, call: int, outputs: Described) -> None:
        """Module `name` has returned `outputs` from its call number `call` in the step."""
        if name == "" and self._answers is not None:
            self._try(self._answers.end, outputs, self._note_fault)
        if name == "" and self._directions is not None:
            self._try(self._directions.end, outputs, self._note_fault)
        elif self._directions is not None and name in self._directions.parts:
            self._try(self._directions.end_part, name, outputs, self._note_fault)
        if (one := self._standardised) is not None and name in one.looked_at[1]:
            self._try(one.look, name, "output", outputs)
        if (units := self._units) is not None and name in units.looked_at[1]:
            self._try(units.end, name, call, [plain(tensor) for _, tensor in outputs])

    def look_at_operation(
        self, operation: Any, given: Sequence[Any], named: dict[str, Any], *, result: Any, call: int | None
    ) -> None:
        """Look at an operation of a traced step, see `Operations.note`."""
        self._try(partial(self._operations.note, operation, given, named, result=result, call=call))

    def begin_backward(self, *, is_missed: bool) -> None:
        """A backward pass begins. If `is_missed`, there may have been others that were not seen."""
        self._is_ahead = self._is_ahead or is_missed
        if self._is_ahead:
            self._cleared.forget()
        else:
            self._do(self._begin_backward)

    def _begin_backward(self) -> None:
        self._cleared.begin_backward(self._parameters)
        self._leftover.begin_backward(self._parameters, self._optimizers.known, self._optimizers.witnesses)
        self._late.look(self._optimizers.held_gradient, self._parameters)

    def after_backward(self, calls: Sequence[Call]) -> None:
        """A backward pass has ended, in a step with these calls so far."""
        self._do(lambda: self._after_backward(calls))

    def _after_backward(self, calls: Sequence[Call]) -> None:
        gradients = gradients_of(self._parameters)
        self._cleared.after_backward(self._parameters, gradients, calls)
        called = {call.module for call in calls}
        self._participation.after_backward(
            self._parameters, gradients, (module for name, module in self._modules.items() if name in called)
        )
        if self._number < STEPS_COMPARED:
            self._participation.look_for_remade(self._parameters, self._model, self._optimizers.known)
            self._operations.made.after_backward(self._model)
        if self._is_detailed:
            self._norms.after_backward(self._parameters)
        self._note_scalers(self._optimizers.scalers)

    def _note_scalers(self, scalers: Sequence[Any]) -> None:
        """The gradients of the step are scaled by these scalers. The scale is known only if there is exactly one."""
        self._is_scaled = bool(scalers)
        one = scalers[0] if len(scalers) == 1 else None
        if one is not self._scaler:
            scale = getattr(one, "_scale", None)
            self._scale = Row(self._measure.values_again(scale)) if isinstance(scale, Tensor) else None
            self._scaler = one

    def before_update(self, optimizer: Optimizer, *, is_missed: bool) -> None:
        """`optimizer` is about to move its parameters. If `is_missed`, not all passes were recorded."""
        self._do(lambda: self._before_update(optimizer, is_missed=is_missed))

    def _before_update(self, optimizer: Optimizer, *, is_missed: bool) -> None:
        if sum(map(len, self._groups.values())) < MOST_GROUPS:
            self._groups[id(optimizer)] = self._groups_of(optimizer)
        self._cleared.before_update(self._parameters)
        self._leftover.before_update(self._parameters, optimizer)
        self._note_scaler_of(optimizer)
        self._look_at_update(optimizer, is_missed=is_missed)

    def _note_scaler_of(self, optimizer: Optimizer) -> None:
        """Note the scaler of an optimizer, which is known only when that steps. Each optimizer may have its own."""
        scaler = self._optimizers.scaler_of(optimizer)
        if not self._is_stepped:
            self._note_scalers([] if scaler is None else [scaler])
        elif scaler is not self._scaler:
            self._scale, self._scaler, self._is_scaled = None, None, True
        self._is_stepped = True

    def after_closure(self, optimizer: Optimizer, *, is_missed: bool) -> None:
        """`optimizer` has called the model itself: only now all of its gradients are known."""
        self._do(lambda: self._after_closure(optimizer, is_missed=is_missed))

    def _after_closure(self, optimizer: Optimizer, *, is_missed: bool) -> None:
        self._cleared.forget()
        if is_missed:
            self._norms.forget()
        self._look_at_update(optimizer, is_missed=is_missed)

    def _look_at_update(self, optimizer: Optimizer, *, is_missed: bool) -> None:
        model = self._model

        def without_optimizer(these: set[int]) -> set[int]:
            return self._optimizers.without_optimizer(these, model)

        self._participation.before_update(
            self._parameters,
            optimizer,
            model=model,
            unregistered_in=self._modules if self._number < STEPS_COMPARED else {},
            without_optimizer=without_optimizer,
        )
        self._operations.made.before_update(without_optimizer, model)
        if is_missed or current_backward() != -1 or getattr(optimizer, "grad_scale", None) is not None:
            return  # the norm after the last backward pass is not known, or the loss scale is still in the gradients
        self._norms.before_update(self._parameters, held_by([optimizer]))

    def before_update_of_others(self, optimizer: Optimizer) -> None:
        """`optimizer`, which has no parameter of the model, is about to step."""
        self._cleared.forget()
        self._do(lambda: self._participation.before_update_of_others(self._parameters, optimizer, self._model))

    def _groups_of(self, optimizer: Optimizer) -> list[_NamelessGroup]:
        is_decoupled = type(optimizer).__name__ in _DECOUPLED
        return [self._group(one, is_decoupled=is_decoupled) for one in optimizer.param_groups[:MOST_GROUPS]]

    def _group(self, group: Mapping[str, Any], *, is_decoupled: bool) -> _NamelessGroup:
        names = (self._parameters[id(one)][0] for one in group["params"] if id(one) in self._parameters)
        return partial(
            ParameterGroup,
            learning_rate=_on_host(group.get("lr")),
            weight_decay=_on_host(group.get("weight_decay")),
            is_decoupled=is_decoupled or bool(group.get("decoupled_weight_decay")),
            parameters=few(names),
            betas=_betas(group.get("betas")),
            is_maximising=group.get("maximize") is True,
        )

    def after_update(self, optimizers: Iterable[Optimizer], names: Iterable[str]) -> None:
        """Optimizers of these names have moved the model's parameters."""
        self._do(lambda: self._after_update(zip(optimizers, names, strict=True)))

    def _after_update(self, named: Iterable[tuple[Optimizer, str]]) -> None:
        for optimizer, name in named:
            self._leftover.after_update(self._parameters, optimizer)
            self._optimizers.held_gradient.hold(optimizer)
            groups = self._groups.pop(id(optimizer), None)
            if groups is None and sum(map(len, self._groups.values())) < MOST_GROUPS:
                groups = self._groups_of(optimizer)  # its step began before that of the model: it calls a closure
            self._moved += [group(optimizer=name) for group in groups or ()]

    def conclude(self, calls: Sequence[Call]) -> PendingFacts | None:
        """The step is over, and had these calls. Returns what was found out; None after a fault. Releases the model."""
        self._do(lambda: self._conclude(calls))
        self._model, self._modules, self._parameters = _NO_MODEL, {}, {}
        return self._pending() if self.fault is None else None

    def _conclude(self, calls: Sequence[Call]) -> None:
        self._participation.conclude(self._parameters)
        self._leftover.forget()
        if self._answers is not None:
            self._answers.close()
        if self._directions is not None:
            self._directions.close()
            self._windows.returns_numbers = bool(self._directions.is_of_numbers)
        if self._standardised is not None:
            self._standardised.forget()
        self._seen = self._operations.found(calls)
        self._operations.made.forget()
        shapes = (one.shape for call in calls if call.parent is None for one in call.inputs)
        self._batch_size = next((shape[0] for shape in shapes if shape), None)

    def _pending(self) -> PendingFacts:
        participation, leftover, norms, late = self._participation, self._leftover, self._norms, self._late
        scale, units, weights = self._scale, self._units, self._weights
        answers, seen, cleared = self._answers, self._seen, self._cleared.found()
        directions, standardised = self._directions, self._standardised
        mode, others, batch, groups = self._is_training, self._other_mode, self._batch_size, tuple(self._moved)
        is_scaled, skipped = self._is_scaled, self._optimizers.skipped_updates
        is_known = scale is not None or not is_scaled

        def resolve(statistics: npt.NDArray[np.float32]) -> TrainingFacts:
            factor = scale(statistics, "mean") if scale is not None else None
            before = norms.before(statistics, "l2_norm") / (factor or 1.0) if norms.before and is_known else None
            return TrainingFacts(
                is_training=mode,
                other_mode=others,
                groups=groups,
                batch_size=batch,
                skipped=skipped,
                leftover=leftover.names(statistics),
                without_optimizer=participation.without_optimizer,
                frozen_in_optimizer=participation.frozen_in_optimizer,
                orphans=participation.orphans,
                without_gradient=participation.without_gradient,
                remade=participation.remade,
                written=participation.written,
                gradient_norm=before,
                clipped_norm=norms.clipped(statistics, "l2_norm") if norms.clipped and is_known else None,
                loss_scale=factor,
                units=units.units(statistics) if units is not None else (),
                equal_rows=weights.equal(statistics) if weights is not None else (),
                operations=(
                    *operations(seen, statistics),
                    *cleared,
                    *late.found(statistics),
                    *(answers.operations(statistics) if answers is not None and not is_scaled else ()),
                    *(directions.operations(statistics) if directions is not None else ()),
                    *(standardised.operations(statistics) if standardised is not None else ()),
                ),
                tokens=answers.tokens(statistics) if answers is not None else (),
                numbers=answers.numbers(statistics) if answers is not None else None,
                targets=answers.targets(statistics) if answers is not None and not is_scaled else None,
            )

        return resolve


def _betas(betas: Any) -> tuple[float, float] | None:
    """The two betas of an optimizer such as Adam; None if they are not two numbers in host memory."""
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        return None
    first, second = map(_on_host, betas)
    return None if first is None or second is None else (first, second)


def _on_host(value: object) -> float | None:
    """A value as a number; None if it is none, or if reading it would wait for a device."""
    if isinstance(value, Tensor):
        return float(value) if value.is_cpu and value.numel() == 1 else None
    return float(value) if isinstance(value, (int, float)) else None
