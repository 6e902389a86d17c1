"""Finds which parameters take part in a step: have an optimizer, have a gradient, or are written to by other code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from torch import Tensor, nn
from torch.optim import Optimizer

from torchgraph_explorer.capture.facts.names import MOST_NAMES, Named, few, named_parameters
from torchgraph_explorer.capture.facts.snapshot import version_of
from torchgraph_explorer.capture.facts.unregistered import Unregistered
from torchgraph_explorer.capture.module_info import has_values
from torchgraph_explorer.capture.modules_by_name import ModulesByName, modules_by_name, parameters_within
from torchgraph_explorer.capture.no_dispatch import ORDINARY, gradient_of
from torchgraph_explorer.capture.optimizer_steps import held_by, parameters_of


class Participation:
    """The parameters of one model in one step.

    Attributes:
        without_optimizer: See `schema.TrainingFacts`, as the other attributes.
        frozen_in_optimizer, orphans, without_gradient, remade, written: The same.
    """

    def __init__(self, parameters: Named, without: Iterable[int]) -> None:
        """The first pass begins. The parameters with an id in `without` had no optimizer in earlier steps."""
        self.without_optimizer: tuple[str, ...] | None = None
        self.frozen_in_optimizer: tuple[str, ...] | None = None
        self.orphans: tuple[tuple[int, ...], ...] = ()
        self.without_gradient: tuple[str, ...] | None = None
        self.remade: tuple[str, ...] = ()
        self.written: tuple[str, ...] = ()
        self._unregistered, self._unregistered_without = Unregistered(), set[int]()
        self._versions = {key: version_of(parameters[key][1]) for key in without if key in parameters}

    def after_backward(self, parameters: Named, gradients: Collection[int], modules: Iterable[nn.Module]) -> None:
        """A backward pass has ended, in a step in which `modules` were called. The keys `gradients` have a gradient."""
        missed = [(key, name) for key, (name, one) in parameters.items() if key not in gradients and one.requires_grad]
        modules = modules if missed else ()
        called = {id(one) for module in modules for one in module._parameters.values() if one is not None}
        self.without_gradient = few(name for key, name in missed if key in called)

    def look_for_remade(self, parameters: Named, model: nn.Module, known: Iterable[Optimizer]) -> None:
        """A backward pass has ended, in a step of `model` that began with `parameters`.

        Parameters that one of the `known` optimizers holds were not made anew: the step began with others in their
        places, as where `functional_call` computes a Hessian between two updates.
        """
        held = held_by(known)
        before = {name for name, _ in parameters.values()}
        now = named_parameters(modules_by_name(model))
        self.remade = few(
            name
            for key, (name, one) in now.items()
            if key not in parameters and key not in held and name in before and gradient_of(one) is not None
        )

    def before_update(
        self,
        parameters: Named,
        optimizer: Optimizer,
        *,
        model: nn.Module,
        unregistered_in: ModulesByName,
        without_optimizer: Callable[[set[int]], set[int]],
    ) -> None:
        """`optimizer` is about to make the first update of a step of `model`.

        Parameters that are not registered are looked for in `unregistered_in`. `without_optimizer` tells which ones, by
        `id`, no optimizer holds.
        """
        if self.without_optimizer is not None:
            return
        moved = held_by([optimizer])
        frozen, without = list[str](), set[int]()
        for key, (name, one) in parameters.items():
            if (key in moved) is one.requires_grad:
                continue
            if one.requires_grad:
                without.add(key)
            else:
                frozen.append(name)
        self.frozen_in_optimizer = few(frozen)
        if without:
            without = without_optimizer(without)
        self.without_optimizer = few(parameters[key][0] for key in parameters if key in without)
        self.orphans = _orphans(parameters, optimizer, model) if without else ()
        self._unregistered.look(unregistered_in, model)
        if ids := self._unregistered.ids:
            self._unregistered_without = without_optimizer(ids)

    def before_update_of_others(self, parameters: Named, optimizer: Optimizer, model: nn.Module) -> None:
        """`optimizer`, which has no parameter of `model`, is about to step."""
        if self.without_optimizer is None and not self.orphans:
            self.orphans = _orphans(parameters, optimizer, model)

    def conclude(self, parameters: Named) -> None:
        """The next step begins, or the training has ended."""
        without = set(self.without_optimizer or ())
        written = (key for key, version in self._versions.items() if version_of(parameters[key][1]) != version)
        self.written = few(name for key in written if (name := parameters[key][0]) in without)
        if self.without_optimizer is not None:
            unregistered = self._unregistered.unchanged(self._unregistered_without)
            self.without_optimizer = few((*self.without_optimizer, *unregistered))
        self._unregistered.forget()


def _orphans(parameters: Named, optimizer: Optimizer, model: nn.Module) -> tuple[tuple[int, ...], ...]:
    """The shapes of the parameters that `optimizer` holds and nothing uses. `parameters` may be some of the model's."""
    unknown = [one for one in parameters_of(optimizer) if id(one) not in parameters and _is_unused(one)]
    own = {id(one) for one in parameters_within(model)} if unknown else set()
    return tuple(tuple(one.shape) for one in unknown if id(one) not in own)[:MOST_NAMES]


def _is_unused(parameter: Tensor) -> bool:
    """Whether a parameter has values and requires a gradient, but has none."""
    if type(parameter) not in ORDINARY and not (isinstance(parameter, nn.Parameter) and has_values(parameter)):
        return False
    return parameter.requires_grad and gradient_of(parameter) is None
