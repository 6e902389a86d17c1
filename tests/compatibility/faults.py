"""P3: with any one function of ours broken, training goes on as if unwatched, and it is said once."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from types import FunctionType, ModuleType
from typing import Any
from unittest import mock

import torchgraph_explorer.capture
import torchgraph_explorer.reduce
from tests.compatibility.case import Case
from tests.compatibility.training import run
from tests.compatibility.undisturbed import assert_same, unwatched
from torchgraph_explorer.capture import active, eager


class Injected(RuntimeError):
    """What a broken function raises."""


@dataclass(frozen=True)
class Fault:
    """One function that raises.

    Attributes:
        name: Where it is: `torchgraph_explorer.capture.round.Round._enter`.
        after: How many calls of it go well before.
    """

    name: str
    after: int = 0

    def __str__(self) -> str:
        return self.name.removeprefix("torchgraph_explorer.") + (f" from call {self.after}" if self.after else "")


@dataclass
class Switch:
    """Whether a fault acts, and how often its function was called since it does."""

    on: bool = False
    calls: int = 0


NOT_BROKEN = {
    "capture.hooks.": "the guard around all hooks: it is what catches the rest",
    "capture.arming._Leave.__call__": "the same",
    "capture.aside.Aside.": "gives torch its own state back: broken, nothing else could",
    "capture.mode_stack.": "the same",
    "capture.eager.": "the same",
    "capture.compiled._Compiling.": "the same",
    "capture.paths._make_stale": "the same",
    "capture.compiled_looks._Before.__call__": "the guard around what is compiled into the model",
    "capture.compiled_looks._After.__call__": "the same",
    "capture.compiled_looks._not_placed": "how it says what it caught",
    "capture.trace.Trace.__torch_dispatch__": "runs the user's operation; what it does besides is broken instead",
    "capture.trace.Trace.is_infra_mode": "asked by torch, in the middle of what the user does",
    "recorder.Recorder.note": "how a fault is said: broken, nobody can be told",
    "recorder.Recorder._warn": "the same",
    "stream.Stream.fail": "the same",
    "stream.Stream.note": "the same",
    "stream.Stream._each": "the guard around the end of it all",
    "stream.Stream.end": "the same",
    "stream.Stream.wait": "the same",
    "watcher.Watcher.close": "called by the user, as the rest are; all that it calls is broken instead",
    "watcher.Watcher.finish": "the same",
    "watcher.Watcher.step": "the same",
    "watcher.Watcher.__enter__": "the same",
    "watcher.Watcher.__exit__": "the same",
}
"""Names, or beginnings of names, of what is left whole, and why."""

BY_WATCH = "watch() calls it, before training begins"
ON_REQUEST = "the user calls it"
ON_A_GPU = "tests/reduce/test_elsewhere.py calls it; no case trains on a GPU"

NOT_CALLED = {
    "capture.arming.Arms.__init__": BY_WATCH,
    "capture.arming.Arms.tidy": "takes off hooks that an exception of the user's has left on",
    "capture.compiled.Gates.__init__": BY_WATCH,
    "capture.compiled.Gates._fail_at_registration": "called where a hook that the user registers cannot be looked at",
    "capture.compiled.Gates._hook": BY_WATCH,
    "capture.compiled.Gates._on_compile": "called where the user compiles in the middle of training",
    "capture.compiled.Gates._put_before": BY_WATCH,
    "capture.compiled.Gates._put_in_place": BY_WATCH,
    "capture.compiled.Gates._runs_model": BY_WATCH,
    "capture.compiled._compiled_modules": BY_WATCH,
    "capture.compiled.until_left": "replaced once dynamo is loaded",
    "capture.compiled_looks.Looks.__init__": BY_WATCH,
    "capture.compiled_looks._Looking.__init__": "called when the package is imported",
    "capture.compiled_looks._Placing.__init__": "run by dynamo, which traces through it",
    "capture.compiled_looks._Unpickled": "called where a compiled model is pickled",
    "capture.compiled_looks._operator": "called once in a process",
    "capture.compiled_round.CompiledRound.begin": "called where the model is compiled without its own hooks",
    "capture.distributed": "test_distributed.py calls it; no case has several ranks",
    "capture.gradients._nothing": "does nothing",
    "capture.parameters.Parameters.are_added_to": "called where micro-batches are accumulated for an optimizer",
    "capture.parameters.Parameters.forget": "called where a step is given up",
    "capture.phases.Evaluation.__init__": BY_WATCH,
    "capture.phases.Training.__init__": BY_WATCH,
    "capture.round.Round._rested": "called where training pauses for half a second",
    "capture.round.Round.close": "called where training pauses for half a second",
    "capture.round.Round.rests": "called where training pauses for half a second",
    "capture.rounds.Rounds.__init__": BY_WATCH,
    "capture.rounds.Rounds._go_eager": "called where compiled='inline' finds no way in",
    "capture.trace.Trace._should_skip_dynamo": "asked by torch, where a traced model is compiled",
    "capture.updates.Updates.__init__": BY_WATCH,
    "recorder.Recorder.__init__": BY_WATCH,
    "recorder.Recorder._run": "begins before training does",
    "reduce.elsewhere": ON_A_GPU,
    "reduce.native.Rows.add_sample": ON_A_GPU,
    "reduce.sampling.Sampler.__init__": BY_WATCH,
    "stream.Stream.__init__": BY_WATCH,
    "watcher.Watcher.__init__": BY_WATCH,
    "watcher.Watcher._recorded": ON_REQUEST,
    "watcher.Watcher._repr_html_": ON_REQUEST,
    "watcher.Watcher.export": ON_REQUEST,
    "watcher.Watcher.graph": ON_REQUEST,
    "watcher.first_of_each": BY_WATCH,
}
"""Names, or beginnings of names, of what no case calls while it trains, and why."""

HANDLERS = {
    "capture.arming._Leave.fail": "capture.round.Round.leave",
    "capture.arming._Telling.fail": "capture.arming._Enter.act",
    "capture.gradients.Tap.fail": "capture.gradients.Taps.arrive",
    "capture.gradients._Share.fail": "capture.gradients._Share.act",
    "capture.round.Round.end_forward": "capture.round.Round.leave",
    "capture.round.Round.lose": "capture.arming._Enter.act",
    "capture.rounds.Rounds._fail_at_update": "capture.rounds.Rounds.before_update",
}
"""Functions that are called only after another has failed, and the one whose failure leads to them."""


@cache
def all_faults() -> tuple[Fault, ...]:
    """A fault for every function and method of capture, reduce, the recorder, the watcher, and for a sink's two."""
    names = functions_of(_modules())
    names += ["tests.listening.Listening.write", "tests.listening.Listening.close"]
    return tuple(Fault(name) for name in names if not _is_named_in(NOT_BROKEN, name))


def faults_while_training() -> tuple[Fault, ...]:
    """Those that some case meets on its own."""
    return tuple(
        fault
        for fault in all_faults()
        if not _is_named_in(NOT_CALLED, fault.name) and not _is_named_in(HANDLERS, fault.name)
    )


def functions_of(modules: Iterable[ModuleType]) -> list[str]:
    """The full names of all that is defined in `modules`."""
    return [f"{module.__name__}.{name}" for module in modules for name in _functions(module)]


def _is_named_in(table: Mapping[str, str], name: str) -> bool:
    return name.removeprefix("torchgraph_explorer.").startswith(tuple(table))


def stale_names() -> list[str]:
    """What the tables name that is not, or no longer, there."""
    names = [name.removeprefix("torchgraph_explorer.") for name in functions_of(_modules())]
    return [
        known
        for table in (NOT_BROKEN, NOT_CALLED, HANDLERS)
        for known in table
        if not any(name.startswith(known) for name in names)
    ]


def _modules() -> Iterator[ModuleType]:
    for package in (torchgraph_explorer.capture, torchgraph_explorer.reduce):
        for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            yield importlib.import_module(found.name)
    for name in ("recorder", "stream", "watcher"):
        yield importlib.import_module(f"torchgraph_explorer.{name}")


def _functions(module: ModuleType) -> Iterator[str]:
    """Names of what is defined in `module`: functions, and methods as `Class.method`."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) and not getattr(value, "_is_protocol", False):
            yield from (f"{name}.{inner}" for inner, one in vars(value).items() if _is_ours(one, inner, module))
        elif inspect.isfunction(value) or hasattr(value, "cache_info"):
            yield name


def _is_ours(value: object, name: str, module: ModuleType) -> bool:
    """A method or property written in `module`, and neither a protocol's nor a dataclass' own."""
    function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if not isinstance(function, FunctionType) or function.__module__ != module.__name__:
        return False
    generated = function.__code__.co_filename != module.__file__
    return not generated and name not in ("__init_subclass__", "__subclasshook__", "__repr__")


@contextmanager
def injected(fault: Fault, switch: Switch) -> Iterator[None]:
    """Have one function raise, wherever it was imported to, once the switch is on."""

    def act() -> None:
        switch.calls += switch.on
        if switch.calls > fault.after:
            raise Injected(str(fault))

    try:
        with _before_each_call(fault.name, act):
            yield
    finally:
        _give_back()


@cache
def calls_of(case: Case) -> Mapping[str, int]:
    """How often each function that may be broken is called while `case` trains, from when a fault would act."""
    calls: dict[str, int] = {}
    switch = Switch()

    def count(name: str) -> None:
        if switch.on:
            calls[name] = calls.get(name, 0) + 1

    def around(_training: object, _watcher: object) -> Any:
        switch.on = True
        return nullcontext()

    with ExitStack() as patches:
        for fault in all_faults():
            patches.enter_context(_before_each_call(fault.name, partial(count, fault.name)))
        run(case, watched=True, options=case.options, around=around)
    return calls


@contextmanager
def _before_each_call(name: str, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` before each call of the function with this full name, wherever it was imported to."""
    where, _, attribute = name.rpartition(".")
    owner = _owner(where)
    whole = inspect.getattr_static(owner, attribute)
    with _patched(owner, attribute, _preceded(whole, act)):
        yield


def _give_back() -> None:
    """What a broken function kept, which would reach the next test: compiled code runs as written until it is left."""
    eager._eager.holders.clear()
    if "torch._dynamo" in sys.modules:
        eager._eager.update()
    active._threads.clear()


def _owner(where: str) -> Any:
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError:
        module, _, name = where.rpartition(".")
        return getattr(importlib.import_module(module), name)


def _preceded(whole: Any, act: Callable[[], None]) -> Any:
    """A function, method or property that calls `act` and then does what `whole` does."""
    function: Any = whole.fget if isinstance(whole, property) else getattr(whole, "__func__", whole)

    def preceded(*args: Any, **kwargs: Any) -> Any:
        act()
        return function(*args, **kwargs)

    if isinstance(whole, property):
        return property(preceded, whole.fset)
    return type(whole)(preceded) if isinstance(whole, (classmethod, staticmethod)) else preceded


@contextmanager
def _patched(owner: Any, attribute: str, replacement: Any) -> Iterator[None]:
    whole = inspect.getattr_static(owner, attribute)
    places = [(owner, attribute)]
    if inspect.ismodule(owner):
        ours = [module for name, module in [*sys.modules.items()] if name.startswith("torchgraph_explorer")]
        places += [
            (module, name)
            for module in ours
            if module is not owner
            for name, value in list(vars(module).items())
            if value is whole
        ]
    patches = [mock.patch.object(place, name, replacement) for place, name in places]
    try:
        for patch in patches:
            patch.start()
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()


def check_unkillable(case: Case, fault: Fault, *more: Fault) -> bool:
    """Raise an AssertionError unless the training is that of the unwatched model; returns whether each fault was met.

    The functions are whole until the model is watched, and stay broken until all is closed.
    """
    faults = {each: Switch() for each in (fault, *more)}

    def around(_training: object, _watcher: object) -> Any:
        for switch in faults.values():
            switch.on = True
        return nullcontext()

    with ExitStack() as stack:
        for each, switch in faults.items():
            stack.enter_context(injected(each, switch))
        done = run(case, watched=True, options=case.options, around=around)
    broken = ", ".join(map(str, faults))
    assert_same(unwatched(case), done, what=f"with {broken} broken, something else came out", besides="counted")
    met = [switch.calls > each.after for each, switch in faults.items()]
    assert len(done.said) == len(set(done.said)), f"with {broken} broken, the same was said twice: {done.said}"
    assert done.said or not any(met), f"{broken} failed, and nobody was told"
    return all(met)
