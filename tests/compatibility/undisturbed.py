"""P1: a watched training is by bytes the unwatched one, and the model copies, pickles and prints as ever."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import nn

from tests.compatibility.case import Case, Training
from tests.compatibility.training import Run, run
from tests.compatibility.walk import fingerprint
from tests.listening import Listening
from torchgraph_explorer import Keep
from torchgraph_explorer.schema import KeptStep


def check_undisturbed(case: Case) -> None:
    """Raise an AssertionError that names all that differs."""
    assert_undisturbed(case, run(case, watched=True, options=case.options))


class Keeping(Listening):
    """Takes kept tensors, too."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[KeptStep] = []

    def keep(self, step: KeptStep, _most: int) -> int:
        self.kept.append(step)
        return 0


def check_kept(case: Case) -> None:
    """Raise an AssertionError that names all that differs if every tensor is kept whole."""
    sink, keep = Keeping(), Keep("*", "*:input", samples=None)
    watched = run(case, watched=True, options={**case.options, "backend": sink, "keep": keep})
    assert_undisturbed(case, watched)
    broken = [one for one in watched.said if "no longer" in one or "failed" in one]
    assert broken == []
    assert any(step.arrays for step in sink.kept) or not sink.frames


def check_copies(case: Case) -> None:
    """Raise an AssertionError unless copies of the model, made at any time, are as those of the unwatched one."""
    assert_same(copied(case, watched=False), copied(case, watched=True), besides="counted")


@cache
def unwatched(case: Case) -> Run:
    """The oracle."""
    return run(case, watched=False)


DIFFERENT = "watched, something else came out"


def assert_undisturbed(case: Case, watched: Run, *, what: str = DIFFERENT, besides: str = "") -> None:
    """`watched` left behind what the unwatched training does; what `besides` names aside.

    A case that is not the same twice is told apart only where the two differ: if they are equal, it was the same twice.
    """
    plain = unwatched(case)
    if differing(plain, watched, besides):
        assert_same(plain, run(case, watched=False), what="the case itself is not the same twice")
    assert_same(plain, watched, what=what, besides=besides)


def assert_same(plain: Run, watched: Run, *, what: str = DIFFERENT, besides: str = "") -> None:
    """Both left the same behind; what `besides` names aside."""
    different = differing(plain, watched, besides)
    assert not different, f"{what}: {', '.join(different[:8])}{' ...' if len(different) > 8 else ''}" + _detail(
        plain, watched, different
    )


def differing(plain: Run, watched: Run, besides: str = "") -> list[str]:
    """Names of what differs."""
    names = [name for name in dict.fromkeys([*plain.state, *watched.state]) if name != besides]
    return [name for name in names if plain.state.get(name) != watched.state.get(name)]


def _detail(plain: Run, watched: Run, different: list[str]) -> str:
    first = different[0]
    return f"\n  unwatched: {plain.state.get(first)!r:.300}\n  watched:   {watched.state.get(first)!r:.300}"


def copied(case: Case, *, watched: bool) -> Run:
    """Train `case`, and copy the model in every way between steps and within one."""
    outcomes: list[Any] = []

    @contextmanager
    def copying(training: Training, _watcher: object) -> Iterator[None]:
        step = training.step

        def copy_now() -> None:
            outcomes.append(copies(training.model, watched=watched))

        def step_and_copy(number: int) -> object:
            last = [module for module in training.model.modules() if not list(module.children())][-1]
            handle = last.register_forward_hook(_Vanishing(copy_now)) if case.hookable else None
            try:
                result = step(number)
            finally:
                if handle is not None:
                    handle.remove()
            copy_now()
            return result

        training.step = step_and_copy
        yield

    few = Case(case.theme, case.name, case.make, steps=min(2, case.steps))
    done = run(few, watched=watched, options=case.options, around=copying)
    return Run({f"copies at {i}": outcome for i, outcome in enumerate(outcomes)} | done.state, done.heard, done.said)


class _Vanishing:
    """A hook of the test's that can be pickled and copied, as nothing, so that the model can be too."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act

    def __call__(self, *_: object) -> None:
        self.act()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Vanishing, (int,)


def copies(model: nn.Module, *, watched: bool) -> dict[str, Any]:
    """What comes of each way to copy: the copy's state, or that it cannot be."""
    ways: dict[str, Callable[[nn.Module], Any]] = {
        "deepcopy": copy.deepcopy,
        "pickle": lambda model: _pickled(pickle.dumps(model), watched=watched),
        "torch.save": lambda model: _saved(model, watched=watched),
    }
    state = torch.get_rng_state()
    outcome = {name: _outcome(way, model) for name, way in ways.items()}
    torch.set_rng_state(state)
    return {**outcome, "state_dict": [*_outcome(lambda one: one, model)]}


def _outcome(way: Callable[[nn.Module], Any], model: nn.Module) -> Any:
    try:
        made = way(model)
        return [repr(made), fingerprint(made.state_dict()), [name for name, _ in made.named_modules()]]
    except AssertionError:
        raise
    except Exception:  # as it may be for the unwatched model too
        return ["cannot be copied"]


def _pickled(data: bytes, *, watched: bool) -> Any:
    assert not watched or b"torchgraph_explorer" not in data, "a pickle of the watched model names our package"
    return pickle.loads(data)


def _saved(model: nn.Module, *, watched: bool) -> Any:
    file = io.BytesIO()
    torch.save(model, file)
    assert not watched or b"torchgraph_explorer" not in file.getvalue(), "torch.save wrote the name of our package"
    file.seek(0)
    return torch.load(file, weights_only=False)
