"""P3: with any one function of ours broken, training goes on as if unwatched, and it is said once."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any
from unittest import mock

import torchgraph_explorer.capture
import torchgraph_explorer.reduce
from tests.compatibility.case import Case
from tests.compatibility.training import run
from tests.compatibility.undisturbed import assert_same, unwatched
from torchgraph_explorer.capture import attach_targets, eager


class Injected(RuntimeError):
    """What a broken function raises."""


@dataclass(frozen=True)
class Fault:
    """One function that raises.

    Attributes:
        name: Where it is: `torchgraph_explorer.capture.captured_step.CapturedStep._enter`.
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
    "capture.safe_hook.": "the guard around all hooks: it is what catches the rest",
    "capture.module_hooks._Leave.__call__": "the same",
    "capture.no_dispatch.NoDispatch.": "gives torch its own state back: broken, nothing else could",
    "capture.mode_stack.": "the same",
    "capture.eager.": "the same",
    "capture.compiled_entry._Compiling.": "the same",
    "capture.path_gradients._make_stale": "the same",
    "capture.inline.probes._Before.__call__": "the guard around what is compiled into the model",
    "capture.inline.probes._After.__call__": "the same",
    "capture.inline.probes._not_inserted": "how it says what it caught",
    "capture.trace.Trace.__torch_dispatch__": "runs the user's operation; what it does besides is broken instead",
    "capture.trace.Trace.is_infra_mode": "asked by torch, in the middle of what the user does",
    "training.writer_thread.WriterThread.note": "how a fault is said: broken, nobody can be told",
    "training.writer_thread.WriterThread._warn": "the same",
    "training.pipeline.Pipeline.fail": "the same",
    "training.pipeline.Pipeline.note": "the same",
    "training.pipeline.Pipeline._each": "the guard around the end of it all",
    "training.pipeline.Pipeline.end": "the same",
    "training.pipeline.Pipeline.wait": "the same",
    "training.watcher.Watcher.close": "called by the user, as the rest are; all that it calls is broken instead",
    "training.watcher.Watcher.finish": "the same",
    "training.watcher.Watcher.end": "the same",
    "training.watcher.Watcher.step": "the same",
    "training.watcher.Watcher.__enter__": "the same",
    "training.watcher.Watcher.__exit__": "the same",
}
"""Names, or beginnings of names, of what is left whole, and why."""


def all_faults() -> tuple[Fault, ...]:
    """A fault for every function and method of capture, reduce, the recorder, the watcher, and for a sink's two."""
    names = functions_of(_modules())
    names += ["tests.listening.Listening.write", "tests.listening.Listening.close"]
    return tuple(Fault(name) for name in names if not _is_left_whole(name))


def functions_of(modules: Iterable[ModuleType]) -> list[str]:
    """The full names of all that is defined in `modules`."""
    return [f"{module.__name__}.{name}" for module in modules for name in _functions(module)]


def _is_left_whole(name: str) -> bool:
    return name.removeprefix("torchgraph_explorer.").startswith(tuple(NOT_BROKEN))


def _modules() -> Iterator[ModuleType]:
    for package in (torchgraph_explorer.capture, torchgraph_explorer.reduce):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            yield importlib.import_module(found.name)
    for name in ("writer_thread", "pipeline", "watcher"):
        yield importlib.import_module(f"torchgraph_explorer.training.{name}")


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
    where, _, attribute = fault.name.rpartition(".")
    owner = _owner(where)
    whole = inspect.getattr_static(owner, attribute)
    try:
        with _patched(owner, attribute, _broken(whole, fault, switch)):
            yield
    finally:
        _give_back()


def _give_back() -> None:
    """What a broken function kept, which would reach the next test: compiled code runs as written until it is left."""
    eager._eager.holders.clear()
    if "torch._dynamo" in sys.modules:
        eager._eager.update()
    attach_targets._threads.clear()


def _owner(where: str) -> Any:
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError:
        module, _, name = where.rpartition(".")
        return getattr(importlib.import_module(module), name)


def _broken(whole: Any, fault: Fault, switch: Switch) -> Any:
    function: Any = whole.fget if isinstance(whole, property) else getattr(whole, "__func__", whole)

    def broken(*args: Any, **kwargs: Any) -> Any:
        switch.calls += switch.on
        if switch.calls > fault.after:
            raise Injected(str(fault))
        return function(*args, **kwargs)

    if isinstance(whole, property):
        return property(broken, whole.fset)
    return type(whole)(broken) if isinstance(whole, (classmethod, staticmethod)) else broken


@contextmanager
def _patched(owner: Any, attribute: str, broken: Any) -> Iterator[None]:
    whole = inspect.getattr_static(owner, attribute)
    places = [(owner, attribute)]
    if inspect.ismodule(owner):
        places += [
            (module, name)
            for module in [*sys.modules.values()]
            if getattr(module, "__name__", "").startswith("torchgraph_explorer") and module is not owner
            for name, value in list(vars(module).items())
            if value is whole
        ]
    patches = [mock.patch.object(place, name, broken) for place, name in places]
    try:
        for patch in patches:
            patch.start()
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()


def check_unkillable(case: Case, fault: Fault) -> bool:
    """Raise an AssertionError unless the training is that of the unwatched model; returns whether the fault was met.

    The function is whole until the model is watched, and stays broken until all is closed.
    """
    switch = Switch()

    def around(_training: object, _watcher: object) -> Any:
        switch.on = True
        return nullcontext()

    with injected(fault, switch):
        done = run(case, watched=True, options=case.options, around=around)
    assert_same(unwatched(case), done, what=f"with {fault} broken, something else came out", besides="counted")
    said, met = done.said, switch.calls > fault.after
    assert len(said) == len(set(said)), f"with {fault} broken, the same was said twice: {said}"
    assert said or not met, f"{fault} failed {switch.calls - fault.after} times, and nobody was told"
    return met
