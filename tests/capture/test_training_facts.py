"""The facts of the live step are what code in the training loop sees by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler

from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.capture.facts.first_gradients import first_gradients
from torchgraph_explorer.schema import TrainingFacts

Loop = Callable[[Any, Callable[..., None]], None]
STEPS = 5


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))


def loss_of(model: Any, samples: int = 8) -> Tensor:
    result: Tensor = model(torch.randn(samples, 4)).square().mean()
    return result


def norm(model: Any) -> float:
    return float(torch.stack([one.grad.norm() for one in model.parameters() if one.grad is not None]).norm())


def recorded(loop: Loop, **options: Any) -> tuple[list[TrainingFacts], list[dict[str, Any]]]:
    """The facts of each step, and what the loop saw."""
    model, heard, seen = network(), Listening(), list[dict[str, Any]]()
    with watch(model, log_freq=1, backend=heard, verbose=False, **options):
        loop(model, lambda **values: seen.append(values))
    assert heard.finished.notes == ()
    return [one.training for one in heard.frames if one.training is not None], seen


def scheduled(model: Any, see: Callable[..., None]) -> None:
    optimizer = torch.optim.AdamW(
        [{"params": model[0].parameters(), "lr": 0.01}, {"params": model[1:].parameters()}], 0.1, weight_decay=0.02
    )
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, samples=4 + step).backward()
        see(
            batch_size=4 + step,
            rates=[group["lr"] for group in optimizer.param_groups],
            decays=[group["weight_decay"] for group in optimizer.param_groups],
            sizes=[len(group["params"]) for group in optimizer.param_groups],
        )
        optimizer.step()
        schedule.step()


def test_batch_size_and_parameter_groups_are_those_of_the_loop() -> None:
    facts, seen = recorded(scheduled)
    found = [
        {
            "batch_size": one.batch_size,
            "rates": [group.learning_rate for group in one.groups],
            "decays": [group.weight_decay for group in one.groups],
            "sizes": [len(group.parameters) for group in one.groups],
        }
        for one in facts
    ]
    assert found == seen
    assert {(group.optimizer, group.is_decoupled) for one in facts for group in one.groups} == {("AdamW", True)}


def test_parameter_groups_are_known_where_the_optimizer_calls_the_model_itself() -> None:
    def loop(model: Any, see: Callable[..., None]) -> None:
        optimizer = torch.optim.AdamW(model.parameters(), 0.01, weight_decay=0.02)

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = loss_of(model)
            loss.backward()
            return loss

        for _ in range(STEPS):
            optimizer.step(closure)
            see(size=len(optimizer.param_groups[0]["params"]))

    facts, seen = recorded(loop)
    found = [
        [(one.optimizer, one.learning_rate, one.weight_decay, len(one.parameters)) for one in each.groups]
        for each in facts
    ]
    assert found == [[("AdamW", 0.01, 0.02, one["size"])] for one in seen]


@pytest.mark.parametrize("limit", [0.05, 1e3])
def test_norms_are_those_before_and_after_clipping(limit: float) -> None:
    def loop(model: Any, see: Callable[..., None]) -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss_of(model).backward()
            before = norm(model)
            nn.utils.clip_grad_norm_(model.parameters(), limit)
            see(before=before, after=norm(model))
            optimizer.step()

    facts, seen = recorded(loop)
    assert [one.gradient_norm for one in facts] == pytest.approx([one["before"] for one in seen])
    assert [one.clipped_norm for one in facts] == pytest.approx([one["after"] for one in seen])


def test_the_loss_scale_is_taken_out_and_skipped_updates_are_counted() -> None:
    def loop(model: Any, see: Callable[..., None]) -> None:
        optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), GradScaler("cpu", init_scale=256.0)
        skipped = 0
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = loss_of(model) * (float("inf") if step == 2 else 1.0)
            scaler.scale(loss).backward()
            scale = scaler.get_scale()
            scaler.unscale_(optimizer)
            skipped += step == 2
            see(scale=scale, norm=norm(model), skipped=skipped)
            scaler.step(optimizer)
            scaler.update()

    facts, seen = recorded(loop)
    assert [one.loss_scale for one in facts] == [one["scale"] for one in seen]
    assert [one.skipped for one in facts] == [one["skipped"] for one in seen]
    for one, here in zip(facts, seen, strict=True):
        if one.gradient_norm is not None:
            assert (one.gradient_norm, one.clipped_norm) == pytest.approx((here["norm"], here["norm"]))
    assert [one.gradient_norm is None for one in facts] == [False, False, True, False, False]


def missing_parts(model: Any, see: Callable[..., None]) -> None:
    """Some parameters have no optimizer, some are frozen, some are written to, some modules are in eval mode."""
    model[1].eval()
    model[3].bias.requires_grad_(False)
    optimizer = torch.optim.SGD([model[0].weight, *model[1].parameters(), model[3].bias], 0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
        with torch.no_grad():
            model[3].weight.mul_(0.9)
        see()


def test_parts_that_do_not_take_part_are_named() -> None:
    facts, _ = recorded(missing_parts)
    assert {one.without_optimizer for one in facts} == {("0.bias", "3.weight")}
    assert {one.frozen_in_optimizer for one in facts} == {("3.bias",)}
    assert {one.written for one in facts[1:]} == {("3.weight",)}
    assert {one.other_mode for one in facts} == {("1",)}
    assert {one.without_gradient for one in facts} == {()}


def test_parameters_without_gradient_are_named() -> None:
    def loop(model: Any, see: Callable[..., None]) -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(STEPS):
            optimizer.zero_grad()
            model[3](model[:3](torch.randn(8, 4)).detach()).sum().backward()
            see(without=tuple(name for name, one in model.named_parameters() if one.grad is None))
            optimizer.step()

    facts, seen = recorded(loop)
    assert [one.without_gradient for one in facts] == [one["without"] for one in seen]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clear", "expected"),
    [
        pytest.param(lambda model, optimizer: optimizer.zero_grad(), 0, id="to None"),
        pytest.param(lambda model, optimizer: optimizer.zero_grad(set_to_none=False), 0, id="to zero"),
        pytest.param(lambda model, optimizer: None, 6, id="never"),
        pytest.param(lambda model, optimizer: model[3].zero_grad(), 4, id="of the head alone"),
    ],
)
@pytest.mark.parametrize("passes", [1, 3])
def test_gradients_that_were_left_are_named(clear: Callable[[Any, Any], object], expected: int, passes: int) -> None:
    def loop(model: Any, see: Callable[..., None]) -> None:
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for _ in range(STEPS):
            clear(model, optimizer)
            left = [name for name, one in model.named_parameters() if one.grad is not None and one.grad.any()]
            for _ in range(passes):
                loss_of(model).backward()
            see(left=tuple(left))
            optimizer.step()

    facts, seen = recorded(loop)
    assert [one.leftover for one in facts[1:]] == [one["left"] for one in seen[1:]]
    assert (facts[0].leftover, len(facts[-1].leftover or ())) == (None, expected)


def test_units_are_counted_as_by_hand() -> None:
    def loop(model: Any, see: Callable[..., None]) -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.0)
        outputs: list[Tensor] = []
        model[2].register_forward_hook(lambda _module, _inputs, output: outputs.append(output.detach()))
        with torch.no_grad():
            model[1].bias[:2] = -20
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
            see(
                zero=int((torch.cat(outputs) == 0).all(0).sum()),
                constant=int((outputs[-1] == outputs[-1][0]).all(0).sum()),
            )

    facts, seen = recorded(loop)
    units = [next(each for each in one.units if each.module == "2") for one in facts]
    assert [{"zero": one.zero, "constant": one.constant} for one in units] == seen
    assert [(one.units, one.steps) for one in units] == [(6, step + 1) for step in range(STEPS)]


def test_a_model_that_is_trained_in_eval_mode_is_recorded() -> None:
    def loop(model: Any, see: Callable[..., None]) -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(9):
            model.train(mode=step in {0, 1, 7, 8})
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
            see()

    facts, _ = recorded(loop)
    assert [one.is_training for one in facts] == [True, True, False, False, False, True, True]


def test_first_gradients_are_those_of_ordinary_parameters_of_the_first_group() -> None:
    class Own(torch.Tensor):
        """Not ordinary."""

    first, own, late, second = (nn.Parameter(torch.ones(2)) for _ in range(4))
    odd = torch.ones(2).as_subclass(Own).requires_grad_()
    for one in (odd, own, late, second):
        one.grad = torch.ones(2)
    groups: list[dict[str, Any]] = [{"params": [first, odd, own, late]}, {"params": [second]}]
    optimizer = torch.optim.SGD(groups, 0.1)
    assert [(at, one) for at, one, _ in first_gradients(optimizer, 3)] == [(2, own)]
