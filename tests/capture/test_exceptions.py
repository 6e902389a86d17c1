"""An exception of the user's, wherever it comes from, costs the record nothing but what it kept from being computed."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torchs
from torch.nn.utils import parametrize

from tests.listening import Listening
from tests.tables import every
from torchgraph_explorer import watch
from torchgraph_explorer.schema import ModuleGraph

pytestmark = pytest.mark.slow

FAILS_AT = 1
STEPS = 4


class Failure(Exception):
    """The user's."""


class Exit(BaseException):
    """One of which torch tells no hook, as `KeyboardInterrupt` is."""


@dataclass
class Switch:
    """Whether the user's code fails, how, and what was computed before it did.

    Attributes:
        kind: What it raises.
        on: It raises, the next time that it can.
        returned: The modules whose `forward` has returned, in order.
    """

    kind: type[BaseException]
    on: bool = False
    returned: list[str] = field(default_factory=list)

    def fail(self, *_: object) -> None:
        if self.on:
            self.on = False
            raise self.kind("the user's")


class Layer(nn.Linear):
    """Tells when it is computed."""

    def __init__(self, name: str, switch: Switch) -> None:
        super().__init__(3, 3)
        self.name, self.switch = name, switch

    def forward(self, x: Tensor) -> Tensor:
        result = super().forward(x)
        self.switch.returned.append(self.name)
        return result


class Link(nn.Module):
    """A layer, another link within it, which it may do without, the layer again."""

    def __init__(self, name: str, switch: Switch, depth: int) -> None:
        super().__init__()
        self.name, self.switch, self.catches = name, switch, False
        path = f"{name}." if name else ""
        self.layer = Layer(f"{path}layer", switch)
        self.inner = Link(f"{path}inner", switch, depth - 1) if depth else None
        self.in_forward: Callable[[], None] = lambda: None

    def forward(self, x: Tensor, *, scale: float = 1.0) -> Tensor:
        x = self.layer(x) * scale
        self.in_forward()
        if self.inner is not None:
            try:
                x = self.inner(x, scale=0.5)
            except (Failure, Exit):
                if not self.catches:
                    raise
        x = self.layer(x).tanh()
        self.switch.returned.append(self.name)
        return x


BreakAt = Callable[[Link, Switch], object]


def in_forward(link: Link, switch: Switch) -> None:
    link.in_forward = switch.fail


def in_parametrization(link: Link, switch: Switch) -> None:
    class Fails(nn.Module):
        def forward(self, weight: Tensor) -> Tensor:
            switch.fail()
            return weight

    parametrize.register_parametrization(link.layer, "weight", Fails())


def within_the_step(link: Link, switch: Switch) -> None:
    """Puts a pre-hook on the layer when the link is called: after all that is on it."""
    handles: list[Any] = []

    def put_on() -> None:
        if switch.on:
            handles.append(link.layer.register_forward_pre_hook(switch.fail))

    link.in_forward = put_on


def by_returning_nonsense(link: Link, switch: Switch) -> None:
    """A pre-hook with keywords that does not return what torch asks for."""

    def hook(*_: object) -> object:
        try:
            switch.fail()
        except Failure:
            return 1, 2, 3
        return None

    link.register_forward_pre_hook(hook, with_kwargs=True)


def on_that(link: Link, act: Callable[[], None]) -> Callable[..., None]:
    """A global hook that acts for one module."""
    return lambda module, *_: act() if module is link else None


def reentering(link: Link, switch: Switch) -> None:
    """The link calls itself, and is kept from it by a hook."""
    depth = [0]

    def call_again() -> None:
        if switch.on and not depth[0]:
            depth[0] = 1
            try:
                with suppress(Failure) if link.catches else nullcontext():
                    link(torch.ones(2, 3))
            finally:
                depth[0] = 0

    link.in_forward = call_again
    link.register_forward_pre_hook(lambda *_: switch.fail() if depth[0] else None)


FORWARD: dict[str, BreakAt] = {
    "forward": in_forward,
    "pre-hook": lambda link, switch: link.register_forward_pre_hook(switch.fail),
    "pre-hook put first": lambda link, switch: link.register_forward_pre_hook(switch.fail, prepend=True),
    "pre-hook with keywords": lambda link, switch: link.register_forward_pre_hook(switch.fail, with_kwargs=True),
    "pre-hook that returns nonsense": by_returning_nonsense,
    "pre-hook of a leaf": lambda link, switch: link.layer.register_forward_pre_hook(switch.fail),
    "pre-hook put on within the step": within_the_step,
    "hook": lambda link, switch: link.register_forward_hook(switch.fail),
    "hook put first": lambda link, switch: link.register_forward_hook(switch.fail, prepend=True),
    "hook with keywords": lambda link, switch: link.register_forward_hook(switch.fail, with_kwargs=True),
    "hook that is always called": lambda link, switch: link.register_forward_hook(switch.fail, always_call=True),
    "hook of a leaf": lambda link, switch: link.layer.register_forward_hook(switch.fail),
    "global pre-hook": lambda link, switch: torchs.register_module_forward_pre_hook(on_that(link, switch.fail)),
    "global hook": lambda link, switch: torchs.register_module_forward_hook(on_that(link, switch.fail)),
    "global hook that is always called": lambda link, switch: torchs.register_module_forward_hook(
        on_that(link, switch.fail), always_call=True
    ),
    "parametrization": in_parametrization,
    "hook while it calls itself": reentering,
}
IN_A_LEAF = {"pre-hook of a leaf", "pre-hook put on within the step"}
BACKWARD: dict[str, BreakAt] = {
    "full backward hook": lambda link, switch: link.register_full_backward_hook(switch.fail),
    "full backward pre-hook": lambda link, switch: link.register_full_backward_pre_hook(switch.fail),
    "backward hook of a leaf": lambda link, switch: link.layer.register_full_backward_hook(switch.fail),
    "global backward hook": lambda link, switch: torchs.register_module_full_backward_hook(on_that(link, switch.fail)),
    "hook of a tensor": lambda link, switch: link.layer.register_forward_hook(
        lambda _module, _args, out: (out.register_hook(switch.fail), None)[1]
    ),
    "hook of a parameter": lambda link, switch: link.layer.get_parameter("weight").register_hook(switch.fail),
}
DEPTH = 2


@dataclass
class Trained:
    """What a training left behind.

    Attributes:
        told: For each step: what was raised, the loss, and the gradients.
        returned: For each step, the modules whose `forward` returned.
        heard: The record.
        state: Of torch's random numbers.
    """

    told: list[list[object]]
    returned: list[list[str]]
    heard: Listening
    state: bytes


@dataclass(frozen=True)
class Plan:
    """How a model fails.

    Attributes:
        place: Where.
        kind: With what.
        at: How deep the link is that fails.
        caught: At which depth it is caught; None where nobody but the training loop does.
        late: The user's hooks are put on after the model is watched.
    """

    place: BreakAt
    kind: type[BaseException] = Failure
    at: int = DEPTH
    caught: int | None = None
    late: bool = False


def train(plan: Plan, *, watched: bool, fails: bool = True) -> Trained:
    torch.manual_seed(3)
    switch = Switch(plan.kind)
    model = Link("", switch, DEPTH)
    links = [model, model.inner, model.inner and model.inner.inner]
    target = links[plan.at]
    assert target is not None
    if plan.caught is not None:
        catching = links[plan.caught]
        assert catching is not None
        catching.catches = True
    heard, told, returned = Listening(), [], []
    if not plan.late:
        plan.place(target, switch)
    watcher = watch(model, backend=heard, log_freq=1, sample_n=None, verbose=False) if watched else None
    if plan.late:
        plan.place(target, switch)
    for step in range(STEPS):
        switch.on, switch.returned = fails and step == FAILS_AT, []
        told.append(one_step(model, switch))
        returned.append(switch.returned)
    if watcher is not None:
        watcher.close()
    return Trained(told, returned, heard, torch.get_rng_state().numpy().tobytes())


def one_step(model: Link, switch: Switch) -> list[object]:
    model.zero_grad()
    raised = loss = None
    try:
        loss = model(torch.randn(2, 3), scale=2.0).square().sum()
        loss.backward()
    except (Failure, Exit, RuntimeError) as fault:
        raised = (type(fault), str(fault), fault.__cause__, fault.__context__ and type(fault.__context__))
    switch.on = False
    gradients = [p.grad.numpy().tobytes() if p.grad is not None else None for p in model.parameters()]
    return [raised, loss.detach().numpy().tobytes() if loss is not None else None, *gradients]


@pytest.fixture(autouse=True)
def _no_global_hooks_are_left() -> Iterator[None]:
    yield
    for hooks in (
        torchs._global_forward_pre_hooks,
        torchs._global_forward_hooks,
        torchs._global_forward_hooks_always_called,
        torchs._global_backward_hooks,
    ):
        hooks.clear()
    torchs._global_is_full_backward_hook = None


def plans() -> Iterator[Any]:
    for name, place in FORWARD.items():
        for at in range(DEPTH + 1):
            for caught in (None, *range(at)):
                for late in (False, True):
                    where = "not caught" if caught is None else f"caught {at - caught} above"
                    when = "after watch" if late else "before watch"
                    yield pytest.param(
                        Plan(place, at=at, caught=caught, late=late), id=f"{name}, depth {at}, {where}, {when}"
                    )
    for name, place in BACKWARD.items():
        for at in range(DEPTH + 1):
            yield pytest.param(Plan(place, at=at), id=f"{name}, depth {at}")
    for at in range(DEPTH + 1):
        for caught in (None, *range(at)):
            yield pytest.param(
                Plan(in_forward, Exit, at=at, caught=caught), id=f"no Exception, depth {at}, {caught or 'not caught'}"
            )


@pytest.mark.filterwarnings("error::torchgraph_explorer.TorchgraphWarning")
@pytest.mark.filterwarnings("ignore:.*always_call=True.*:UserWarning")
@pytest.mark.filterwarnings("ignore:Full backward hook is firing.*:UserWarning")
@pytest.mark.parametrize("plan", every(3, plans()))
def test_an_exception_of_the_users_costs_only_what_it_kept_from_being_computed(plan: Plan) -> None:
    plain, watched = unwatched(replace(plan, late=False)), train(plan, watched=True)
    assert watched.told == plain.told, "training is as it would be unwatched"
    assert watched.state == plain.state
    heard = watched.heard
    assert heard.finished.notes == ()
    steps = [frame.step for frame in heard.frames]
    assert steps == list(range(STEPS if is_a_step(plan) else STEPS - 1))
    whole = without_failure(Plan(plan.place if plan.place is in_parametrization else in_forward, at=plan.at))
    for at in (0, -2, -1):
        assert_same_frame(heard, whole, at)
    if is_a_step(plan):
        names = {name for name, module in Link("", Switch(Failure), DEPTH).named_modules()}
        assert outputs_of(heard, FAILS_AT) & names == set(plain.returned[FAILS_AT])


@cache
def unwatched(plan: Plan) -> Trained:
    """The oracle of the training. When watch() is called is all the same to it."""
    return train(plan, watched=False)


@cache
def without_failure(plan: Plan) -> Listening:
    """The oracle of the record. A hook that does nothing is not in it; a parametrization is, as a module."""
    return train(plan, watched=True, fails=False).heard


def is_a_step(plan: Plan) -> bool:
    """Whether watch() sees a call of the model in the step that fails: not if a hook before its own keeps it off."""
    before_ours = {"pre-hook put first", "global pre-hook"}
    before_ours |= {name for name in FORWARD if name.startswith("pre-hook") and not plan.late} - IN_A_LEAF
    return plan.at > 0 or plan.place not in [FORWARD[name] for name in before_ours]


def outputs_of(heard: Listening, at: int) -> set[str]:
    return {key[0] for key in heard.recorded(at) if key[2] == "output" and key[4] == "value"}


def assert_same_frame(heard: Listening, whole: Listening, at: int) -> None:
    assert heard.recorded(at) == whole.recorded(at)
    for key in whole.recorded(at):
        told, expected = heard.row(key, at), whole.row(key, at)
        assert repr(told[0]) == repr(expected[0]), key  # NaN is equal to NaN
        assert told[1].buckets.tobytes() == expected[1].buckets.tobytes(), key
        assert told[1].counts.tobytes() == expected[1].counts.tobytes(), key
    assert wiring(graph_in_force(heard, at)) == wiring(graph_in_force(whole, at))


def graph_in_force(heard: Listening, at: int) -> ModuleGraph:
    return next(graph for graph in reversed(heard.graphs) if graph.id == heard.frames[at].graph)


def wiring(graph: ModuleGraph) -> object:
    return graph.calls, graph.nodes, graph.edges


class Misshapen(nn.Linear):
    """Its operations do not fit its inputs."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) @ torch.ones(5, 5)


def test_the_traceback_of_a_traced_step_has_what_runs_the_operation_besides() -> None:
    def entries(*, watched: bool) -> list[tuple[str, str | None]]:
        model = Misshapen(3, 3)
        watching = watch(model, backend=Listening(), log_freq=1) if watched else nullcontext()
        with watching, pytest.raises(RuntimeError, match="2x3 and 5x5") as raised:
            model(torch.ones(2, 3))
        return [(Path(one.filename).name, one.line) for one in traceback.extract_tb(raised.value.__traceback__)]

    within = [one for one in entries(watched=True) if one[0] not in {"module.py", "test_exceptions.py"}]
    assert [name for name, _ in within] == ["trace.py", "_ops.py"]
    assert "your operation, as without watch" in str(within[0][1])
    assert {name for name, _ in entries(watched=False)} == {"module.py", "test_exceptions.py"}
