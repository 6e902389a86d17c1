"""A session: one model, its inputs and a target, and everything that can be asked about the flow of gradient."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from torchgraph_explorer.capture.modules_by_name import modules_by_name
from torchgraph_explorer.capture.random_state import random_state
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.exploring import products
from torchgraph_explorer.exploring.case import Case
from torchgraph_explorer.exploring.edits import Edits
from torchgraph_explorer.exploring.grouping import Grouping
from torchgraph_explorer.exploring.inputs import Inputs
from torchgraph_explorer.exploring.model_state import state_of
from torchgraph_explorer.exploring.names import find
from torchgraph_explorer.exploring.products import Progress
from torchgraph_explorer.exploring.recording import Pass, RecordedTensor, Visit, record
from torchgraph_explorer.exploring.restoring import Copies, mode_of_thread, restoring
from torchgraph_explorer.server.notebook import framed

Target: TypeAlias = "Callable[[Any], Tensor]"
"""A scalar of the model's output."""

Index: TypeAlias = Any
"""An index as in `tensor[index]`; a list of tuples stands for the sum of several elements."""

MOST_ELEMENTS = 2**26
"""The most elements of a matrix."""

WHEN = ("now", "before", "difference")


class ServedPage(Protocol):
    """A page that shows a session."""

    url: str

    def close(self) -> None:
        """Serve it no more."""


@dataclass(slots=True)
class _Run:
    """A pass, the gradients that were computed of it, by target, and what checks columns.

    Attributes:
        state: That of the model. If it has another one now, the pass is out of date.
    """

    made: Pass
    inputs: Mapping[str, Tensor]
    state: object
    gradients: dict[Target, dict[object, Tensor | None]] = field(default_factory=dict)
    checks: dict[object, Tensor] = field(default_factory=dict)


class Session:
    """How gradient flows in one forward pass of a model, for inputs that can be edited. Made by `explore`.

    Tensors are named as elsewhere in the package: `layer1` is what the module `layer1` returns, `layer1:input` what it
    is given, `layer1#2` what its third call returns, `input[0]` the model's first argument, and `attention` a tensor
    that was attached by this name. Everything that is returned is detached from the model.

    Attributes:
        computed: The matrices that were computed, by the names of both tensors.
        page: The page that shows it; None without.

    After each method the model is as it was: modes, hooks, `.grad`, buffers, and random numbers; also if it raised.
    """

    def __init__(self, model: nn.Module, inputs: Any, *, loss: Target | None = None) -> None:
        """Explore `model` for `inputs`. Nothing is computed yet.

        Args:
            model: Any module that is not divided among ranks.
            inputs: A tensor, a tuple of positional arguments, or a dict of keyword arguments.
            loss: The scalar whose gradient flows, as a function of what the model returns. None: what the model
                returns, if that is a scalar, or its attribute `loss`.

        Raises:
            OptionError: The model cannot be explored, or the inputs hold no tensor.
        """
        self.model = unwrapped(model)
        require_whole(self.model)
        self._inputs = Inputs(inputs)
        self._edits = Edits(self._inputs.tensors)
        self._target: Target = loss or scalar_output
        self._runs: dict[str, _Run] = {}
        self._lock = threading.RLock()
        self._mode, self._seed = mode_of_thread(), random_state()
        self.computed: dict[tuple[str, str], Tensor] = {}
        self.page: ServedPage | None = None

    def close(self) -> None:
        """Serve no page any more, and free the graph."""
        page, self.page = self.page, None
        if page is not None:
            page.close()
        with self._lock:
            self._runs.clear()
            self.computed.clear()

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the page."""
        if self.page is None:
            return None
        return framed(f'src="{self.page.url}"', height=720)

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of all tensors, in the order of execution. A tensor has one name here, and may have others."""
        return tuple(one.name for one in self.distinct)

    @property
    def distinct(self) -> tuple[RecordedTensor, ...]:
        """Every tensor once: by the name under which it was first seen."""
        with self._lock:
            first: dict[object, RecordedTensor] = {}
            for one in self._run("now").made.tensors:
                first.setdefault(one.key, one)
            return tuple(first.values())

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs, which can be edited."""
        return tuple(self._edits.original)

    @property
    def edits(self) -> Edits:
        """What was edited."""
        return self._edits

    def find(self, name: str) -> RecordedTensor:
        """The tensor called `name`, of the present pass.

        Raises:
            NotFoundError: There is none.
            OptionError: There are several.
        """
        with self._lock:
            return find(name, self._run("now").made.tensors)

    def aim(self, target: Target | None) -> None:
        """Follow the gradient of `target`, a scalar as a function of what the model returns; None: of the output."""
        with self._lock:
            self._target = target or scalar_output
            self.computed.clear()

    def value(self, name: str, *, when: str = "now") -> Tensor:
        """The values of a tensor: `now`, `before` the edits, or their `difference`."""
        return self._compared(when, lambda run: find(name, run.made.tensors).value)

    def gradient(self, name: str, *, when: str = "now") -> Tensor:
        """The gradient of the target with respect to a tensor, of all its uses; zeros if it does not reach the target.

        Raises:
            OptionError: No gradient can reach the tensor, or the target is no scalar.
        """
        return self._compared(when, lambda run: self._gradient(run, find(name, run.made.tensors)))

    def contributions(self, a: str, b: str, *, to: Index = None, from_: Index = None) -> Tensor:
        """What elements of `b` send back to elements of `a`: (∂b_j/∂a_i) · ∂target/∂b_j.

        Args:
            a: The name of a tensor.
            b: The name of a tensor that comes after it.
            to: Elements of `b`. The result is shaped like `a`: what each of its elements gets from them.
            from_: Elements of `a`. The result is shaped like `b`: what each of its elements sends to them.

        Returns:
            With both, one number; with neither, what each element of `a` gets from all of `b`.

        Raises:
            OptionError: `b` does not come after `a`, there is no such element, or no gradient can reach one of both.
        """
        with self._lock:
            run = self._run("now")
            source, target = self._ordered(a, b)
            if from_ is not None and to is None:
                return self._column(run, source, from_, [target])[0]
            vector = selected(self._gradient(run, target), to)
            with self._restored(run.made.copies):
                (found,) = products.pull(target, vector, [source])
        return found if from_ is None else selected(found, from_).sum()

    def received(self, b: str, index: Index, sources: Sequence[str]) -> list[Tensor]:
        """`contributions(a, b, to=index)` for each of `sources`, in one backward pass."""
        with self._lock:
            run = self._run("now")
            pairs = [self._ordered(a, b) for a in sources]
            if not pairs:
                return []
            target = pairs[0][1]
            vector = selected(self._gradient(run, target), index)
            with self._restored(run.made.copies):
                return products.pull(target, vector, [source for source, _ in pairs])

    def sent(self, a: str, index: Index, targets: Sequence[str]) -> list[Tensor]:
        """`contributions(a, b, from_=index)` for each of `targets`, in one further pass where that is possible."""
        with self._lock:
            pairs = [self._ordered(a, b) for b in targets]
            return self._column(self._run("now"), pairs[0][0], index, [b for _, b in pairs]) if pairs else []

    def past(self, a: str, b: str) -> Tensor:
        """The part of the gradient of `a` that does not come through `b`, as along a skip connection."""
        with self._lock:
            return self.gradient(a) - self.contributions(a, b)

    def matrix(self, a: str, b: str, *, progress: Progress | None = None) -> Tensor:
        """All contributions between `a` and `b`, of shape `[*a.shape, *b.shape]`.

        Args:
            a: The name of a tensor.
            b: The name of a tensor that comes after it. The time is that of a backward pass for each of its elements.
            progress: Called again and again with how many of these are done, and how many there are. If it raises, the
                computation ends.

        Raises:
            OptionError: As `contributions`, or the matrix would have more than 2²⁶ elements.
        """
        with self._lock:
            run = self._run("now")
            source, target = self._ordered(a, b)
            size = source.value.numel() * target.value.numel()
            if size > MOST_ELEMENTS:
                raise OptionError(
                    f"The matrix from {a!r} to {b!r} has {size:,} elements; at most {MOST_ELEMENTS:,} are computed. "
                    f"Ask for rows and columns with contributions(), or group elements with groups()."
                )
            gradient = self._gradient(run, target)
            with self._restored(run.made.copies):
                rows = products.pull_each(
                    target,
                    source,
                    vectors=lambda first, stop: products.singles(gradient, first, stop),
                    count=target.value.numel(),
                    progress=progress,
                )
            found = rows.movedim(0, -1).reshape(*source.value.shape, *target.value.shape)
            self.computed[source.name, target.name] = found
            return found

    def groups(
        self, a: str, b: str, *, by: tuple[Grouping, Grouping], progress: Progress | None = None
    ) -> tuple[Tensor, Tensor]:
        """Contributions between groups of elements: `[groups of a, groups of b]`; and what each of `a` gets past `b`.

        The time is that of a backward pass for each group of `b`.
        """
        with self._lock:
            run = self._run("now")
            source, target = self._ordered(a, b)
            gradient, total = self._gradient(run, target), self._gradient(run, source)
            with self._restored(run.made.copies):
                rows = products.pull_each(
                    target,
                    source,
                    vectors=lambda first, stop: by[1].parts(gradient, first, stop),
                    count=by[1].count,
                    keep=by[0].sums,
                    progress=progress,
                )
        return rows.T, by[0].sums(total[None])[0] - rows.sum(0)

    def edit(self, name: str, index: Index, value: Any) -> None:
        """Set `tensor[index]` of an input to `value`. What is asked next is computed with it.

        Raises:
            OptionError: There is no such input or element, or it cannot have that value.
        """
        with self._lock:
            self._edits.set(self._input_name(name), index, value)

    def undo(self) -> bool:
        """Take back the latest edit; False if there is none."""
        with self._lock:
            return self._edits.undo()

    def redo(self) -> bool:
        """Do again what was undone last; False if there is nothing."""
        with self._lock:
            return self._edits.redo()

    def reset(self) -> None:
        """Go back to the inputs as they were given. This can be undone, too."""
        with self._lock:
            self._edits.reset()

    def run(self) -> Any:
        """Run the model with the inputs as they are now, and return what it returns, detached."""
        with self._lock:
            self._runs.clear()
            return detached(self._run("now").made.output)

    def target_values(self) -> tuple[float, float]:
        """The target now and before the edits."""
        with self._lock:
            found = []
            for run in (self._run("now"), self._run("before")):
                with self._restored(run.made.copies):
                    scalar = self._target(run.made.output)
                    require_scalar(scalar)
                    found.append(float(scalar.detach().real))
            return found[0], found[1]

    def state(self) -> object:
        """Something that differs if the inputs or the model have changed."""
        with self._lock:
            return self._edits.revision, state_of(self.model)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was computed into one `.npz` file, which can be looked at without the model.

        It holds values and gradients of all tensors, and the matrices that were computed.
        """
        with self._lock:
            self.case().save(path)

    def case(self) -> Case:
        """What was computed, without the model."""
        with self._lock:
            run = self._run("now")
            known = self.distinct
            gradients = {one.name: self._gradient(run, one) for one in known if one.edge is not None}
            return Case.of_tensors({one.name: one.value for one in known}, gradients, self.computed)

    def _compared(self, when: str, read: Callable[[_Run], Tensor]) -> Tensor:
        if when not in WHEN:
            raise OptionError(f"when={when!r} is not allowed. Choose one of {', '.join(map(repr, WHEN))}.")
        with self._lock:
            if when == "difference":
                return read(self._run("now")) - read(self._run("before"))
            return read(self._run(when))

    def _ordered(self, a: str, b: str) -> tuple[RecordedTensor, RecordedTensor]:
        source, target = self.find(a), self.find(b)
        if source.order > target.order:
            raise OptionError(f"{a!r} comes after {b!r} in the forward pass. Pass them the other way round.")
        products.edge_of(source)
        products.edge_of(target)
        return source, target

    def _input_name(self, name: str) -> str:
        return "input[0]" if name == "input" and "input[0]" in self._edits.original else name

    def _gradient(self, run: _Run, tensor: RecordedTensor) -> Tensor:
        products.edge_of(tensor)
        target = self._target
        if target not in run.gradients:
            run.gradients[target] = self._gradients(run)
        found = run.gradients[target][tensor.key]
        return torch.zeros_like(tensor.value) if found is None else found

    def _gradients(self, run: _Run) -> dict[object, Tensor | None]:
        """The gradients of all tensors, in one backward pass."""
        edges = {one.key: one.edge for one in run.made.tensors if one.edge is not None}
        with self._restored(run.made.copies):
            scalar = self._target(run.made.output)
            require_scalar(scalar)
            if not scalar.requires_grad:
                raise OptionError("The target does not depend on any tensor that a gradient can reach.")
            found = torch.autograd.grad([scalar.sum()], list(edges.values()), retain_graph=True, allow_unused=True)
        return {key: None if one is None else one.detach() for key, one in zip(edges, found, strict=True)}

    def _column(self, run: _Run, a: RecordedTensor, index: Index, targets: list[RecordedTensor]) -> list[Tensor]:  # noqa: PLR0917
        gradients = [self._gradient(run, one) for one in targets]
        vector = selected(torch.ones_like(a.value), index)
        pushed = products.push_forward(a, vector, targets, rerun=lambda visit: self._rerun(run, visit))
        with self._restored(run.made.copies):
            if pushed is None or not products.are_transposed(pushed, vector, self._random_pull(run, a, targets)):
                pushed = [products.push_backward(a, vector, one) for one in targets]
        return [one * gradient for one, gradient in zip(pushed, gradients, strict=True)]

    def _random_pull(self, run: _Run, a: RecordedTensor, targets: list[RecordedTensor]) -> Tensor:
        """What checks columns; the same for all elements of `a`."""
        key = a.key, *(one.key for one in targets)
        if key not in run.checks:
            run.checks[key] = products.random_pull(a, targets)
        return run.checks[key]

    def _run(self, which: str) -> _Run:
        """The pass with the inputs as they are `now`, or were `before` the edits; made if it is not there."""
        wanted = self._edits.now if which == "now" else self._edits.original
        state = state_of(self.model)
        for name, run in list(self._runs.items()):
            if run.state != state:
                del self._runs[name]
        for run in self._runs.values():
            if run.inputs is wanted:
                return run
        self.computed.clear()
        copies: Copies = {}
        with self._restored(copies):
            self._seed()
            args, kwargs = self._inputs.filled(wanted)
            made = record(self.model, args, kwargs, copies=copies)
        name = "before" if wanted is self._edits.original else "now"
        self._runs[name] = _Run(made, wanted, state_of(self.model))
        return self._runs[name]

    def _rerun(self, run: _Run, visit: Visit) -> None:
        copies: Copies = {}
        with self._restored(copies):
            self._seed()
            args, kwargs = self._inputs.filled(run.inputs)
            record(self.model, args, kwargs, copies=copies, visit=visit)

    @contextmanager
    def _restored(self, copies: Copies) -> Iterator[None]:
        with restoring(self.model, copies), self._mode():
            yield


def selected(tensor: Tensor, index: Index) -> Tensor:
    """`tensor` with zeros everywhere but at `index`; all of it if `index` is None.

    Raises:
        OptionError: There is no such element.
    """
    if index is None:
        return tensor
    found = torch.zeros_like(tensor)
    try:
        for one in index if isinstance(index, list) else [index]:
            found[one] = tensor[one]
    except (IndexError, TypeError, ValueError, RuntimeError) as fault:
        raise OptionError(
            f"There is no element {index!r:.80} in a tensor of shape {tuple(tensor.shape)}: {fault}"
        ) from fault
    return found


def scalar_output(output: Any) -> Tensor:
    """What the model returns, or its attribute `loss`, as the target.

    Raises:
        OptionError: Neither is a scalar.
    """
    found = output if isinstance(output, Tensor) else getattr(output, "loss", None)
    if not isinstance(found, Tensor) or found.numel() != 1:
        raise OptionError(
            "The model returns no scalar whose gradient could flow. Pass a function of what it returns: "
            "explore(model, inputs, loss=lambda output: criterion(output, y))."
        )
    return found


def require_scalar(scalar: object) -> None:
    """Raise an OptionError if a target is no scalar."""
    if not isinstance(scalar, Tensor) or scalar.numel() != 1:
        shape = tuple(scalar.shape) if isinstance(scalar, Tensor) else type(scalar).__name__
        raise OptionError(f"The target must be a tensor with one element, but it is {shape}. Sum it, or take its mean.")


def require_whole(model: nn.Module) -> None:
    """Raise an OptionError if `model` cannot be run here alone, has no values yet, or can have no gradient."""
    for name, module in modules_by_name(model).items():
        if any(each.__name__ == "FullyShardedDataParallel" for each in type(module).__mro__):
            raise OptionError(f"Module {name!r} {SHARDED}")
        if isinstance(module, torch.jit.ScriptModule):
            raise OptionError(
                f"Module {name!r} is scripted or traced: it shows nothing of what is inside, and its buffers could not "
                f"be put back. Explore the model as it was before torch.jit."
            )
    for name, parameter in model.named_parameters():
        if hasattr(parameter, "placements"):
            raise OptionError(f"Parameter {name!r} {SHARDED}")
        if nn.parameter.is_lazy(parameter):
            raise OptionError(f"Parameter {name!r} has no values yet. Call the model once before.")
        if parameter.is_inference():
            raise OptionError(
                f"Parameter {name!r} was made in inference mode, where torch lets no gradient flow. Make or load the "
                f"model outside of torch.inference_mode()."
            )


SHARDED = (
    "is divided among ranks (FSDP, tensor parallel), so that a forward pass needs all ranks at once, which an "
    "explored model does not have. Gather its state dict into an undivided model, and explore that."
)


def detached(value: Any) -> Any:
    """`value` with its tensors detached."""
    return torch.utils._pytree.tree_map_only(Tensor, lambda one: one.detach(), value)
