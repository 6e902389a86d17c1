"""One logged step of a model, from its forward pass to the end of its backward pass."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from torchgraph_explorer.capture.aside import Aside, is_readable, plain
from torchgraph_explorer.capture.callers import is_running, users_frame
from torchgraph_explorer.capture.facts import has_values
from torchgraph_explorer.capture.gradients import Measure, SeriesKey, Taps
from torchgraph_explorer.capture.hooks import Hook
from torchgraph_explorer.capture.leaves import input_tensors, tensor_info, tensors
from torchgraph_explorer.capture.modes import Modes
from torchgraph_explorer.capture.paths import Edge, Walk, edge_of, sequence_number
from torchgraph_explorer.capture.trace import Trace
from torchgraph_explorer.records import Call, TensorInfo

Named: TypeAlias = "list[tuple[TensorInfo, Tensor]]"

PATIENCE = 0.5
PATIENCE_FOR_MORE = 5.0
"""Seconds after which a step is handed over although the next one has not begun: the training may have ended."""

MOST_FORWARDS = 64
"""Forward passes that one backward pass may wait for; those beyond are not looked into."""


@dataclass(slots=True)
class _Open:
    """A call that is being executed.

    Attributes:
        index: Its number among the round's calls.
        edges: Where the gradients of its inputs are delivered, as they came in.
        walk: Its part of the autograd graph.
        attached: How often each name was attached in it.
    """

    index: int
    name: str
    call: int
    edges: dict[Edge, list[str]]
    walk: Walk
    attached: dict[str, int] = field(default_factory=dict)


class Round:
    """What one step's calls did. Hooks the model's submodules when made; `finish` takes everything off again.

    Attributes:
        model: The watched model, until `close`.
        thread: The thread that the step belongs to.
        step: Training forward passes of the model before this one.
        calls: So far, a parent before its children.
        attached: Tensors that were given a name, by call and path.
        rows: The row of each series.
        trace: Follows the data, in a step whose graph is wanted; else None.
        backward_ended: A backward pass through the model has ended.
    """

    def __init__(
        self,
        model: nn.Module,
        step: int,
        *,
        called: nn.Module,
        kinds: frozenset[str],
        measure: Measure,
        trace: Trace | None,
        fail: Callable[[str, Exception], None],
        overfull: Callable[[], None],
        lock: threading.RLock,
        awaits_update: bool = False,
        skip: frozenset[str] = frozenset(),
    ) -> None:
        """Arm `model`.

        Args:
            model: The watched model.
            called: What the training loop calls: the model, or what it is wrapped in.
            step: Number of the step.
            kinds: Of `io`, `io_grad`, `params`, `params_grad`.
            measure: Turns tensors into rows.
            trace: To be entered while the model's forward pass runs, or None.
            fail: Told of a module's name and what went wrong in capturing it.
            overfull: Told when more forward passes come than one step may have.
            lock: Held while gradients are read and while the step is handed over.
            awaits_update: An optimizer's step is to follow.
            skip: Modules not to look at, since they failed before.
        """
        self.step = step
        self.calls: list[Call] = []
        self.attached: dict[tuple[int, str], TensorInfo] = {}
        self.rows: dict[SeriesKey, int] = {}
        self.trace = trace
        self.backward_ended = False
        self.kinds = kinds
        self.model, self._measure, self._fail = model, measure, fail
        self._overfull = overfull
        self._lost: set[str] = set()
        self._awaits_update = awaits_update
        self._before: dict[nn.Parameter, Tensor] = {}
        self.thread = threading.get_ident()
        self._stack: list[_Open] = []
        self._counts: dict[str, int] = {}
        self._alive: list[weakref.ref[Hook]] = []
        self._forwards = 0
        self._dead_ends = 0
        self._tasks: set[int] = set()
        self._taps = Taps(measure, self._observe, self._begin_backward, self._lose, lock)
        self._resting_since = time.monotonic()
        self._raising: BaseException | None = None
        self._frame: Any = None
        self._modes = Modes(trace)
        self._names = {module: name for name, module in model.named_modules() if name not in skip}
        self._handles: list[Any] = []
        try:
            for module, name in self._names.items():
                self._handles += self._arm(called if module is model else module, name, is_model=module is model)
            if "params" in kinds:
                with Aside():
                    self._measure_parameters()
        except BaseException:  # nobody will hold this round, so nobody else could take the hooks off
            self._disarm()
            raise

    @property
    def forward_open(self) -> bool:
        """The model is being executed: its call began and has neither returned nor been abandoned."""
        return bool(self._stack) and is_running(self._frame, self.thread)

    @property
    def waits(self) -> bool:
        """A backward pass may still come through each of its forward passes."""
        alive = all(hook() is not None for hook in self._alive)
        abandoned = bool(self._stack) or bool(self._dead_ends)
        return not self.backward_ended and alive and not abandoned and self._forwards > 0

    def rests(self) -> bool:
        """Nothing has happened for a while, and what there is to see is there."""
        patience = PATIENCE_FOR_MORE if self.waits or self._awaits_update else PATIENCE
        return not self._stack and time.monotonic() - self._resting_since > patience

    def close(self) -> None:
        """Take in nothing more and let go of the model. For any thread that holds the lock."""
        self._taps.closed = True
        self._names.clear()
        self._before.clear()
        del self.model

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The model is called: a forward pass begins, or goes on where the model calls itself."""
        if not self._stack:
            if self._forwards >= MOST_FORWARDS:
                self._disarm()
                self._overfull()
                return
            self._forwards += 1
            self._raising = sys.exc_info()[1]
            self._frame = users_frame()
            self._modes.enter()
        self._enter(self.model, self._names.get(self.model, ""), args, kwargs)

    def attach(self, tensor: object, module: nn.Module, name: str) -> None:
        """Tensors in `tensor` get `name` within the open call of `module`; nothing happens when none is open."""
        try:
            self._attach(tensor, module, name)
        except Exception as fault:  # ours, in the middle of the user's forward pass
            self._lose(self._names.get(module, ""), fault)

    def _attach(self, tensor: object, module: nn.Module, name: str) -> None:
        own = self._names.get(module)
        inside = next((each for each in reversed(self._stack) if each.name == own), None)
        if inside is None or threading.get_ident() != self.thread:
            return
        inside.attached[name] = times = inside.attached.get(name, 0) + 1
        with Aside():
            found = _named(tensors(tensor, name if times == 1 else f"{name} #{times}"))
            self.attached.update({(inside.index, info.path): info for info, _ in found})
            self._observe_values(inside, "attached", found)
            self._tap_tensors(inside, "attached", found)
            if self._tracing is not None:
                self._tracing.attach(inside.index, found)

    def finish(self) -> None:
        """Take every hook off. Each part is done, also if another fails."""
        with ExitStack() as parts:
            parts.callback(self._disarm)
            parts.callback(self._taps.remove)
            parts.callback(self._modes.leave)
            self._stack.clear()
            self._frame = None

    def _arm(self, module: nn.Module, name: str, *, is_model: bool) -> Iterable[Any]:
        def fail(fault: Exception) -> None:
            self._lose(name, fault)

        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if self._is_ours(name):
                self._enter(module, name, args, kwargs)

        def leave(module: nn.Module, _args: object, _kwargs: object, output: object) -> None:
            if self._is_ours(name):
                self._leave(name, output)

        if not is_model:  # whose pre-hook is the permanent one, which calls `begin`
            yield module.register_forward_pre_hook(Hook(enter, fail), with_kwargs=True)
        yield module.register_forward_hook(Hook(leave, fail), with_kwargs=True, always_call=True)

    def _is_ours(self, name: str) -> bool:
        """This call belongs to the forward pass: no other thread's, and no recomputation within a backward pass."""
        in_backward = torch._C._current_graph_task_id() != -1
        ours = threading.get_ident() == self.thread and not in_backward
        return ours and bool(self._stack) and name not in self._lost

    def _lose(self, name: str, fault: Exception) -> None:
        """Capturing `name` failed: look at it no more, and do not draw a graph that lacks something."""
        self._lost.add(name)
        if self.trace is not None and self.trace.fault is None:
            self.trace.fault = fault
        self._fail(name, fault)

    @property
    def _tracing(self) -> Trace | None:
        return self.trace if self.trace is not None and self.trace.fault is None else None

    def _enter(self, _module: nn.Module, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        number = self._counts[name] = self._counts.get(name, -1) + 1
        with Aside():
            inputs = _named(input_tensors(args, kwargs))
            parent = self._stack[-1].index if self._stack else None
            index = len(self.calls)
            opened = _Open(index, name, number, self._input_edges(inputs), Walk(sequence_number()))
            self.calls.append(Call(name, number, parent, _infos(inputs), ()))
            self._stack.append(opened)
            self._observe_values(opened, "input", inputs)
            if self._tracing is not None:
                self._tracing.enter(index, inputs)

    def _leave(self, name: str, output: object) -> None:
        opened = self._pop(name)
        with Aside():
            outputs = _named(tensors(output, "output"))
            self.calls[opened.index] = replace(self.calls[opened.index], outputs=_infos(outputs))
            self._observe_values(opened, "output", outputs)
            hooks = self._tap_tensors(opened, "output", outputs)
            if "io_grad" in self.kinds:
                self._tap_inputs(opened, outputs)
            if self._tracing is not None:
                self._tracing.leave(opened.index, outputs)
        if not self._stack:
            self._end_forward(hooks)

    def _pop(self, name: str) -> _Open:
        """The open call of `name`; calls above it were left by an exception of which no hook was told."""
        while self._stack[-1].name != name:
            self._stack.pop()
        return self._stack.pop()

    def _end_forward(self, hooks: list[Hook]) -> None:
        self._modes.leave()
        self._taps.forget_graph()
        self._frame = None
        self._resting_since = time.monotonic()
        failed = sys.exc_info()[1] is not self._raising
        self._raising = None
        self._alive += [weakref.ref(hook) for hook in hooks]
        if failed or not hooks:
            self._dead_ends += 1
            if not failed:  # torch would be going through these very hooks
                self._disarm()

    def _input_edges(self, inputs: Named) -> dict[Edge, list[str]]:
        edges: dict[Edge, list[str]] = {}
        if "io_grad" in self.kinds:
            for info, tensor in inputs:
                if tensor.requires_grad:
                    edges.setdefault(edge_of(tensor), []).append(info.path)
        return edges

    def _tap_inputs(self, opened: _Open, outputs: Named) -> None:
        """Read the gradient that reaches each input through this call."""
        made = [edge_of(tensor) for _, tensor in outputs if tensor.requires_grad]
        opened.walk.run(opened.edges, made)
        for edge, paths in opened.edges.items():
            consumers = opened.walk.crossing.get(edge)
            for path in paths:
                key = (opened.name, opened.call, "input", path, "grad_norm")
                if consumers:
                    self._taps.on_path(consumers, key)
                elif edge in made:  # handed back as it came: what arrives at the tensor came through here
                    tensor = next(t for _, t in outputs if t.requires_grad and edge_of(t) == edge)
                    self._taps.on_tensor(tensor, key)
        if self._stack:
            self._stack[-1].walk.add_child(opened.walk, made)

    def _tap_tensors(self, opened: _Open, role: str, found: Named) -> list[Hook]:
        """Read the gradient that arrives at these tensors; returns the hooks that do."""
        wanted = "io_grad" in self.kinds
        if not wanted and "params_grad" not in self.kinds:
            return []
        return [
            self._taps.on_tensor(tensor, (opened.name, opened.call, role, info.path, "grad_norm") if wanted else None)
            for info, tensor in found
            if tensor.requires_grad
        ]

    def _observe_values(self, opened: _Open, role: str, found: Named) -> None:
        if "io" in self.kinds:
            for info, tensor in found:
                if is_readable(tensor):
                    key = (opened.name, opened.call, role, info.path, "value")
                    self._observe(key, self._measure.values(tensor))

    def _measure_parameters(self) -> None:
        for module, name in self._names.items():
            for path, parameter in module.named_parameters(recurse=False):
                if has_values(parameter) and is_readable(parameter):
                    self._observe((name, None, "param", path, "value"), self._measure.values(plain(parameter)))

    def _measure_gradients(self) -> None:
        if "params_grad" in self.kinds:
            with Aside():
                for name, path, _, gradient in self._gradients():
                    self._observe((name, None, "param", path, "grad"), self._measure.gradients(gradient))

    def _gradients(self) -> Iterator[tuple[str, str, nn.Parameter, Tensor]]:
        """Module, name, parameter and gradient, of each parameter that has one."""
        for module, name in self._names.items():
            for path, parameter in module.named_parameters(recurse=False):
                if has_values(parameter) and parameter.grad is not None and is_readable(parameter.grad):
                    yield name, path, parameter, plain(parameter.grad)

    def before_update(self) -> None:
        """The optimizer is about to move the parameters: see what it has made of the gradients."""
        if not self.backward_ended or self._taps.closed or "params_grad" not in self.kinds:
            return
        with Aside():
            for name, path, parameter, gradient in self._gradients():
                self._observe((name, None, "param", path, "optimizer_grad"), self._measure.values(gradient))
                self._before[parameter] = plain(parameter).detach().clone()

    def after_update(self) -> None:
        """The optimizer has moved the parameters: see how far."""
        before, self._before = self._before, {}
        self._awaits_update = False
        with Aside():
            for name, path, parameter, _ in self._gradients():
                if (old := before.pop(parameter, None)) is not None:
                    self._measure_update((name, path), old, plain(parameter).detach() - old)

    def _measure_update(self, place: tuple[str, str], old: Tensor, update: Tensor) -> None:
        name, path = place
        self._observe((name, None, "param", path, "update"), self._measure.values(update))
        size = torch.linalg.vector_norm(old)
        if size > 0:  # what starts at zero has no ratio yet
            ratio = torch.linalg.vector_norm(update) / size
            self._observe((name, None, "param", path, "update_ratio"), self._measure.values(ratio))

    def _observe(self, key: SeriesKey, row: int) -> None:
        self.rows[key] = row

    def _begin_backward(self) -> None:
        """Ask to be called at the end of the backward pass that is on, once for each."""
        task = torch._C._current_graph_task_id()
        if task not in self._tasks:
            self._tasks.add(task)
            self._call_at_end(lambda: self._call_at_end(self._end_backward))

    def _call_at_end(self, act: Callable[[], None]) -> None:
        """Call `act` at the end of the backward pass that is on, after all that asked for it before.

        Asked for at the end again, it comes after what was asked for in between: data-parallel training averages the
        gradients then.
        """
        engine = torch.autograd.Variable._execution_engine
        engine.queue_callback(Hook(act, lambda fault: self._lose("", fault)))

    def _end_backward(self) -> None:
        with self._taps.lock:
            if self._taps.closed:
                return
            self._taps.end_backward()
            if self._stack:  # it was one within the forward pass, which goes on
                return
            self._measure_gradients()
            self._resting_since = time.monotonic()
            self.backward_ended = True
        self._disarm()

    def conclude(self) -> None:
        """Nothing more will come: see what a backward pass has left that ended in an exception."""
        if self._tasks and not self.backward_ended and not self._taps.closed:
            self._taps.end_backward()
            self._measure_gradients()

    def _disarm(self) -> None:
        """Take the hooks off the modules; those on gradients stay."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


def _named(found: Iterable[tuple[str, Tensor]]) -> Named:
    tensors = [(path, plain(tensor)) for path, tensor in found]
    return [(tensor_info(path, tensor), tensor) for path, tensor in tensors]


def _infos(found: Named) -> tuple[TensorInfo, ...]:
    return tuple(info for info, _ in found)
