"""Parts of a model that take no part in its training: told where they are, and not where that is meant."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.findings.test_made_wrong import STEPS, found, kinds, sgd

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def squares(model: Any) -> Tensor:
    result: Tensor = (model(torch.randn(16, 8)) - 1).square().mean()
    return result


# Parameters that torch does not find


class Held(nn.Module):
    """A network with a layer in the middle that is kept in some way."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)
        layer = nn.Linear(16, 16)
        keep: dict[str, Callable[[], object]] = {
            "list": lambda: [layer],
            "dictionary of lists": lambda: {"layers": (layer,)},
            "tensor": lambda: layer.weight.detach().clone().requires_grad_(),
            "registered": lambda: nn.ModuleList([layer]),
            "registered elsewhere": lambda: [self.first],
            "in eval mode": lambda: [layer.eval()],
            "frozen": lambda: [layer.requires_grad_(False)],
        }
        self.kept: Any = keep[way]()

    def forward(self, inputs: Tensor) -> Tensor:
        values = self.first(inputs).relu()
        kept = self.kept["layers"] if isinstance(self.kept, dict) else self.kept
        if isinstance(kept, Tensor):
            values = values @ kept
        elif kept[0] is not self.first:
            values = kept[0](values)
        result: Tensor = self.last(values.relu())
        return result


@pytest.mark.parametrize(
    ("way", "name"),
    [
        ("list", "kept[0].weight"),
        ("dictionary of lists", "kept['layers'][0].weight"),
        ("tensor", "kept"),
        ("registered", None),
        ("registered elsewhere", None),
        ("in eval mode", None),
        ("frozen", None),
    ],
)
def test_a_layer_that_torch_does_not_find_is_not_in_the_optimizer(way: str, name: str | None, tmp_path: Path) -> None:
    model = nn.Sequential(Held(way))
    told = found(tmp_path, model, sgd(model), loss=squares)
    assert [one[:3] for one in kinds(told)] == ([("not-in-optimizer", "warning", "0")] if name else [])
    assert all(f"`0.{name}`" in one.text for one in told)


@pytest.mark.parametrize("way", ["given to the optimizer", "written to by hand"])
def test_a_layer_that_torch_does_not_find_may_be_trained_all_the_same(way: str, tmp_path: Path) -> None:
    model = Held("list")
    hidden = list(model.kept[0].parameters())
    given = hidden if way == "given to the optimizer" else []
    optimizer = torch.optim.SGD([*model.parameters(), *given], 0.1)

    def update(_: int) -> None:
        for one in hidden:
            one.data.sub_(0.01 * one.grad)
            one.grad = None

    after = (lambda _: None) if given else update
    assert kinds(found(tmp_path, model, optimizer, loss=squares, after=after)) == []


# Layers that the forward pass makes


class Making(nn.Module):
    """A network whose forward pass gets a layer in some way."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.first, self.last = way, nn.Linear(8, 16), nn.Linear(16, 3)
        self.lazy: nn.Module | None = None

    def layer(self) -> nn.Module:
        made: dict[str, Callable[[], nn.Module]] = {
            "linear": lambda: nn.Linear(16, 16),
            "normalisation": lambda: nn.LayerNorm(16),
            "without parameters": lambda: nn.LayerNorm(16, elementwise_affine=False),
            "frozen": lambda: nn.Linear(16, 16).requires_grad_(False),
            "kept": lambda: nn.Linear(16, 16),
            "trained within": lambda: trained_alone(nn.Linear(16, 16)),
            "copy": lambda: copy.deepcopy(self.first),
        }
        return made[self.way]()

    def forward(self, inputs: Tensor) -> Tensor:
        if self.way == "kept":
            self.lazy = self.lazy or self.layer()
        values = self.first(inputs).relu()
        layer = self.lazy or self.layer()
        values = layer(inputs if self.way == "copy" else values)
        result: Tensor = self.last(values.relu())
        return result


def trained_alone(layer: nn.Linear) -> nn.Linear:
    """A layer after some updates of its own, with gradients of the last of them."""
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        layer(torch.ones(4, 16)).square().mean().backward()
        optimizer.step()
    return layer


@pytest.mark.parametrize(
    ("way", "sizes"),
    [
        ("linear", "`[16, 16]` and `[16]`"),
        ("normalisation", "`[16]`"),
        ("without parameters", None),
        ("frozen", None),
        ("trained within", None),
        ("copy", None),
    ],
)
def test_a_layer_that_the_forward_pass_makes_is_in_no_optimizer(way: str, sizes: str | None, tmp_path: Path) -> None:
    model = nn.Sequential(Making(way))
    told = [one for one in found(tmp_path, model, sgd(model), loss=squares) if one.kind == "not-in-optimizer"]
    assert [one[:3] for one in kinds(told)] == ([("not-in-optimizer", "warning", "0")] if sizes else [])
    assert all(f"makes parameters of its own, with the sizes {sizes}" in one.text for one in told)


@pytest.mark.parametrize("is_given", [False, True])
def test_a_layer_that_the_first_forward_pass_makes_and_keeps_is_one_of_the_model(
    is_given: bool, tmp_path: Path
) -> None:
    model = nn.Sequential(Making("kept"))
    optimizer = sgd(model)

    def loss(model: Any) -> Tensor:
        result = squares(model)
        if is_given and len(optimizer.param_groups) == 1:
            optimizer.add_param_group({"params": [*model[0].lazy.parameters()]})
        return result

    told = [one for one in found(tmp_path, model, optimizer, loss=loss) if "of its own" in one.text]
    assert told == []


def test_layers_that_the_forward_pass_makes_train_as_unwatched(tmp_path: Path) -> None:
    def trained(*, is_watched: bool) -> list[Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(Making("linear"), Making("normalisation"), nn.Linear(3, 3))
        model[1].first = nn.Linear(3, 16)
        optimizer = sgd(model)
        if is_watched:
            found(tmp_path, model, optimizer, loss=squares)
        else:
            for _ in range(STEPS):
                optimizer.zero_grad()
                squares(model).backward()
                optimizer.step()
        return [one.detach() for one in model.parameters()]

    pairs = zip(trained(is_watched=True), trained(is_watched=False), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


# Parameters of a model's own, beside layers


class Positions(nn.Module):
    """Tokens with positions, which are a parameter of the model itself."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)
        self.offset = nn.Parameter(torch.randn(16))

    def forward(self, inputs: Tensor) -> Tensor:
        result: Tensor = self.last((self.first(inputs) + self.offset).relu())
        return result


@pytest.mark.parametrize(
    ("wanted", "severity"),
    [
        pytest.param(lambda name: name != "offset", "warning", id="parameters alone"),
        pytest.param(lambda name: name.startswith("last"), "info", id="a backbone"),
    ],
)
def test_parameters_around_layers_that_are_trained_are_no_backbone(
    wanted: Callable[[str], bool], severity: str, tmp_path: Path
) -> None:
    model = Positions()
    optimizer = torch.optim.SGD([one for name, one in model.named_parameters() if wanted(name)], 0.1)
    told = kinds(found(tmp_path, model, optimizer, loss=squares))
    assert told[0] == ("not-in-optimizer", severity, "", 0)


# Layers that run without a graph


class Adapted(nn.Module):
    """A frozen layer, and a small one beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.base, self.adapter = nn.Linear(8, 32).requires_grad_(False), nn.Linear(8, 32, bias=False)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, inputs: Tensor) -> Tensor:
        values = nn.functional.linear(inputs, self.base.weight, self.base.bias)
        return (values + self.adapter(inputs)) * self.scale


class Checkpointed(nn.Module):
    """A body in a checkpoint of which torch's old kind passes no gradient to, and a head."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(32, 3)
        self.is_reentrant = True

    def forward(self, inputs: Tensor) -> Tensor:
        values = checkpoint(self.body, inputs, use_reentrant=self.is_reentrant)
        result: Tensor = self.head(values.relu())
        return result


@pytest.mark.parametrize(
    "way", ["frozen one by one", "not reentrant", "all of it", "all of it, new", "not given to the optimizer"]
)
def test_an_adapter_in_a_checkpoint_without_gradients_is_told(way: str, tmp_path: Path) -> None:
    model = Checkpointed(nn.Sequential(nn.Linear(8, 32)) if way.startswith("all of it") else Adapted())
    if way == "all of it":  # trained before, and maybe not to be trained any more
        nn.init.normal_(next(model.parameters()), 0, 0.3)
    model.is_reentrant = way != "not reentrant"
    given = model.head if way == "not given to the optimizer" else model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that inputs require no gradient
        told = found(tmp_path, model, sgd(given), loss=squares)
    severity = [one.severity for one in told if one.kind == "no-gradient"]
    assert (
        severity
        == {
            "frozen one by one": ["warning", "warning"],
            "not reentrant": [],
            "all of it": ["info"],
            "all of it, new": ["warning"],
            "not given to the optimizer": ["info", "info"],
        }[way]
    )


# Optimizers that never step


@pytest.mark.parametrize("log_freq", [1, 10])
@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("never", [("not-in-optimizer", "warning", "last", 0)]),
        ("late", []),
        ("at a rate of zero", [("not-in-optimizer", "warning", "last", 0)]),
        ("at a rate of zero, of the first layer", [("not-in-optimizer", "info", "first", 0)]),
        ("at a rate of zero at first", []),
        ("never, of an own parameter", []),
    ],
)
def test_an_optimizer_that_never_steps_is_told(way: str, told: list[object], log_freq: int, tmp_path: Path) -> None:
    model = Positions()
    others = {
        "never, of an own parameter": {"offset"},
        "at a rate of zero, of the first layer": {"first.weight", "first.bias"},
    }
    other = others.get(way, {"last.weight", "last.bias"})
    optimizer = torch.optim.SGD([one for name, one in model.named_parameters() if name not in other], 0.01)
    rate = 0.0 if "zero" in way else 0.01
    second = torch.optim.SGD([one for name, one in model.named_parameters() if name in other], rate)

    def after(step: int) -> None:
        if way == "at a rate of zero at first" and step == 60:
            second.param_groups[0]["lr"] = 0.01
        if "zero" in way or (way == "late" and step >= 60):
            second.step()
        second.zero_grad()

    findings = found(tmp_path, model, optimizer, loss=squares, after=after, steps=120, log_freq=log_freq)
    assert [one for one in kinds(findings) if one[0] == "not-in-optimizer"] == told


# Layers of a recurrence


class Last(nn.Module):
    """Reads the last state of one of the layers of a recurrence."""

    def __init__(self, layer: int) -> None:
        super().__init__()
        self.body, self.head, self.layer = nn.LSTM(8, 16, num_layers=2, batch_first=True), nn.Linear(16, 3), layer

    def forward(self, inputs: Tensor) -> Tensor:
        result: Tensor = self.head(self.body(inputs)[1][0][self.layer])
        return result


@pytest.mark.parametrize(("layer", "is_told"), [(0, True), (-1, False)])
def test_a_layer_of_a_recurrence_that_nothing_reads_is_told(layer: int, is_told: bool, tmp_path: Path) -> None:
    model = Last(layer)
    told = found(tmp_path, model, sgd(model), loss=lambda watched: (watched(torch.randn(16, 5, 8)) - 1).square().mean())
    assert kinds(told) == ([("no-gradient", "warning", "body", 0)] if is_told else [])
    assert all("of layer 1" in one.text for one in told)


# Copies


class Ensemble(nn.Module):
    """The mean of several networks."""

    def __init__(self, way: str) -> None:
        super().__init__()
        one = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        other = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        self.members = nn.ModuleList([one, other if way == "others" else copy.deepcopy(one)])
        if way == "a copy that follows":
            self.members[1].requires_grad_(False)
        if way == "shared weights":
            for first, second in zip(one, cast("nn.Sequential", self.members[1]), strict=True):
                if isinstance(first, nn.Linear):
                    second.weight, second.bias = first.weight, first.bias
        self.drop = nn.Dropout(0.3 if way == "other samples" else 0.0)

    def forward(self, inputs: Tensor) -> Tensor:
        result: Tensor = self.members[0](inputs) + self.members[1](self.drop(inputs))
        return result


@pytest.mark.parametrize("way", ["copies", "others", "other samples", "a copy that follows", "shared weights"])
def test_modules_that_stay_copies_of_each_other_are_told(way: str, tmp_path: Path) -> None:
    model = Ensemble(way)

    def follow(_: int) -> None:
        if way == "a copy that follows":
            model.members[1].load_state_dict(model.members[0].state_dict())

    told = kinds(found(tmp_path, model, sgd(model), loss=squares, after=follow))
    told = [one for one in told if one[0] == "identical-modules"]
    assert told == ([("identical-modules", "warning", "members.0", 0)] if way == "copies" else [])


# Gradients of layers that stand beside each other


class Beside(nn.Module):
    """Two recurrences, for an action and for its value, with states of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = nn.LSTM(8, 16, batch_first=True), nn.LSTM(8, 16, batch_first=True)
        self.policy, self.value = nn.Linear(16, 3), nn.Linear(16, 1)

    def forward(self, inputs: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        states = [(one, torch.zeros_like(one)) for one in (first, second)]
        policy = self.policy(self.actor(inputs, states[0])[0])
        value = self.value(self.critic(inputs, states[1])[0])
        return policy, value


def test_layers_beside_each_other_do_not_lose_the_gradient_of_each_other(tmp_path: Path) -> None:
    model = Beside()

    def loss(watched: Any) -> Tensor:
        states = torch.zeros(2, 1, 4, 16)
        policy, value = watched(torch.randn(4, 5, 8), states[0], states[1])
        result: Tensor = 1e-3 * policy.square().mean() + (value - 1).square().mean()
        return result

    told = found(tmp_path, model, sgd(model, 1e-2), loss=loss)
    assert "vanishing-gradient" not in [one.kind for one in told]


# Since when


class Late(nn.Module):
    """A layer that is made in the fifth pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.passes = nn.Linear(8, 16), nn.Linear(16, 3), 0
        self.middle: nn.Module = nn.Identity()

    def forward(self, inputs: Tensor) -> Tensor:
        self.passes += 1
        if self.passes == 6:
            self.middle = nn.Linear(16, 16)
        result: Tensor = self.last(self.middle(self.first(inputs)).relu())
        return result


def test_a_parameter_that_no_optimizer_has_is_told_since_it_is_there(tmp_path: Path) -> None:
    model = Late()
    told = [one for one in found(tmp_path, model, sgd(model), loss=squares) if one.kind == "not-in-optimizer"]
    assert kinds(told) == [("not-in-optimizer", "warning", "middle", 6)]
