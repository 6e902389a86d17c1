"""A step is one update of the model, with all passes since the one before it, however the training loop is written."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from tests.listening import Listening, assert_row
from tests.sharpness_aware import SharpnessAware, TwoStepSharpnessAware
from torchgraph_explorer import watch
from torchgraph_explorer.capture import direct_forwards
from torchgraph_explorer.capture.forward_passes import PASSES
from torchgraph_explorer.capture.forward_recorder import MOST_SKIPPED
from torchgraph_explorer.capture.optimizer_steps import MOST_WITHIN_STEP
from torchgraph_explorer.capture.step_admission import StepAdmission
from torchgraph_explorer.capture.step_counter import MOST_WITHOUT_UPDATE
from torchgraph_explorer.errors import OptionError, TorchgraphWarning


@pytest.fixture(autouse=True)
def nothing_compiled_yet() -> None:
    """Other tests of this process may have compiled something, and then writes into parameters may be updates."""
    if (dynamo := sys.modules.get("torch._dynamo.utils")) is not None:
        dynamo.counters.clear()


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))


def loss_of(model: nn.Module, samples: int = 5) -> Tensor:
    result: Tensor = model(torch.randn(samples, 4)).square().mean()
    return result


def sgd(model: nn.Module) -> Optimizer:
    return torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)


def plain(model: nn.Module) -> None:
    optimizer = sgd(model)
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()


def gradients_set_after_the_backward_pass(model: Any) -> None:
    """Of the first layer only, as where the gradients of several tasks are aggregated."""
    optimizer = sgd(model)
    first, last = (list(layer.parameters()) for layer in (model[0], model[2]))
    for _ in range(3):
        optimizer.zero_grad()
        loss = loss_of(model)
        gradients = torch.autograd.grad(loss, first, retain_graph=True)
        loss.backward(inputs=last)
        for each, gradient in zip(first, gradients, strict=True):
            each.grad = gradient / 2
        optimizer.step()


def optimizer_made_late(model: nn.Module) -> None:
    optimizer = None
    for _ in range(3):
        loss = loss_of(model)
        optimizer = optimizer or sgd(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def accumulated(model: nn.Module, micro_batches: int = 3) -> None:
    optimizer = sgd(model)
    for _ in range(3):
        for _ in range(micro_batches):
            loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()


def episodes(model: nn.Module) -> None:
    """As in REINFORCE: one backward pass through many forward passes of one sample."""
    optimizer = sgd(model)
    for _ in range(3):
        optimizer.zero_grad()
        sum((loss_of(model, 1) for _ in range(9)), torch.zeros(())).backward()
        optimizer.step()


def lbfgs(model: nn.Module) -> None:
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3, tolerance_grad=0, tolerance_change=0)
    x = torch.randn(5, 4)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = model(x).square().mean()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)


def in_a_closure(model: nn.Module) -> None:
    """As Lightning has it."""
    optimizer: Any = sgd(model)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)


def sharpness_aware(model: nn.Module) -> None:
    optimizer = SharpnessAware(sgd(model))

    def closure() -> None:
        optimizer.zero_grad()
        loss_of(model).backward()

    for _ in range(3):
        closure()
        optimizer.step(closure)


def sharpness_aware_in_two_steps(model: nn.Module) -> None:
    optimizer = TwoStepSharpnessAware(sgd(model))
    for _ in range(3):
        loss_of(model).backward()
        optimizer.first_step()
        loss_of(model).backward()
        optimizer.second_step()


def sharpness_aware_by_hand(model: nn.Module) -> None:
    """As in ASAM, which is a class of its own around an optimizer."""
    optimizer = sgd(model)
    for _ in range(3):
        for sign in (1, -1):
            loss_of(model).backward()
            with torch.no_grad():
                for each in model.parameters():
                    each.add_(0.1 * sign)
            if sign == 1:
                optimizer.zero_grad()
        optimizer.step()
        optimizer.zero_grad()


def initialised_by_its_first_data(model: Any) -> None:
    optimizer = sgd(model)
    for layer in (model[0], model[2]):
        with torch.no_grad():
            layer.weight.div_(loss_of(model).sqrt())
        loss_of(model)
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()


def two_optimizers(model: nn.Module) -> None:
    weights = torch.optim.SGD([each for each in model.parameters() if each.ndim == 2], 0.05)
    biases = torch.optim.Adam([each for each in model.parameters() if each.ndim == 1], 0.05)
    for _ in range(3):
        model.zero_grad()
        loss_of(model).backward()
        weights.step()
        biases.step()


def in_the_backward_pass(model: nn.Module) -> None:
    optimizers = {each: torch.optim.SGD([each], 0.05) for each in model.parameters()}

    def update(parameter: Tensor) -> None:
        optimizers[parameter].step()  # type: ignore[index]
        optimizers[parameter].zero_grad()  # type: ignore[index]

    handles = [each.register_post_accumulate_grad_hook(update) for each in model.parameters()]
    for _ in range(3):
        loss_of(model).backward()
    for handle in handles:
        handle.remove()


def skipped_batches(model: nn.Module) -> None:
    """As with a loss that is not finite."""
    optimizer = sgd(model)
    for number in range(5):
        optimizer.zero_grad()
        loss_of(model).backward()
        if number % 2 == 0:
            optimizer.step()


def skipped_by_a_scaler(model: nn.Module, fused: bool = False) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.05, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for number in range(5):
        optimizer.zero_grad()
        loss: Any = scaler.scale(loss_of(model))
        (loss * float("inf") if number in SKIPPED else loss).backward()
        scaler.step(optimizer)
        scaler.update()


SKIPPED = frozenset({0, 3})


def another_model_beside(model: nn.Module) -> None:
    other = network()
    optimizer, others = sgd(model), sgd(other)
    for _ in range(3):
        for trained, its in ((model, optimizer), (other, others)):
            its.zero_grad()
            loss_of(trained).backward()
            its.step()


def evaluated_between(model: nn.Module) -> None:
    optimizer = sgd(model)
    for _ in range(3):
        loss_of(model).backward()
        model.eval()
        with torch.no_grad():
            loss_of(model)
        model.train()
        loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()


class Policy(nn.Module):
    """Has methods besides `forward`, as the policies of reinforcement learning do."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.action, self.value = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Linear(4, 2), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.action(self.body(x))
        return result

    def evaluate_actions(self, x: Tensor) -> Tensor:
        hidden = self.body(x)
        return self.action(hidden).square().mean() + self.value(hidden).square().mean()


def rollouts(model: Any) -> None:
    optimizer = sgd(model)
    for _ in range(3):
        with torch.no_grad():
            for _ in range(5):
                model(torch.randn(1, 4))
        optimizer.zero_grad()
        model.evaluate_actions(torch.randn(5, 4)).backward()
        optimizer.step()


class Adversaries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator, self.discriminator = nn.Linear(2, 4), nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))


class Distilled(nn.Module):
    """A network that is trained, and one that is not, as a teacher or a target network."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher, self.student = network(), network()


def distilled(model: Any) -> None:
    optimizer = sgd(model.student)
    for _ in range(3):
        with torch.no_grad():
            model.student(torch.randn(2, 4))  # as in a rollout: it is trained elsewhere
            target = model.teacher(x := torch.randn(5, 4))
        optimizer.zero_grad()
        (model.student(x) - target).square().mean().backward()
        optimizer.step()


def adversaries(model: Any) -> None:
    makes, judges = sgd(model.generator), sgd(model.discriminator)
    for _ in range(3):
        judges.zero_grad()
        fake = model.generator(torch.randn(5, 2)).detach()
        (model.discriminator(torch.randn(5, 4)) - model.discriminator(fake)).mean().backward()
        judges.step()
        makes.zero_grad()
        model.discriminator(model.generator(torch.randn(5, 2))).mean().backward()
        makes.step()


def adversaries_in_closures(model: Any) -> None:
    makes, judges = sgd(model.generator), sgd(model.discriminator)

    def judge() -> Tensor:
        judges.zero_grad()
        fake = model.generator(torch.randn(5, 2)).detach()
        loss: Tensor = (model.discriminator(torch.randn(5, 4)) - model.discriminator(fake)).mean()
        loss.backward()
        return loss

    def make() -> Tensor:
        makes.zero_grad()
        loss: Tensor = model.discriminator(model.generator(torch.randn(5, 2))).mean()
        loss.backward()
        return loss

    for _ in range(3):
        judges.step(judge)  # type: ignore[arg-type]
        makes.step(make)  # type: ignore[arg-type]


def apart(model: Any) -> None:
    """The parts learn by themselves, in turn, and one of them twice at first."""
    optimizers = {part: sgd(part) for part in (model.generator, model.discriminator)}
    for part, width in ((model.generator, 2), *((model.generator, 2), (model.discriminator, 4)) * 3):
        optimizers[part].zero_grad()
        part(torch.randn(5, width)).square().mean().backward()
        optimizers[part].step()


def its_forward_called_directly(model: nn.Sequential) -> None:
    optimizer = sgd(model)
    for _ in range(3):
        optimizer.zero_grad()
        model.forward(torch.randn(5, 4)).square().mean().backward()
        optimizer.step()


ROOT = [""]


@dataclass(frozen=True)
class Loop:
    """A training loop.

    Attributes:
        train: Makes its optimizers and trains.
        entered: What is called from outside of the model in each step, by step; the last one stands for those after it.
        steps: How many updates it makes.
        make: Makes the model.
        moved: How the names begin of the parameters that the last update moves.
        skipped: The steps whose updates a scaler skips.
        optimizers: How many make an update.
        added: The steps that are logged besides every second one, since optimizers take turns.
    """

    train: Callable[[Any], None]
    entered: tuple[list[str], ...]
    steps: int = 3
    make: Callable[[], nn.Module] = network
    moved: str = ""
    skipped: frozenset[int] = frozenset()
    optimizers: int = 1
    added: tuple[int, ...] = ()


LOOPS = {
    "plain": Loop(plain, (ROOT,)),
    "gradients set after the backward pass": Loop(gradients_set_after_the_backward_pass, (ROOT,)),
    "an optimizer that is made late": Loop(optimizer_made_late, (ROOT,)),
    "gradients accumulated": Loop(accumulated, (ROOT * 3,)),
    "more passes than are recorded": Loop(lambda model: accumulated(model, 9), (ROOT * PASSES,)),
    "episodes": Loop(episodes, (ROOT * PASSES,)),
    "LBFGS": Loop(lbfgs, (ROOT * 3,)),
    "in a closure": Loop(in_a_closure, (ROOT,)),
    "sharpness-aware": Loop(sharpness_aware, (ROOT * 2,), optimizers=2),
    "sharpness-aware, in two steps": Loop(sharpness_aware_in_two_steps, (ROOT * 2,)),
    "sharpness-aware, by hand": Loop(sharpness_aware_by_hand, (ROOT * 2,)),
    "initialised by its first data": Loop(initialised_by_its_first_data, (ROOT * 3, ROOT)),
    "two optimizers": Loop(two_optimizers, (ROOT,), optimizers=2),
    "in the backward pass": Loop(in_the_backward_pass, (ROOT,), optimizers=4),
    "skipped batches": Loop(skipped_batches, (ROOT, ROOT * 2)),
    "skipped by a scaler": Loop(skipped_by_a_scaler, (ROOT,), steps=5, skipped=SKIPPED),
    "skipped by a scaler, fused": Loop(
        lambda model: skipped_by_a_scaler(model, fused=True), (ROOT,), steps=5, skipped=SKIPPED
    ),
    "another model beside": Loop(another_model_beside, (ROOT,)),
    "evaluated between": Loop(evaluated_between, (ROOT * 2,)),
    "rollouts": Loop(rollouts, (["body", "action", "value"],), make=Policy),
    "distilled": Loop(distilled, (["student"], ["teacher", "student"]), make=Distilled, moved="student"),
    "adversaries": Loop(
        adversaries,
        (["generator", "discriminator", "discriminator"], ["generator", "discriminator"]) * 3,
        steps=6,
        make=Adversaries,
        moved="generator",
        added=(3,),
    ),
    "adversaries in closures": Loop(
        adversaries_in_closures,
        (["generator", "discriminator", "discriminator"], ["generator", "discriminator"]) * 3,
        steps=6,
        make=Adversaries,
        moved="generator",
        added=(3,),
    ),
    "parts in turn": Loop(
        apart,
        (["generator"], *(["generator"], ["discriminator"]) * 3),
        steps=7,
        make=Adversaries,
        moved="discriminator",
        added=(5,),
    ),
    "its forward called directly": Loop(its_forward_called_directly, (["0", "1", "2"],)),
}


def state_after(loop: Loop, **options: Any) -> tuple[list[bytes], Listening]:
    torch.manual_seed(0)
    model, heard = loop.make(), Listening()
    watcher = watch(model, backend=heard, sample_n=None, verbose=False, **options) if options else None
    loop.train(model)
    if watcher is not None:
        watcher.close()
        assert watcher.step == loop.steps
    return [each.detach().numpy().tobytes() for each in model.parameters()], heard


@pytest.mark.parametrize("log_freq", [1, 2])
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_step_is_one_update(loop: Loop, log_freq: int) -> None:
    trained, heard = state_after(loop, log_freq=log_freq)
    assert trained == state_after(loop)[0]
    steps = sorted({*range(0, loop.steps, log_freq), *(loop.added if log_freq == 2 else ())})
    assert [frame.step for frame in heard.frames] == steps
    assert heard.finished.steps == loop.steps
    assert not heard.finished.notes
    for at, step in enumerate(steps):
        expected = loop.entered[min(step, len(loop.entered) - 1)]
        assert entered(heard, at) in (expected, None), f"step {step}"
        for module in expected:
            assert calls(heard, at, module) == [*range(expected.count(module))], f"step {step}, {module!r}"
        facts = heard.frames[at].facts
        assert facts is not None
        assert facts.recorded_passes == len(expected)
        assert facts.end == ("skipped" if step in loop.skipped else "update")
        assert len(facts.optimizers) == loop.optimizers
    assert any(entered(heard, at) for at in range(len(steps)))


def entered(heard: Listening, frame: int) -> list[str] | None:
    """The modules that were called from outside of the model, in order; None while there is no graph."""
    graph = next((each for each in reversed(heard.graphs) if each.id == heard.frames[frame].graph), None)
    return None if graph is None else [call.module for call in graph.calls if call.parent is None]


def calls(heard: Listening, frame: int, module: str) -> list[int | None]:
    """The numbers of the calls of `module` whose output was recorded with its gradient."""
    recorded = heard.recorded(frame)
    return sorted(key[1] for key in recorded if key[0] == module and key[2] == "output" and key[4] == "value")  # type: ignore[type-var]


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_the_gradients_of_parameters_are_those_that_their_optimizers_get(loop: Loop) -> None:
    model, heard = loop.make(), Listening()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    seen: dict[str, Any] = {}

    def note(optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        for parameter in (each for group in optimizer.param_groups for each in group["params"]):
            if id(parameter) in names and parameter.grad is not None:
                seen[names[id(parameter)]] = parameter.grad.clone().numpy()

    watcher = watch(model, backend=heard, sample_n=None, verbose=False, log_freq=1, log=["params_grad"])
    handles = [register_optimizer_step_pre_hook(note), register_optimizer_step_post_hook(note)]
    try:
        loop.train(model)
    finally:
        for handle in handles:
            handle.remove()
    watcher.close()
    recorded = {f"{key[0]}.{key[3]}": heard.row(key) for key in heard.recorded() if key[4] == "grad"}
    moved = {name for name in seen if name.startswith(loop.moved)}
    assert moved
    assert moved <= set(recorded)
    for name in moved:
        assert_row(recorded[name], seen[name], name=name)


def test_without_an_optimizer_a_forward_pass_and_its_backward_pass_are_a_step() -> None:
    model, heard = network(), Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        for _ in range(3):
            loss_of(model).backward()
    assert [frame.step for frame in heard.frames] == [0, 1, 2]
    assert watcher.step == 3


@pytest.mark.slow
def test_an_optimizer_that_never_moves_the_model_is_not_waited_for_for_ever() -> None:
    model, heard = network(), Listening()
    optimizer = sgd(model)
    watcher = watch(model, backend=heard, log_freq=1, verbose=False, log=["params_grad"])

    def train() -> None:
        for _ in range(MOST_WITHOUT_UPDATE + 3):
            loss_of(model).backward()

    with pytest.warns(
        TorchgraphWarning, match=f"No optimizer has updated the model's parameters in {MOST_WITHOUT_UPDATE}"
    ):
        train()
    watcher.close()
    assert [frame.step for frame in heard.frames] == [0, 1, 2, 3]
    del optimizer


@pytest.mark.slow
def test_a_search_within_the_first_step_of_an_optimizer_is_not_taken_for_no_update() -> None:
    model, heard = network(), Listening()
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=MOST_WITHOUT_UPDATE + 10, tolerance_grad=0, tolerance_change=0
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    with (
        pytest.warns(TorchgraphWarning, match=f"LBFGS has called the model in more than {MOST_WITHOUT_UPDATE} passes"),
        watch(model, backend=heard, log_freq=1, verbose=False),
    ):
        optimizer.step(cast("Any", closure))
    assert [frame.step for frame in heard.frames][:3] == [0, 1, 2]


def test_a_training_of_which_no_step_ever_ends_is_told() -> None:
    model = network()
    optimizer = sgd(copied := network())  # as of a worker, whose gradients go to shared parameters
    watcher = watch(model, backend=Listening(), log_freq=1, verbose=False)
    for _ in range(MOST_WITHOUT_UPDATE):
        model.forward(torch.randn(4, 4)).square().sum().backward()
        for own, shared in zip(model.parameters(), copied.parameters(), strict=True):
            shared.grad = own.grad
        optimizer.step()
        model.load_state_dict(copied.state_dict())
    with pytest.warns(TorchgraphWarning, match="whole training was taken for one step"):
        watcher.close()


def test_passes_after_the_first_update_count_for_the_next_one() -> None:
    model, heard = network(), Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        loss_of(model).backward()
        loss_of(model).backward()
        sgd(model).step()
        assert watcher.step == 2
        loss_of(model).backward()
        loss_of(model).backward()
    assert [frame.step for frame in heard.frames] == [0, 1, 2]
    assert [calls(heard, at, "") for at in range(3)] == [[0], [0], [0, 1]]


@pytest.mark.slow  # imports dynamo
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_steps_of_a_compiled_optimizer_are_recognized_by_what_they_write() -> None:
    torch.compiler.reset()
    model, heard = network(), Listening()
    optimizer = sgd(model)

    @torch.compile(backend="eager")
    def update() -> None:
        optimizer.step()

    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model).backward()
            loss_of(model).backward()
            update()
    assert [frame.step for frame in heard.frames] == [0, 1, 2]
    assert [calls(heard, at, "") for at in range(3)] == [[0, 1]] * 3
    assert watcher.step == 3


def test_writes_that_come_again_and_again_without_an_update_by_an_optimizer_are_updates() -> None:
    model, heard = network(), Listening()
    optimizer = sgd(model)
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        for _ in range(MOST_WITHIN_STEP + 4):
            optimizer.zero_grad()
            loss_of(model).backward()
            with torch.no_grad():
                for each in model.parameters():
                    each.sub_(0.01)
    assert watcher.step == MOST_WITHIN_STEP + 4
    assert [frame.step for frame in heard.frames] == [0, *range(MOST_WITHIN_STEP + 1, MOST_WITHIN_STEP + 4)]


def test_recording_tells_whether_this_step_is_logged() -> None:
    model, told = network(), []
    optimizer = sgd(model)
    with watch(model, backend=Listening(), log_freq=2, verbose=False) as watcher:
        for _ in range(4):
            before = watcher.recording
            loss = loss_of(model)
            within = watcher.recording
            loss.backward()
            told.append((before, within, watcher.recording))
            optimizer.step()
    assert told == [(True,) * 3, (False,) * 3] * 2
    assert not watcher.recording


SILENT: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "evaluation only": (lambda model, _: model.eval()(torch.randn(2, 4)), r"pass phases=\('train', 'eval'\)"),
    "another model": (
        lambda _, other: other[0](torch.randn(2, 4)).sum().backward() or other[1].step(),
        r"optimizers hold none of its parameters.* Pass the model that the training loop calls",
    ),
    "functions of its parameters": (
        lambda model, other: (model[0].weight.sum() + model[2].bias.sum()).backward() or other[2].step(),
        r"no call of its modules was seen. Call modules as layer\(x\)",
    ),
}


@pytest.mark.parametrize(("act", "reason"), SILENT.values(), ids=SILENT)
def test_a_training_of_which_nothing_is_recorded_is_told_so_while_it_goes_on(
    act: Callable[[Any, Any], object], reason: str
) -> None:
    model, another = network(), network()
    other, optimizer = (another, sgd(another), sgd(model)), sgd(network())
    watcher = watch(model, backend=Listening(), verbose=False)

    def train() -> None:
        for _ in range(110):
            act(model, other)
            optimizer.step()

    with pytest.warns(TorchgraphWarning, match=f"no step was recorded in the first 100 updates.*{reason}"):
        train()
    with pytest.warns(TorchgraphWarning, match=f"no step was recorded.*{reason}"):
        watcher.close()


def test_a_model_that_waits_while_another_watched_one_is_trained_is_not_said_to_be_silent() -> None:
    first, second = network(), network()
    heard = Listening(), Listening()
    with (
        warnings.catch_warnings(record=True) as told,
        watch(first, backend=heard[0], log_freq=1),
        watch(second, backend=heard[1], log_freq=1),
    ):
        warnings.simplefilter("always")
        for model in (first, second):
            optimizer = sgd(model)
            for _ in range(110):
                model(torch.randn(2, 4)).sum().backward()
                optimizer.step()
    assert [str(one.message) for one in told] == []
    assert all(each.recorded() for each in heard)


def test_a_head_that_the_loop_calls_after_many_calls_of_a_cell_is_recorded() -> None:
    model, heard = nn.ModuleDict({"cell": nn.RNNCell(4, 4), "head": nn.Sequential(nn.Linear(4, 1))}), Listening()
    optimizer = sgd(model)
    with watch(model, backend=heard, log_freq=1, verbose=False):
        for _ in range(2):
            state = torch.zeros(3, 4)
            for _ in range(PASSES + MOST_SKIPPED + 10):
                state = model["cell"](torch.randn(3, 4), state)
            model["head"](state).sum().backward()
            optimizer.step()
    recorded = {key[:2] for key in heard.recorded() if key[2] == "output"}
    assert recorded == {*(("cell", call) for call in range(PASSES)), ("head", 0), ("head.0", 0)}


class InAList(nn.Module):
    """Its layers are in a plain list, where torch does not find them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(4, 4)]


def test_a_model_whose_layers_are_not_part_of_it_is_told_so() -> None:
    model = InAList()
    optimizer = sgd(model.layers[0])
    watcher = watch(model, backend=Listening(), verbose=False)
    loss_of(model.layers[0]).backward()
    optimizer.step()
    with pytest.warns(TorchgraphWarning, match="no step was recorded. It had no parameters .* use nn.ModuleList"):
        watcher.close()


def test_nothing_is_watched_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHGRAPH", "off")
    model, heard = network(), Listening()
    with watch(model, backend=["standalone", heard], logdir=tmp_path / "runs", log_freq=1) as watcher:
        watcher.step = 7
        plain(model)
        hooks = [each._forward_hooks or each._forward_pre_hooks for each in model.modules()]
    assert not any(hooks)
    assert not heard.records
    assert not (tmp_path / "runs").exists()
    found = watcher.step, watcher.recording, watcher.graph, watcher.graphs, watcher.url, watcher.run_dir
    assert found == (7, False, None, (), None, None)
    with pytest.raises(OptionError, match="Nothing is recorded, since TORCHGRAPH='off' is in the environment"):
        watcher.export(tmp_path / "page.html")
    assert watcher.explore(torch.ones(1, 4), loss=torch.sum, serve=False).tensors
    with pytest.raises(OptionError, match="No batch was given"):
        watcher.explore()
    with pytest.raises(OptionError, match="step=-1 is not a step"):
        watcher.step = -1


def test_another_word_in_the_environment_is_ignored_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHGRAPH", "no")
    model, heard = network(), Listening()
    with pytest.warns(TorchgraphWarning, match="TORCHGRAPH='no' in the environment is ignored. Set it to 'off'"):
        watcher = watch(model, backend=heard, verbose=False)
    plain(model)
    watcher.close()
    assert heard.frames


CHOICES: dict[str, tuple[Any, list[list[int]]]] = {
    "four": (4, [[0, 1, 2, 3]] * 3),
    "one": (1, [[0]] * 3),
    "more than there are": (99, [[*range(12)]] * 3),
    "the last ones": (("last", 3), [[0, 1, 2], [9, 10, 11], [9, 10, 11]]),
    "spread": (("spread", 4), [[0, 1, 2, 3], [0, 3, 6, 9], [0, 3, 6, 9]]),
    "spread over fewer": (("spread", 20), [[*range(12)]] * 3),
}
"""`passes`, and which of twelve passes are recorded in each step."""


@pytest.mark.slow
@pytest.mark.parametrize(("passes", "recorded"), CHOICES.values(), ids=CHOICES)
def test_which_passes_of_a_step_are_recorded_is_chosen(passes: Any, recorded: list[list[int]]) -> None:
    model, heard = network(), Listening()
    optimizer = sgd(model)
    with watch(model, backend=heard, log_freq=1, verbose=False, passes=passes, log="io"):
        for _ in range(3):
            for number in range(12):
                model(torch.full((2, 4), float(number))).sum().backward()
            optimizer.step()
    for at, expected in enumerate(recorded):
        facts = heard.frames[at].facts
        assert facts is not None
        assert (facts.passes, facts.recorded_passes) == (12, len(expected))
        for call, number in enumerate(expected):
            statistics, _ = heard.row(("", call, "input", "input[0]", "value"), at)
            assert statistics["mean"] == number


class Direct(nn.Module):
    """Runs layers by their `forward`: one, one within another one, and its own class's."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.block = nn.Linear(4, 4), Block()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.block(self.first.forward(x))
        return result


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.last = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.last(self.inner.forward(x))
        return result


class Block(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


def test_modules_that_are_run_by_their_forward_are_named() -> None:
    model, heard = Direct(), Listening()
    optimizer = sgd(model)

    def train() -> None:
        with watch(model, backend=heard, log_freq=1, verbose=False):
            for _ in range(3):
                loss_of(model).backward()
                optimizer.step()

    first, inner = ("Direct.forward", "Plain.forward") if sys.version_info >= (3, 11) else ("forward", "forward")
    named = rf"first.forward\(\), called in {first}, block.inner.forward\(\), called in {inner}, so"
    with pytest.warns(TorchgraphWarning, match=named) as said:
        train()
    assert len(said) == 1
    assert "block.forward" not in str(said[0].message)
    recorded = {key[0] for key in heard.recorded() if key[2] == "output"}
    assert recorded == {"", "block", "block.inner.0", "block.inner.1", "block.last"}


class OwnCall(nn.Module):
    """Calls its `forward` itself, as the modules of GPyTorch do."""

    def __call__(self, *inputs: Tensor) -> Any:
        return self.forward(*inputs)


class Process(OwnCall):
    """A deep kernel: a network, whose features a mean and a kernel take."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.kernel = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), OwnCall()
        self.scale = nn.Parameter(torch.ones(()))
        setattr(self.kernel, "forward", lambda x: self.scale * x @ x.T)  # noqa: B010  # mypy allows no other

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.kernel(self.features(x))
        return result


class Base(Process):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


@pytest.mark.parametrize("make", [Process, Base])
def test_a_model_that_calls_its_forward_itself_is_named_where_modules_in_it_are_recorded(
    make: Callable[[], nn.Module],
) -> None:
    model, heard = make(), Listening()
    optimizer = sgd(model)

    def train() -> None:
        with watch(model, backend=heard, log_freq=1, verbose=False):
            for _ in range(3):
                loss_of(model).backward()
                optimizer.step()

    caller = "OwnCall.__call__" if sys.version_info >= (3, 11) else "__call__"
    named = rf"{make.__name__}.forward\(\), called in {caller}, so .* with a __call__ of their own \(as in GPyTorch\)"
    with pytest.warns(TorchgraphWarning, match=named) as said:
        train()
    assert len(said) == 1
    recorded = {key[0] for key in heard.recorded() if key[2] == "output"}
    assert recorded == {"features", "features.0", "features.1"}


class Around(nn.Module):
    """Has a layer whose `forward` is called from another function of that name, as by fairscale's checkpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)
        plain = self.layer.forward

        class Function:
            @staticmethod
            def forward(x: Tensor) -> Tensor:
                return plain(x)

        setattr(self.layer, "forward", Function.forward)  # noqa: B010  # mypy allows no other

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layer(x)
        return result


def test_a_module_that_is_called_is_not_said_to_be_run_by_its_forward() -> None:
    model, heard = Around(), Listening()
    optimizer = sgd(model)
    with watch(model, backend=heard, log_freq=1, verbose=False):
        for _ in range(3):
            loss_of(model).backward()
            optimizer.step()
    assert not heard.finished.notes
    assert {key[0] for key in heard.recorded() if key[2] == "output"} == {"", "layer"}


def test_a_function_is_named_by_a_python_without_qualified_names_too() -> None:
    code = SimpleNamespace(co_name="forward")  # as in Python 3.10
    assert direct_forwards._name_of(SimpleNamespace(f_code=code)) == "forward"


class Decorated(nn.Linear):
    @torch.autocast("cpu", enabled=False)  # type: ignore[untyped-decorator]  # of torch
    @torch.enable_grad()
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)

    def twice(self, x: Tensor) -> Tensor:
        return self.forward(self.forward(x))


class OfDecorated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = Decorated(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer.twice(x)


def test_who_runs_a_module_by_its_forward_is_named_although_torch_decorates_that() -> None:
    model = OfDecorated()
    optimizer = sgd(model)

    def train() -> None:
        with watch(model, backend=Listening(), log_freq=1, verbose=False):
            loss_of(model).backward()
            optimizer.step()

    with pytest.warns(TorchgraphWarning, match=r"layer\.forward\(\), called in (Decorated\.)?twice, so"):
        train()


def test_torch_does_not_warn_of_looking_at_parameters_that_were_computed() -> None:
    """As TorchOpt puts them into modules."""
    model, base = Plain(), nn.Parameter(torch.randn(1, 4))
    optimizer = torch.optim.SGD([base, *model.inner.parameters()], 0.1)
    with warnings.catch_warnings(record=True) as caught, watch(model, backend=Listening(), log_freq=1, verbose=False):
        warnings.simplefilter("always")
        for _ in range(3):
            model.last._parameters["weight"] = base * 2  # type: ignore[assignment]  # no parameter, but taken for one
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
    assert [str(one.message) for one in caught if "not a leaf" in str(one.message)] == []


class Autoencoder(nn.Module):
    """Entered by its parts. What is between them, the training loop computes."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder, self.judge = nn.Linear(4, 6), nn.Linear(3, 4), nn.Linear(4, 1)


def test_calls_are_connected_by_what_the_loop_computes_between_them() -> None:
    model, heard = Autoencoder(), Listening()
    optimizer = sgd(model)
    with watch(model, backend=heard, log_freq=1, verbose=False):
        mean, deviation = model.encoder(x := torch.randn(5, 4)).chunk(2, dim=1)
        latent = mean + deviation.exp() * torch.randn_like(mean)
        model.judge((model.decoder(latent) - x).square()).mean().backward()
        model.encoder(torch.randn(5, 4)).detach()
        model.decoder(torch.randn(5, 3)).sum().backward()
        optimizer.step()
    graph = heard.graphs[0]
    calls_at = {at: graph.calls[node.call] for at, node in enumerate(graph.nodes) if node.call is not None}
    edges = [
        (calls_at[edge.source].module, calls_at[edge.source].call, calls_at[edge.target].module, edge.gradient)
        for edge in graph.edges
        if graph.nodes[edge.source].inside is None
    ]
    assert edges == [("encoder", 0, "decoder", True), ("decoder", 0, "judge", True)]


@pytest.mark.slow
def test_passes_that_are_not_recorded_are_counted_however_many_there_are() -> None:
    model, heard = Policy(), Listening()
    optimizer = sgd(model)
    with watch(model, backend=heard, log_freq=1, verbose=False):
        for _ in range(2):
            for _ in range(200):
                model.evaluate_actions(torch.randn(2, 4)).backward()
            optimizer.step()
    assert [(frame.facts.passes, frame.facts.recorded_passes) for frame in heard.frames if frame.facts] == [
        (600, 12),  # through `body`, `action` and `value`
        (600, 12),
    ]


@pytest.mark.parametrize("passes", [0, -1, 2.5, True, "last", ("last",), ("best", 4), ("last", 0), None])
def test_a_choice_of_passes_that_is_none_is_refused(passes: Any) -> None:
    with pytest.raises(OptionError, match="does not say which passes of a step to record"):
        watch(network(), backend=Listening(), passes=passes)


def test_a_step_is_what_the_loop_marks() -> None:
    model, heard = network(), Listening()
    optimizer = sgd(model)
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        for _ in range(3):
            for _ in range(2):
                optimizer.zero_grad()
                loss_of(model).backward()
                optimizer.step()
            watcher.step_done()
        loss_of(model)
    # The loop is known to mark steps from the first mark on: two updates have come before.
    assert [frame.step for frame in heard.frames] == [0, 1, 2, 3, 4]
    assert [calls(heard, at, "") for at in range(5)] == [[0], [0], [0, 1], [0, 1], [0]]
    ends = [frame.facts.end for frame in heard.frames if frame.facts]
    assert ends == ["update", "update", "mark", "mark", "unfinished"]
    assert watcher.step == 5


def test_without_an_optimizer_the_loop_may_mark_steps() -> None:
    model, heard = network(), Listening()
    with watch(model, backend=heard, log_freq=2, verbose=False) as watcher:
        for _ in range(4):
            loss_of(model).backward()
            for parameter in model.parameters():
                parameter.data *= 0.9
            loss_of(model)
            watcher.step_done()
    assert [frame.step for frame in heard.frames] == [0, 2, 4]
    assert [calls(heard, at, "") for at in range(3)] == [[0], [0, 1], [0, 1]]
    assert [frame.facts.end for frame in heard.frames if frame.facts] == ["pass", "mark", "mark"]


def test_the_optimizers_of_an_update_are_named() -> None:
    model, heard = Adversaries(), Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False):
        adversaries(model)
    assert [frame.facts.optimizers for frame in heard.frames if frame.facts] == [("SGD",), ("SGD #2",)] * 3


def test_optimizers_that_follow_each_other_are_named_together() -> None:
    model, heard = network(), Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False):
        two_optimizers(model)
    assert [frame.facts.optimizers for frame in heard.frames if frame.facts] == [("SGD", "Adam")] * 3


@pytest.mark.parametrize("function", ["is_recording", "mark"])
def test_a_fault_of_ours_does_not_reach_the_loop_that_asks(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(StepAdmission, function, property(fail) if function == "is_recording" else fail)
    model = network()
    watcher = watch(model, backend=Listening(), verbose=False)
    told: list[bool] = []

    def ask() -> None:
        told.append(watcher.recording)
        watcher.step_done()
        watcher.close()

    with pytest.warns(TorchgraphWarning) as said:
        ask()
    assert told == [function == "mark"]
    assert any("ZeroDivisionError" in str(each.message) for each in said)


def test_log_freq_is_asked_when_the_step_begins() -> None:
    """So a loop may decide by the batch, just before its pass."""
    model, heard, is_wanted = network(), Listening(), False
    optimizer = sgd(model)
    with watch(model, backend=heard, log_freq=lambda _: is_wanted, verbose=False):
        for number in range(9):
            is_wanted = number % 4 == 3
            for _ in range(2):
                loss_of(model).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert [frame.step for frame in heard.frames] == [3, 7]
