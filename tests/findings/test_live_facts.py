"""Trainings whose loop is wrong in a way that only the live step shows are told, and their healthy twins are not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.tables import matrix, thinned
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.rules.rule import listed, mostly_held

pytestmark = pytest.mark.slow

Loop = Callable[[Any], Iterator[object]]
STEPS = 24


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3)
    )


def loss_of(model: Any, samples: int = 32) -> Tensor:
    inputs = 2 * torch.randn(samples, 8)
    return nn.functional.cross_entropy(model(inputs), inputs.argmax(1) % 3)


def sgd(model: Any, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD((one for one in model.parameters()), **{"lr": 0.1, **options})


def plain(model: Any, optimizer: torch.optim.Optimizer | None = None, **options: Any) -> Iterator[object]:
    optimizer = optimizer or sgd(model, **options)
    while True:
        optimizer.zero_grad()
        loss_of(model).backward()
        yield optimizer.step()


def never_cleared(model: Any) -> Iterator[object]:
    optimizer = sgd(model)
    while True:
        loss_of(model).backward()
        yield optimizer.step()


def cleared_in_part(model: Any) -> Iterator[object]:
    optimizer = sgd(model)
    while True:
        model[6].zero_grad()
        loss_of(model).backward()
        yield optimizer.step()


def cleared_between(model: Any, *, set_to_none: bool) -> Iterator[object]:
    optimizer = sgd(model)
    while True:
        loss_of(model).backward()
        optimizer.zero_grad(set_to_none=set_to_none)
        yield optimizer.step()


def cleared_after(model: Any) -> Iterator[object]:
    optimizer = sgd(model)
    while True:
        loss_of(model).backward()
        optimizer.step()
        yield optimizer.zero_grad()


def cleared_late(model: Any) -> Iterator[object]:
    optimizer = sgd(model)
    while True:
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        yield optimizer.step()


def set_to_zero(model: Any) -> Iterator[object]:
    optimizer = sgd(model)
    while True:
        optimizer.zero_grad(set_to_none=False)
        loss_of(model).backward()
        yield optimizer.step()


def accumulated(model: Any, *, set_to_none: bool = True) -> Iterator[object]:
    optimizer = sgd(model)
    while True:
        for _ in range(3):
            (loss_of(model) / 3).backward()
        optimizer.step()
        yield optimizer.zero_grad(set_to_none=set_to_none)


def several_optimizers(model: Any) -> Iterator[object]:
    optimizers = [torch.optim.Adam(model[at].parameters(), 1e-3) for at in (0, 1, 4, 6)]
    while True:
        for one in optimizers:
            one.zero_grad()
        loss_of(model).backward()
        for one in optimizers:
            one.step()
        yield None


def slow_optimizer(model: Any) -> Iterator[object]:
    """The head is updated every third step, with the gradients of all three."""
    quick, slow = sgd(model[:6]), sgd(model[6])
    while True:
        for at in range(3):
            quick.zero_grad()
            loss_of(model).backward()
            quick.step()
            if at == 2:
                slow.step()
                slow.zero_grad()
            yield None


def adversaries(model: Any) -> Iterator[object]:
    """The second half is a critic, through which the first half gets its gradient; that leaves gradients in it."""
    maker, critic = sgd(model[:4]), sgd(model[4:])
    while True:
        critic.zero_grad()
        loss_of(model).backward()
        yield critic.step()
        maker.zero_grad()
        loss_of(model).neg().backward()
        yield maker.step()


def in_turn(model: Any, *, clears: str) -> Iterator[object]:
    """As `adversaries`, but something is wrong with the gradients of the first half."""
    maker, critic = sgd(model[:4]), sgd(model[4:])
    while True:
        for _ in range(2):
            critic.zero_grad()
            loss_of(model).backward()
            yield critic.step()
        if clears == "late":
            maker.zero_grad()
        loss_of(model).neg().backward()
        if clears == "late":
            maker.zero_grad()
        yield maker.step()


def in_backward(model: Any) -> Iterator[object]:
    optimizers = {one: torch.optim.SGD([one], 0.05) for one in model.parameters()}

    def update(parameter: Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for one in model.parameters():
        one.register_post_accumulate_grad_hook(update)
    while True:
        yield loss_of(model).backward()


def by_closure(model: Any) -> Iterator[object]:
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    while True:
        yield optimizer.step(closure)


def closures_in_turn(model: Any) -> Iterator[object]:
    """Each optimizer clears the gradients of its own half, when its closure is called."""
    parameters = list(model.parameters())
    half = len(parameters) // 2
    optimizers = [torch.optim.SGD(some, lr=0.05) for some in (parameters[:half], parameters[half:])]

    def closure(optimizer: torch.optim.Optimizer) -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    while True:
        yield [one.step(partial(closure, one)) for one in optimizers]


def clipped(model: Any, limit: float, optimizer: torch.optim.Optimizer | None = None) -> Iterator[object]:
    optimizer = optimizer or sgd(model)
    while True:
        optimizer.zero_grad()
        loss_of(model).backward()
        nn.utils.clip_grad_norm_(model.parameters(), limit)
        yield optimizer.step()


def clipped_in_turn(model: Any, *, is_late: bool) -> Iterator[object]:
    """The gradients of the first of two optimizers are clipped, before or after its updates."""
    first, second = sgd(model[:4]), sgd(model[4:])
    for optimizer, part in itertools.cycle([(first, model[:4]), (second, model[4:]), (second, model[4:])]):
        model.zero_grad()
        loss_of(model).backward()
        if optimizer is first and not is_late:
            nn.utils.clip_grad_norm_(part.parameters(), 1e-3)
        yield optimizer.step()
        if optimizer is first and is_late:
            nn.utils.clip_grad_norm_(part.parameters(), 1e-3)


def without(model: Any, at: int) -> Iterator[object]:
    return plain(model, sgd(nn.ModuleList(one for number, one in enumerate(model) if number != at)))


def head_changed(model: Any) -> Iterator[object]:
    optimizer = sgd(model)
    model[6] = nn.Linear(16, 3)
    return plain(model, optimizer)


def made_late(model: Any) -> Iterator[object]:
    """Two optimizers are made after the first pass; one of them steps every second time."""
    loss = loss_of(model)
    first, second = sgd(model[:4]), sgd(model[4:])
    for step in range(1000):
        loss.backward()
        first.step()
        if step % 2:
            second.step()
        model.zero_grad()
        yield None
        loss = loss_of(model)


def moved_by_hand(model: Any) -> Iterator[object]:
    for _ in without(model, 4):
        with torch.no_grad():
            for one in model[4].parameters():
                one.sub_(0.1 * one.grad)
        yield None


def frozen(model: Any, *layers: int, given: bool = True) -> Iterator[object]:
    for layer in layers:
        model[layer].requires_grad_(False)
    kept = [one for one in model.parameters() if given or one.requires_grad]
    return plain(model, torch.optim.SGD(kept, 0.1))


def in_eval(model: Any, since: int, *names: int) -> Iterator[object]:
    training = plain(model)
    for step in range(1000):
        if step == since:
            for one in [model[name] for name in names] or [model]:
                one.eval()
        yield next(training)


def evaluated(model: Any, *, with_gradients: bool) -> Iterator[object]:
    for _ in plain(model):
        model.eval()
        with torch.set_grad_enabled(with_gradients):
            loss_of(model)
        yield model.train()


def frozen_normalisation(model: Any) -> Iterator[object]:
    with torch.no_grad():
        for _ in range(100):
            loss_of(model)
    model[1].eval().requires_grad_(False)
    return plain(model)


def told(loop: Loop, folder: Path, *, every: int = 1, model: Any | None = None) -> tuple[Finding, ...]:
    torch.manual_seed(0)
    model = model or network()
    with watch(model, log_freq=every, backend="record", logdir=folder, verbose=False):
        training = loop(model)
        for _ in range(STEPS):
            next(training)
    return open_run(folder).model().findings()


FAULTY: dict[str, tuple[Loop, str, str | None]] = {
    "gradients that are never cleared": (never_cleared, "no-zero-grad", None),
    "gradients of the head alone are cleared": (cleared_in_part, "no-zero-grad", ""),
    "gradients of one of two optimizers in turn": (lambda model: in_turn(model, clears="never"), "no-zero-grad", ""),
    "gradients of one of them, before the update": (
        lambda model: in_turn(model, clears="late"),
        "gradients-cleared",
        None,
    ),
    "gradients that are gone before the update": (
        lambda model: cleared_between(model, set_to_none=True),
        "gradients-cleared",
        None,
    ),
    "gradients that are zero before the update": (
        lambda model: cleared_between(model, set_to_none=False),
        "gradients-cleared",
        None,
    ),
    "a limit of 0.001 for the gradient": (lambda model: clipped(model, 1e-3), "clipping-always", None),
    "a limit of 0.00001 for the gradient in Adam": (
        lambda model: clipped(model, 1e-5, torch.optim.Adam(model.parameters())),
        "clipping-always",
        None,
    ),
    "a limit of 0.001 for one of two optimizers": (
        lambda model: clipped_in_turn(model, is_late=False),
        "clipping-always",
        "",
    ),
    "a limit for one of two optimizers, after its updates": (
        lambda model: clipped_in_turn(model, is_late=True),
        "clipping-after-step",
        "",
    ),
    "a weight decay of 1 in SGD": (lambda model: plain(model, weight_decay=1.0), "weight-decay-dominates", None),
    "a weight decay of 20 in AdamW": (
        lambda model: plain(model, torch.optim.AdamW(model.parameters(), 5e-3, weight_decay=20)),
        "weight-decay-dominates",
        None,
    ),
    "a layer that no optimizer has": (lambda model: without(model, 4), "not-in-optimizer", "4"),
    "a head that is made after the optimizer": (head_changed, "not-in-optimizer", "6"),
    "a frozen layer in the midst": (lambda model: frozen(model, 4), "frozen-by-accident", "4"),
    "a frozen head": (lambda model: frozen(model, 6, given=False), "frozen-by-accident", "6"),
    "eval mode from the beginning": (lambda model: in_eval(model, 0), "training-in-eval-mode", ""),
    "eval mode since an evaluation": (lambda model: in_eval(model, 8), "normalisation-in-eval", "1"),
    "a normalisation in eval mode": (lambda model: in_eval(model, 0, 1), "normalisation-in-eval", "1"),
}

HEALTHY: dict[str, Loop] = {
    "one optimizer": plain,
    "gradients that are cleared after the update": cleared_after,
    "gradients that are cleared after the forward pass": cleared_late,
    "gradients that are set to zero": set_to_zero,
    "micro-batches": accumulated,
    "micro-batches, with gradients that are set to zero": lambda model: accumulated(model, set_to_none=False),
    "an optimizer for each layer": several_optimizers,
    "an optimizer that steps every third time": slow_optimizer,
    "a network and its critic": adversaries,
    "an optimizer in the backward pass": in_backward,
    "LBFGS": by_closure,
    "optimizers that call closures in turn": closures_in_turn,
    "a limit of 1 for the gradient": lambda model: clipped(model, 1.0),
    "a limit of 0.01 for the gradient in AdamW": lambda model: clipped(
        model, 0.01, torch.optim.AdamW(model.parameters())
    ),
    "a weight decay of 0.001 in SGD": lambda model: plain(model, weight_decay=1e-3),
    "a weight decay of 0.1 in AdamW": lambda model: plain(model, torch.optim.AdamW(model.parameters(), 5e-3)),
    "optimizers that are made late": made_late,
    "a layer that is moved by hand": moved_by_hand,
    "a frozen backbone that the optimizer has": lambda model: frozen(model, 0, 1, 4),
    "a frozen backbone that it has not": lambda model: frozen(model, 0, 1, 4, given=False),
    "evaluations": lambda model: evaluated(model, with_gradients=False),
    "evaluations with gradients": lambda model: evaluated(model, with_gradients=True),
    "a frozen normalisation with statistics of its own": frozen_normalisation,
}


def with_units(change: Callable[[Any], object]) -> Loop:
    """The usual loop, after `change` to the initial weights."""

    def loop(model: Any) -> Iterator[object]:
        with torch.no_grad():
            change(model)
        return plain(model, lr=0.02)

    return loop


class Functional(nn.Module):
    """Its activations are functions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(8, 32), nn.Linear(32, 32), nn.Linear(32, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        result: Tensor = self.last(nn.functional.relu(self.second(nn.functional.relu(self.first(inputs)))))
        return result


def convolutions() -> nn.Sequential:
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 4)), nn.Conv2d(1, 16, 2), nn.ReLU(), nn.Conv2d(16, 8, 1), nn.Flatten(), nn.Linear(24, 3)
    )


def equal_rows(model: Any) -> None:
    """The two halves of the units of both layers are the same."""
    for one in (model[0], model[4]):
        one.weight[8:] = one.weight[:8]
        one.bias[8:] = one.bias[:8]
    for one in (model[4], model[6]):
        one.weight[:, 8:] = one.weight[:, :8]


UNITS: dict[str, tuple[Callable[[], nn.Module], Loop, str, str]] = {
    "10 of 16 units behind a ReLU": (
        lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)),
        with_units(lambda model: model[0].bias[:10].fill_(-50)),
        "dead-units",
        "1",
    ),
    "20 of 32 units behind F.relu": (
        Functional,
        with_units(lambda model: model.second.bias[:20].fill_(-50)),
        "dead-units",
        "second",
    ),
    "10 of 16 channels": (
        convolutions,
        with_units(lambda model: model[1].bias[:10].fill_(-50)),
        "dead-units",
        "2",
    ),
    "halves that are the same": (
        lambda: nn.Sequential(*(one if not isinstance(one, nn.Dropout) else nn.Identity() for one in network())),
        with_units(equal_rows),
        "symmetric-units",
        "0",
    ),
    "a first layer of nearly nothing": (
        Functional,
        with_units(lambda model: model.first.requires_grad_(False).weight.mul_(1e-6)),
        "collapse",
        "last",
    ),
}


@pytest.mark.parametrize(("make", "loop", "kind", "module"), UNITS.values(), ids=UNITS)
def test_single_units_that_do_nothing_are_told(
    make: Callable[[], nn.Module], loop: Loop, kind: str, module: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    found = told(loop, tmp_path, model=make())
    assert (kind, module) in {(one.kind, one.module) for one in found}


@pytest.mark.parametrize("is_late", [False, True])
def test_the_optimizer_whose_gradients_are_clipped_wrongly_is_named(is_late: bool, tmp_path: Path) -> None:
    [one] = [one for one in told(partial(clipped_in_turn, is_late=is_late), tmp_path) if "clipping" in one.kind]
    assert "recorded updates of `SGD`" in one.text
    assert one.step == 0


def test_a_sentence_begins_with_a_capital_letter(tmp_path: Path) -> None:
    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.last = nn.Linear(8, 16), nn.Linear(16, 3)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.last(nn.functional.dropout(self.layer(x), 0.9))
            return result

    dropout = next(one for one in told(plain, tmp_path, model=Dropping()) if one.kind == "dropout-extreme")
    assert dropout.text.startswith("The model drops 90% of its inputs")


def test_of_a_model_whose_output_alone_collapses_the_output_is_named_once(tmp_path: Path) -> None:
    torch.manual_seed(0)

    class Shrinking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = 1e-6 * self.layer(x) + 1
            return result

    collapse = next(one for one in told(plain, tmp_path, model=Shrinking()) if one.kind == "collapse")
    assert collapse.text.startswith("The model's output is nearly the same for all samples of a batch: from sample")


def test_of_outputs_that_are_equal_no_difference_is_told(tmp_path: Path) -> None:
    torch.manual_seed(0)

    class Pooling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.layer(x).mean(0, keepdim=True).expand(len(x), -1)
            return result

    collapse = next(one for one in told(plain, tmp_path, model=Pooling()) if one.kind == "collapse")
    assert collapse.text == "The model's output is the same for all samples of a batch."


@pytest.mark.parametrize(("make", "every"), matrix([network, Functional, convolutions], [1, 7]))
def test_of_sound_units_nothing_is_told(make: Callable[[], nn.Module], every: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    found = told(plain, tmp_path, every=every, model=make())
    assert [one for one in found if one.kind in {"dead-units", "symmetric-units", "collapse"}] == []


def test_units_of_which_each_sample_has_few_are_not_dead(tmp_path: Path) -> None:
    def loop(model: Any) -> Iterator[object]:
        optimizer = sgd(model, lr=0.01)
        while True:
            optimizer.zero_grad()
            inputs = torch.eye(64)[torch.randint(64, (256,))]
            (model(inputs) - inputs).square().mean().backward()
            yield optimizer.step()

    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(64))  # type: ignore[operator]
        model[0].bias.fill_(-0.1)  # type: ignore[operator]
    assert "dead-units" not in {one.kind for one in told(loop, tmp_path, model=model)}


def test_outputs_that_are_asked_to_be_nearly_alike_have_not_collapsed(tmp_path: Path) -> None:
    """As of a pressure in hectopascals: the bias begins at the mean of the targets."""

    def loop(model: Any) -> Iterator[object]:
        nn.init.constant_(model[2].bias, 1013.0)
        optimizer = sgd(model, lr=0.01)
        while True:
            optimizer.zero_grad()
            inputs = torch.randn(32, 8)
            (model(inputs) - 1013 - 0.1 * inputs[:, :1]).square().mean().backward()
            yield optimizer.step()

    found = told(loop, tmp_path, model=nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)))
    assert "collapse" not in {one.kind for one in found}


OURS = {kind for _, kind, _ in FAULTY.values()} | {"batch-of-one", "training-in-eval-mode"}


@pytest.mark.parametrize(("loop", "kind", "module"), FAULTY.values(), ids=FAULTY)
def test_a_wrong_loop_is_told(loop: Loop, kind: str, module: str | None, tmp_path: Path) -> None:
    found = told(loop, tmp_path)
    assert (kind, module) in {(one.kind, one.module) for one in found}


@pytest.mark.parametrize("every", thinned([1, 7], 0))
@pytest.mark.parametrize("loop", HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_loop_is_not_told(loop: Loop, every: int, tmp_path: Path) -> None:
    found = told(loop, tmp_path, every=every)
    assert [one for one in found if one.kind in OURS and one.severity != "info"] == []


def scaled(model: Any, start: float) -> Iterator[object]:
    """A scaler that `watch` is not told of, whose scale grows, or falls as the first updates are skipped."""
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu", init_scale=start, growth_interval=6)
    while True:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = loss_of(model)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield None


@pytest.mark.parametrize("start", [2.0**6, 2.0**20])
def test_a_loss_scale_that_watch_is_not_told_of_is_no_fault(start: float, tmp_path: Path) -> None:
    found = told(lambda model: scaled(model, start), tmp_path)
    assert [one.kind for one in found if one.severity != "info"] == []


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param("000000001111101111011111", [8, 9, 10, 11, 12, 14, 15, 16, 17, 19, 20, 21, 22, 23], id="breaks"),
        pytest.param("000000001111111111100000", None, id="over"),
        pytest.param("000000000000000000000111", None, id="late"),
        pytest.param("101010101010101010101010", None, id="every other one"),
        pytest.param("1", None, id="a single one"),
    ],
)
def test_a_condition_mostly_holds_with_a_few_breaks(flags: str, expected: list[int] | None) -> None:
    kept = mostly_held(np.array([one == "1" for one in flags]), share=0.25, breaks=0.2)
    assert (None if kept is None else kept.tolist()) == expected


@pytest.mark.parametrize(
    ("batch", "size", "expected"),
    [
        pytest.param(1, 6, [("1", "warning")], id="one sample"),
        pytest.param(2, 6, [], id="two samples"),
        pytest.param(1, 20, [("1", "info")], id="one image"),
    ],
)
def test_a_normalisation_of_single_samples_is_told(
    batch: int, size: int, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    def loop(model: Any) -> Iterator[object]:
        optimizer = sgd(model, lr=1e-3)
        while True:
            optimizer.zero_grad()
            model(torch.randn(batch, 1, size, size)).square().mean().backward()
            yield optimizer.step()

    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.LazyLinear(1))
    model(torch.randn(2, 1, size, size))
    found = told(loop, tmp_path, model=model)
    assert [(one.module, one.severity) for one in found if one.kind == "batch-of-one"] == expected


def test_units_that_a_penalty_makes_sparse_are_no_fault(tmp_path: Path) -> None:
    def loop(model: Any) -> Iterator[object]:
        nn.init.constant_(model[0].bias, -1.0)
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        while True:
            optimizer.zero_grad()
            (loss_of(model) + 1e-2 * model[0].weight.abs().sum()).backward()
            yield optimizer.step()

    torch.manual_seed(0)
    found = told(loop, tmp_path, model=nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3)))
    assert [one.severity for one in found if one.kind == "dead-units"] in ([], ["info"])


@pytest.mark.parametrize(
    ("loop", "begins"),
    [
        (
            lambda model: in_eval(model, 0),
            "At all recorded steps, the model is trained in eval mode: its 1 dropout layer ",
        ),
        (
            lambda model: in_eval(model, 8),
            "From step 10 on, the model is trained in eval mode: its 1 dropout layer does ",
        ),
    ],
    ids=["from the beginning", "since an evaluation"],
)
def test_eval_mode_is_told_with_its_steps(loop: Loop, begins: str, tmp_path: Path) -> None:
    [one] = [one for one in told(loop, tmp_path) if one.kind == "training-in-eval-mode"]
    assert one.text.startswith(begins)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a", "`a`"),
        ("ab", "`a` and `b`"),
        ("abcd", "`a`, `b`, `c` and `d`"),
        ("abcdef", "`a`, `b`, `c` and 3 more"),
        ("`", "`'`"),
    ],
)
def test_a_sentence_lists_up_to_four_names(names: str, expected: str) -> None:
    assert listed(list(names)) == expected


def test_units_of_passes_before_the_training_are_not_told(tmp_path: Path) -> None:
    def writing(model: Any) -> Iterator[object]:
        start = torch.randn(3, 8)
        while True:
            yield model(start).sum()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))
    with torch.no_grad():
        model.get_parameter("0.bias").sub_(0.8)
    assert "dead-units" not in {one.kind for one in told(writing, tmp_path, model=model)}
