"""A training that is resumed goes on at the number of updates that were made before, without the user's doing."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.listening import Listening
from tests.sharpness_aware import SharpnessAware
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.capture.optimizer_steps import ModelOptimizers
from torchgraph_explorer.capture.resumed_steps import updates_by
from torchgraph_explorer.sinks import Resumed
from torchgraph_explorer.training import first_step

BEFORE, AFTER = 5, 3
"""Rounds of a training before its checkpoint, and after."""


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))


def loss_of(model: nn.Module) -> Tensor:
    result: Tensor = model(torch.randn(5, 4)).square().mean()
    return result


def one_update(model: nn.Module, optimizers: Sequence[Any]) -> None:
    model.zero_grad()
    loss_of(model).backward()
    for each in optimizers:
        each.step()


def accumulated(model: nn.Module, optimizers: Sequence[Any]) -> None:
    loss_of(model).backward()
    loss_of(model).backward()
    one_update(model, optimizers)


def in_a_closure(model: nn.Module, optimizers: Sequence[Any]) -> None:
    def closure() -> Tensor:
        optimizers[0].zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    optimizers[0].step(closure)


def sharpened(model: nn.Module, optimizers: Sequence[Any]) -> None:
    model.zero_grad()
    loss_of(model).backward()
    in_a_closure(model, optimizers)


def in_the_backward_pass(model: nn.Module, optimizers: Sequence[Any]) -> None:
    pairs = zip(model.parameters(), optimizers, strict=True)
    handles = [each.register_post_accumulate_grad_hook(_stepping(optimizer)) for each, optimizer in pairs]
    model.zero_grad()
    loss_of(model).backward()
    for handle in handles:
        handle.remove()


def _stepping(optimizer: Any) -> Callable[[Tensor], None]:
    def step(_parameter: Tensor) -> None:
        optimizer.step()

    return step


def a_pass_each(model: nn.Module, optimizers: Sequence[Any]) -> None:
    """As in a GAN: the first optimizer makes two updates while the second one makes one."""
    for each in (optimizers[0], *optimizers):
        one_update(model, [each])


def compiled_update(model: nn.Module, optimizers: Sequence[Any]) -> None:
    @torch.compile(backend="eager")
    def update() -> None:
        optimizers[0].step()

    model.zero_grad()
    loss_of(model).backward()
    update()


def only(kind: type[Optimizer], **options: Any) -> Callable[[nn.Module], list[Optimizer]]:
    """One optimizer for all parameters."""
    return lambda model: [kind(model.parameters(), lr=0.01, **options)]  # type: ignore[call-arg]


def halves(first: Any = torch.optim.AdamW, second: Any = torch.optim.AdamW) -> Callable[[nn.Module], list[Optimizer]]:
    """One optimizer for matrices, another one for vectors."""
    return lambda model: [
        kind([each for each in model.parameters() if each.ndim == dimensions], lr=0.01)
        for dimensions, kind in ((2, first), (1, second))
    ]


def one_each(model: nn.Module) -> list[Optimizer]:
    return [torch.optim.Adam([each]) for each in model.parameters()]


def groups(model: nn.Module) -> list[Optimizer]:
    """Of the two groups, the first is never moved."""
    first, *others = model.parameters()
    first.requires_grad_(False)
    parts: list[dict[str, Any]] = [{"params": [first], "lr": 0.1}, {"params": others}]
    return [torch.optim.Adam(parts)]


def sharpness_aware(model: nn.Module) -> list[Any]:
    base = torch.optim.Adam(model.parameters())
    return [SharpnessAware(base), base]


def as_groups_count(model: nn.Module) -> list[Optimizer]:
    return [CountingInGroups(model.parameters())]


class CountingInGroups(torch.optim.SGD):
    """Keeps its count in the parameter groups, as apex' and timm's optimizers do."""

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
        return super().step(closure)


def lazy() -> nn.Module:
    return nn.Sequential(nn.LazyLinear(3), nn.Tanh(), nn.LazyLinear(1))


@dataclass(frozen=True)
class Training:
    """A training that is checkpointed and resumed.

    Attributes:
        optimizers: Makes them.
        round: Makes one update, or as many as `updates`.
        make: Makes the model.
        updates: What `round` makes.
        known: How many updates the optimizers' states are known to count at once, of those made in `BEFORE` rounds.
    """

    optimizers: Callable[[Any], Sequence[Any]]
    round: Callable[[nn.Module, Sequence[Any]], None] = one_update
    make: Callable[[], nn.Module] = network
    updates: int = 1
    known: int = BEFORE


TRAININGS = {
    "Adam": Training(only(torch.optim.Adam)),
    "AdamW, fused": Training(only(torch.optim.AdamW, fused=True)),
    "AdamW, foreach": Training(only(torch.optim.AdamW, foreach=True)),
    "Adagrad": Training(only(torch.optim.Adagrad)),
    "RMSprop": Training(only(torch.optim.RMSprop)),
    "counting in its groups": Training(as_groups_count),
    "gradients accumulated": Training(only(torch.optim.Adam), accumulated),
    "in a closure": Training(only(torch.optim.Adam), in_a_closure),
    "parameter groups": Training(groups),
    "two optimizers, one after the other": Training(halves()),
    "two optimizers, of which one keeps no count": Training(halves(torch.optim.SGD)),
    "sharpness-aware": Training(sharpness_aware, sharpened),
    "in the backward pass": Training(one_each, in_the_backward_pass),
    "two optimizers in turn": Training(halves(), a_pass_each, updates=3, known=2 * BEFORE),
    "lazy modules": Training(only(torch.optim.Adam), make=lazy),
    "a compiled model": Training(only(torch.optim.Adam), make=lambda: torch.compile(network(), backend="eager")),  # type: ignore[arg-type,return-value]
    "a compiled optimizer": Training(only(torch.optim.Adam), compiled_update),
    "SGD": Training(only(torch.optim.SGD), known=0),
    "SGD with momentum": Training(only(torch.optim.SGD, momentum=0.9), known=0),
    "LBFGS": Training(only(torch.optim.LBFGS, max_iter=2), in_a_closure, known=0),
}
COMPILING = {"a compiled model", "a compiled optimizer"}


def saved(*objects: Any) -> Any:
    """What a checkpoint of the objects gives back."""
    file = io.BytesIO()
    torch.save([each.state_dict() for each in objects], file)
    file.seek(0)
    return torch.load(file)


@dataclass
class Trained:
    """The state, the recorded steps and the watcher's count at the end."""

    weights: list[bytes]
    steps: list[int]
    count: int


def trained_through(training: Training) -> Trained:
    torch.manual_seed(0)
    return _trained(training, training.make(), checkpoint=None)


def resumed(training: Training) -> Trained:
    torch.manual_seed(0)
    first = training.make()
    with torch.no_grad():
        loss_of(first)
    optimizers = training.optimizers(first)
    for _ in range(BEFORE):
        training.round(first, optimizers)
    checkpoint, drawn = saved(first, *optimizers), torch.get_rng_state()
    second = training.make()
    del first, optimizers
    return _trained(training, second, checkpoint=(*checkpoint, drawn))


def _trained(training: Training, model: nn.Module, *, checkpoint: Any) -> Trained:
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        with torch.no_grad():
            loss_of(model)  # makes the parameters of lazy modules
        optimizers = training.optimizers(model)
        if checkpoint is not None:
            weights, *states, drawn = checkpoint
            model.load_state_dict(weights)
            for each, state in zip(optimizers, states, strict=True):
                each.load_state_dict(state)
            torch.set_rng_state(drawn)
        for _ in range(AFTER if checkpoint is not None else BEFORE + AFTER):
            training.round(model, optimizers)
    weights = [each.detach().numpy().tobytes() for each in model.parameters()]
    return Trained(weights, [frame.step for frame in heard.frames], watcher.step)


def cases() -> list[Any]:
    slow = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
    return [pytest.param(each, id=name, marks=slow if name in COMPILING else []) for name, each in TRAININGS.items()]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("training", cases())
def test_a_resumed_training_goes_on_where_one_without_a_break_is(training: Training) -> None:
    torch.compiler.reset()
    whole, rest = trained_through(training), resumed(training)
    assert whole.weights == rest.weights
    assert whole.steps == list(range(whole.count))
    assert whole.count == training.updates * (BEFORE + AFTER)
    if training.known == 0:
        assert rest.steps == list(range(AFTER))
        return
    assert rest.count == whole.count
    assert rest.steps[0] == training.known
    assert rest.steps[training.updates :] == whole.steps[training.updates * (1 + BEFORE) :]
    assert sorted(set(rest.steps)) == rest.steps


def updated(updates: int = BEFORE, kind: type[Optimizer] = torch.optim.Adam) -> tuple[nn.Module, Optimizer]:
    """A model that was updated so often before it is watched, and its optimizer."""
    model = network()
    [optimizer] = only(kind)(model)
    for _ in range(updates):
        one_update(model, [optimizer])
    return model, optimizer


def test_an_optimizer_that_is_made_and_loaded_between_the_first_pass_and_its_update_renames_that_step() -> None:
    model, first = updated()
    state = saved(first)
    del first
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        loss_of(model).backward()
        second = torch.optim.Adam(model.parameters())
        second.load_state_dict(*state)
        second.step()
        one_update(model, [second])
    assert [frame.step for frame in heard.frames] == [BEFORE, BEFORE + 1]
    assert watcher.step == BEFORE + 2


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD])
def test_an_optimizer_that_a_new_one_has_replaced_does_not_count(kind: type[Optimizer]) -> None:
    model, old = updated()
    [new] = only(kind)(model)
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        assert watcher.step == 0
        for _ in range(2):
            one_update(model, [new])
    assert [frame.step for frame in heard.frames] == [0, 1]
    assert updates_by(old) == BEFORE


def test_an_optimizer_that_steps_in_turn_with_a_new_one_counts_from_then_on() -> None:
    model, old = updated()
    [new] = only(torch.optim.SGD)(model)
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False):
        for each in (new, old, new):
            one_update(model, [each])
    assert [frame.step for frame in heard.frames] == [0, 1, BEFORE + 2]


def test_a_new_optimizer_that_is_loaded_late_counts_although_there_is_an_older_one() -> None:
    model, old = updated(9)
    state = saved(updated(BEFORE)[1])
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False):
        [new] = only(torch.optim.Adam)(model)
        loss_of(model)
        new.load_state_dict(*state)
        for _ in range(2):
            one_update(model, [new])
    assert [frame.step for frame in heard.frames] == [BEFORE, BEFORE + 1]
    assert updates_by(old) == 9


def test_the_number_is_known_before_the_first_pass() -> None:
    model, optimizer = updated()
    with watch(model, backend=Listening(), log_freq=BEFORE, verbose=False) as watcher:
        assert (watcher.step, watcher.recording) == (BEFORE, True)
        one_update(model, [optimizer])
        assert (watcher.step, watcher.recording) == (BEFORE + 1, False)


def test_the_number_is_looked_up_once_however_often_it_is_asked_for_before_the_first_pass() -> None:
    model = network()
    with (
        watch(model, backend=Listening()) as watcher,
        mock.patch.object(ModelOptimizers, "look", autospec=True) as look,
    ):
        assert [watcher.step for _ in range(50)] == [0] * 50
        assert [watcher.recording for _ in range(50)] == [True] * 50
    assert look.call_count <= 3


def test_the_number_of_an_optimizer_that_is_made_and_loaded_after_it_was_asked_for_is_known_at_once() -> None:
    model = network()
    with watch(model, backend=Listening()) as watcher:
        assert watcher.step == 0
        optimizer = torch.optim.Adam(model.parameters())
        assert watcher.step == 0
        trained = network()
        before = torch.optim.Adam(trained.parameters())
        for _ in range(BEFORE):
            one_update(trained, [before])
        optimizer.load_state_dict(before.state_dict())
        assert watcher.step == BEFORE


def test_log_freq_counts_from_the_first_update_ever() -> None:
    model, optimizer = updated(5)
    heard = Listening()
    with watch(model, backend=heard, log_freq=4, verbose=False):
        for _ in range(8):
            one_update(model, [optimizer])
    assert [frame.step for frame in heard.frames] == [8, 12]


def test_an_evaluation_before_the_first_step_is_one_at_that_step(tmp_path: Path) -> None:
    model, optimizer = updated()
    where: Any = {"backend": "record", "logdir": tmp_path, "verbose": False}
    with watch(model, log_freq=1, phases=("train", "eval"), name="net", **where) as watcher:
        model.eval()
        loss_of(model)
        model.train()
        one_update(model, [optimizer])
    run = open_run(str(watcher.run_dir))
    assert [run.model(name).steps.tolist() for name in ("net", "net (eval)")] == [[BEFORE], [BEFORE]]


@pytest.mark.parametrize("step", [0, 2, 100])
def test_a_step_that_is_set_by_hand_stays(step: int) -> None:
    model, optimizer = updated()
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        watcher.step = step
        assert watcher.step == step
        for _ in range(2):
            one_update(model, [optimizer])
    assert [frame.step for frame in heard.frames] == [step, step + 1]


@pytest.mark.parametrize(("seen", "first"), [(2, 2 + 3), (BEFORE, BEFORE + 3)])
def test_a_watch_that_takes_over_goes_on_where_the_one_before_it_ends(seen: int, first: int, tmp_path: Path) -> None:
    model, optimizer = updated()
    with watch(model, backend="record", logdir=tmp_path, log_freq=1, verbose=False) as watcher:
        watcher.step = seen
        for _ in range(3):
            one_update(model, [optimizer])
        again = watch(model, backend="record", logdir=tmp_path, log_freq=1, verbose=False)
        one_update(model, [optimizer])
    assert again.step == first + 1
    again.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "recorded", [pytest.param(3, id="fewer"), pytest.param(BEFORE, id="as many"), pytest.param(9, id="more")]
)
def test_a_run_folder_that_is_used_again_is_joined_without_a_warning(recorded: int, tmp_path: Path) -> None:
    where: Any = {"backend": "record", "logdir": tmp_path, "run": "r", "log_freq": 1, "verbose": False}
    model, optimizer = network(), None
    with watch(model, **where):
        [optimizer] = only(torch.optim.Adam)(model)
        for _ in range(recorded):
            one_update(model, [optimizer])
    resumed_model, resumed_optimizer = updated()
    with watch(resumed_model, **where) as watcher:
        one_update(resumed_model, [resumed_optimizer])
    joined = open_run(str(watcher.run_dir)).model()
    assert joined.steps.tolist() == sorted({*range(recorded), BEFORE})
    assert joined.finished is not None
    assert joined.finished.notes == ()


@pytest.mark.parametrize("recorded", [pytest.param(3, id="fewer"), pytest.param(9, id="more")])
def test_a_run_that_wandb_resumes_goes_on_at_the_higher_number(
    recorded: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: Any = {"backend": "record", "logdir": tmp_path, "run": "r", "log_freq": 1, "verbose": False}
    model, optimizer = updated(0)
    with watch(model, **where):
        for _ in range(recorded):
            one_update(model, [optimizer])
    monkeypatch.setattr(first_step, "resumed_run", lambda *_: Resumed("W&B", None, is_certain=True))
    resumed_model, resumed_optimizer = updated()
    with watch(resumed_model, **where) as watcher:
        one_update(resumed_model, [resumed_optimizer])
    assert watcher.step == max(recorded, BEFORE) + 1


def test_passes_are_counted_from_zero_where_no_optimizer_moves_the_model() -> None:
    model, other = network(), updated()
    heard = Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False):
        for _ in range(2):
            loss_of(model).backward()
            one_update(other[0], [other[1]])
    assert [frame.step for frame in heard.frames] == [0, 1]


@pytest.mark.parametrize(
    ("count", "updates"),
    [
        pytest.param(7, 7, id="an int"),
        pytest.param(torch.tensor(7.0), 7, id="a tensor"),
        pytest.param(torch.tensor([7]), 7, id="a tensor of one"),
        pytest.param(torch.tensor([7, 7]), 0, id="a tensor of two"),
        pytest.param(torch.empty((), device="meta"), 0, id="on the meta device"),
        pytest.param(torch.tensor(float("nan")), 0, id="NaN"),
        pytest.param(float("inf"), 0, id="infinite"),
        pytest.param(-3, 0, id="negative"),
        pytest.param(2**60, 0, id="absurd"),
        pytest.param(10**400, 0, id="more than a float holds"),
        pytest.param("7", 0, id="a str"),
        pytest.param(None, 0, id="None"),
    ],
)
def test_only_a_number_is_taken_for_a_count(count: object, updates: int) -> None:
    model, optimizer = updated(1)
    for state in optimizer.state.values():
        state["step"] = count
    assert updates_by(optimizer) == updates
    optimizer.state[model] = [7]  # type: ignore[index]
    assert updates_by(optimizer) == updates


class CountingFromOne(torch.optim.SGD):
    """Counts in its groups, from 1 on, as pytorch_optimizer's Prodigy does."""

    def __init__(self, params: Any, **options: Any) -> None:
        super().__init__(params, **options)
        self.defaults["step"] = 1
        for group in self.param_groups:
            group["step"] = 1

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            group["step"] += 1
        return super().step(closure)


@pytest.mark.parametrize("updates", [0, BEFORE])
def test_a_count_that_begins_at_one_does_not_count_an_update_that_was_not_made(updates: int) -> None:
    model = network()
    optimizer = CountingFromOne(model.parameters(), lr=0.1)
    for _ in range(updates):
        one_update(model, [optimizer])
    with watch(model, backend=Listening(), verbose=False) as watcher:
        assert watcher.step == updates
        one_update(model, [optimizer])
        assert watcher.step == updates + 1


@pytest.mark.slow  # imports Lightning
@pytest.mark.xdist_group("frameworks")
@pytest.mark.filterwarnings("ignore")  # what Lightning advises
def test_a_lightning_module_whose_optimizer_keeps_no_count_goes_on_at_its_trainers(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    demos = pytest.importorskip("lightning.pytorch.demos.boring_classes")  # its optimizer is SGD

    def trained(checkpoint: str | None = None, **length: int) -> tuple[list[int], str]:
        model, heard = demos.BoringModel(), Listening()
        quiet: Any = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        trainer = lightning.Trainer(
            limit_val_batches=0, accelerator="cpu", default_root_dir=tmp_path, **quiet, **length
        )
        with watch(model, backend=heard, log_freq=1, verbose=False):
            trainer.fit(model, ckpt_path=checkpoint)
        trainer.save_checkpoint(tmp_path / "last.ckpt")
        return [frame.step for frame in heard.frames], str(tmp_path / "last.ckpt")

    first, checkpoint = trained(max_steps=4)
    assert first == [0, 1, 2, 3]
    assert trained(checkpoint, max_steps=6)[0] == [4, 5]
