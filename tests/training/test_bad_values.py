"""The first value that is not finite between recorded steps, logged or of the model, has the next one recorded."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.capture import finite_checks
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.reduce import finite
from torchgraph_explorer.schema import NotFinite, NotFiniteOrigin
from torchgraph_explorer.training import pipeline


@pytest.mark.usefixtures("_looks_at_every_step")
def test_what_is_not_finite_before_a_training_ends_is_noted(tmp_path: Path) -> None:
    """As where the loop raises when it sees NaN, so that no later step is recorded."""
    model = Sometimes(lambda out: out * math.nan)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def train() -> None:
        with watch(model, log_freq=10, backend="record", logdir=tmp_path, run="run", verbose=False):
            for _ in range(15):
                optimizer.zero_grad()
                loss = model(torch.randn(3, 2)).square().mean()
                if not loss.isfinite():
                    raise ArithmeticError
                loss.backward()
                optimizer.step()

    with (
        pytest.raises(ArithmeticError),
        pytest.warns(TorchgraphWarning, match="the model's output had NaN .* at step 4"),
    ):
        train()
    found = open_run(tmp_path / "run").model()
    assert found.steps.tolist() == [0]
    assert found.finished is not None
    [note] = found.finished.notes
    assert "at step 4, which was not recorded" in note
    [told] = found.findings()
    assert (told.kind, told.severity, told.module, told.step) == ("nan", "error", "", 4)


def test_weights_that_the_last_updates_have_made_nan_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing between recorded steps was looked at, as in a fast training, and no later step is recorded."""
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    monkeypatch.setattr(finite_checks._Pace, "is_due", lambda _: False)

    def train() -> None:
        with watch(model, log_freq=10, backend="record", logdir=tmp_path, run="run", verbose=False):
            for step in range(15):
                optimizer.zero_grad()
                (model(torch.randn(3, 2)).square().mean() * (math.nan if step == 14 else 1)).backward()
                optimizer.step()

    with pytest.warns(TorchgraphWarning, match="a parameter had NaN .* at step 15"):
        train()
    [told] = open_run(tmp_path / "run").model().findings()
    assert (told.kind, told.severity, told.step) == ("nan", "error", 15)
    assert told.text.startswith("A parameter of the model was not finite at step 15, which was not recorded")


@pytest.fixture
def _looks_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a training whose steps take as little time as a look."""
    monkeypatch.setattr(finite_checks, "SHARE", 1e-9)


class Layers(nn.Module):
    """Gives NaN where it is told to; its second layer gets gradients of NaN where `derivative` is."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.factor, self.derivative = nn.Linear(2, 4), nn.Linear(4, 1), 1.0, 0.0

    def forward(self, samples: Tensor) -> Tensor:
        hidden = self.first(samples)
        if self.derivative:
            hidden = hidden + 0 * (0 * hidden).abs().sqrt()
        out: Tensor = self.factor * self.second(hidden)
        return out


def leave_at_nan(model: Layers, optimizer: torch.optim.Optimizer, last: int) -> None:
    for step in range(last + 1):
        optimizer.zero_grad()
        if step == last:
            model.factor = math.nan
        out = model(torch.randn(3, 2))
        if not out.isfinite().all():
            raise ArithmeticError
        out.square().mean().backward()
        optimizer.step()


def leave_at_data(model: Layers, optimizer: torch.optim.Optimizer, last: int) -> None:
    for step in range(last + 1):
        optimizer.zero_grad()
        samples = torch.full((3, 2), math.nan if step == last else 1.0)
        out = model(samples)
        if not out.isfinite().all():
            raise ArithmeticError
        out.square().mean().backward()
        optimizer.step()


def clip_at_nan(model: Layers, optimizer: torch.optim.Optimizer, last: int) -> None:
    for step in range(last + 1):
        optimizer.zero_grad()
        model.derivative = float(step == last)
        model(torch.randn(3, 2)).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        optimizer.step()


@pytest.mark.usefixtures("_looks_seldom")
@pytest.mark.parametrize(
    ("train", "what", "origin"),
    [
        pytest.param(
            leave_at_nan, "the model's output", "The inputs and all parameters were finite.", id="within the model"
        ),
        pytest.param(leave_at_data, "the model's output", "came in with the data: input[0] of the model", id="input"),
        pytest.param(
            clip_at_nan, "a gradient", "of 2 of 4 parameters had some, up to that of first.bias", id="gradient"
        ),
    ],
)
@pytest.mark.parametrize(("last", "is_noted"), [(17, True), (20, False)], ids=["unrecorded", "recorded"])
def test_what_an_error_was_raised_of_is_noted_if_it_was_not_looked_at(
    train: Callable[[Layers, torch.optim.Optimizer, int], None],
    what: str,
    origin: str,
    *,
    last: int,
    is_noted: bool,
    tmp_path: Path,
    recwarn: pytest.WarningsRecorder,
) -> None:
    model = Layers()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with (
        pytest.raises((ArithmeticError, RuntimeError)),
        watch(model, log_freq=10, backend="record", logdir=tmp_path, verbose=False),
    ):
        train(model, optimizer, last)
    told = [str(one.message) for one in recwarn if issubclass(one.category, TorchgraphWarning)]
    assert [f"{what} had NaN or infinite elements at step {last}" in one for one in told] == [True] * is_noted
    assert [origin in one for one in told] == [True] * is_noted


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        pytest.param(math.nan, [0, 5, 10], id="NaN"),
        pytest.param(-math.inf, [0, 5, 10], id="infinity"),
        pytest.param(torch.tensor(math.nan), [0, 5, 10], id="a tensor"),
        pytest.param(np.float64("nan"), [0, 5, 10], id="of numpy"),
        pytest.param(torch.tensor(math.nan, requires_grad=True), [0, 5, 10], id="a loss"),
        pytest.param(2, [0, 10], id="a whole number"),
    ],
)
def test_the_step_after_a_bad_value_is_recorded_once(bad: object, expected: list[int]) -> None:
    model, heard = nn.Linear(2, 1), Listening()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, log_freq=10, backend=heard, verbose=False) as watcher:
        for step in range(15):
            optimizer.zero_grad()
            model(torch.randn(3, 2)).square().mean().backward()
            optimizer.step()
            watcher.log({"loss": bad if step >= 4 else 0.5, "rate": 0.1})
    assert [frame.step for frame in heard.frames] == expected


class Sometimes(nn.Module):
    """A layer whose output is spoiled at one call."""

    def __init__(self, spoil: Callable[[Tensor], Tensor], at: int = 4) -> None:
        super().__init__()
        self.layer, self.spoil, self.at, self.calls = nn.Linear(2, 3), spoil, at, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        out: Tensor = self.layer(x)
        return self.spoil(out) if self.calls == self.at + 1 else out


def nan_of_a_derivative(out: Tensor) -> Tensor:
    """A root of zero: itself finite, and its derivative is not."""
    return out + (out - out).pow(2).sum().sqrt()


def one_element(value: float) -> Callable[[Tensor], Tensor]:
    return lambda out: torch.where(torch.arange(out.numel()).view_as(out) == 5, value, out)


def seen_with(spoil: Callable[[Tensor], Tensor], *, loss: Callable[[Tensor], Tensor]) -> Listening:
    model, heard = Sometimes(spoil), Listening()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, log_freq=10, backend=heard, verbose=False):
        for _ in range(15):
            optimizer.zero_grad()
            loss(model(torch.randn(3, 2))).backward()
            optimizer.step()
    return heard


def finite_only(out: Tensor) -> Tensor:
    return torch.where(out.isfinite(), out, 0.0).square().mean()


FORWARD = NotFiniteOrigin("parameter", (), 0, 2)
BACKWARD = NotFiniteOrigin("gradient", ("layer.weight", "layer.bias"), 2, 2)


@pytest.mark.usefixtures("_looks_at_every_step")
@pytest.mark.parametrize("by", [finite.is_finite(), None], ids=["finite.c", "torch"])
@pytest.mark.parametrize(
    ("spoil", "loss", "expected"),
    [
        pytest.param(
            one_element(math.nan), finite_only, NotFinite(4, "output", FORWARD), id="one element of the output"
        ),
        pytest.param(one_element(math.inf), finite_only, NotFinite(4, "output", FORWARD), id="infinity in the output"),
        pytest.param(nan_of_a_derivative, torch.mean, NotFinite(4, "gradient", BACKWARD), id="the gradient alone"),
        pytest.param(one_element(-math.inf), finite_only, None, id="minus infinity, as of a mask"),
        pytest.param(lambda out: out, torch.mean, None, id="nothing"),
    ],
)
def test_what_is_not_finite_between_recorded_steps_has_the_next_one_recorded(
    spoil: Callable[[Tensor], Tensor],
    loss: Callable[[Tensor], Tensor],
    expected: NotFinite | None,
    by: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "is_finite", lambda: by)
    heard = seen_with(spoil, loss=loss)
    recorded = {frame.step: frame.training.not_finite for frame in heard.frames if frame.training}
    assert recorded[5 if expected else 10] == expected
    assert recorded.keys() >= {0, 10}
    assert (5 in recorded) == (expected is not None)


@pytest.mark.usefixtures("_looks_at_every_step")
@pytest.mark.parametrize("clears", [True, False], ids=["cleared in it", "cleared before it"])
def test_a_gradient_of_a_closure_is_told_of_the_step_that_it_is_of(clears: bool) -> None:
    model, heard = nn.Sequential(nn.Linear(2, 2), Sometimes(nan_of_a_derivative), nn.Linear(3, 2)), Listening()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def closure() -> Tensor:
        if clears:
            optimizer.zero_grad()
        loss: Tensor = model(torch.randn(3, 2)).mean()
        loss.backward()
        return loss

    with watch(model, backend=heard, log_freq=10, verbose=False):
        for _ in range(6):
            if not clears:
                optimizer.zero_grad()
            optimizer.step(closure)
    origin = NotFiniteOrigin("gradient", ("0.weight", "0.bias", "1.layer.weight", "1.layer.bias"), 4, 6)
    recorded = {frame.step: frame.training.not_finite for frame in heard.frames if frame.training}
    assert recorded[5] == NotFinite(4, "gradient", origin)


@pytest.mark.usefixtures("_looks_at_every_step")
def test_the_finding_says_between_which_steps_nan_began(tmp_path: Path) -> None:
    model = Sometimes(lambda out: out * math.nan, at=13)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, log_freq=10, backend="record", logdir=tmp_path, verbose=False):
        for _ in range(31):
            optimizer.zero_grad()
            model(torch.randn(3, 2)).square().mean().backward()
            optimizer.step()
    told = open_run(tmp_path).model().findings()[0]
    assert (told.kind, told.step, told.evidence["seen_at_step"], told.evidence["last_finite_step"]) == (
        "nan",
        14,
        13,
        10,
    )
    assert "The model's output was first seen not to be finite at step 13, which was not recorded" in told.text
    assert told.advice.endswith(
        "Train again with `log_freq=lambda step: step >= 10`: that records each step, and shows the module."
    )


class Stack(nn.Module):
    """Four layers, of which one may do something else at one step."""

    def __init__(self, odd: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
        self.odd, self.at_step = odd, False

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x if mask is None else x + mask.exp()
        for number, layer in enumerate(self.layers):
            x = self.odd(layer, x) if number == 2 and self.at_step else layer(x).tanh()
        return x


def spoiled_parameter(layer: nn.Module, x: Tensor) -> Tensor:
    assert isinstance(layer.bias, Tensor)
    with torch.no_grad():
        layer.bias[1] = math.nan
    return layer(x).tanh()


ORIGINS = {
    "a parameter": (spoiled_parameter, {}, "layers.2", "bias", "At step 13, before its update, the parameter `bias`"),
    "the forward pass": (
        *(lambda layer, x: layer(x).abs().neg().log(), {}, ""),
        *("output", "At step 13, the inputs of the model and all its parameters were finite"),
    ),
    "a derivative": (
        *(lambda layer, x: nan_of_a_derivative(layer(x)), {}, "layers.2"),
        *(
            "weight",
            "At step 13, the gradients of 6 of 8 parameters were not finite, up to that of `weight` of `la",
        ),
    ),
    "an argument by its name": (
        *(lambda layer, x: layer(x), {"mask": torch.tensor([0.0, -math.inf, math.nan, 1.0])}, ""),
        *("input['mask']", "`input['mask']` of the model was not finite at step 13"),
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("_looks_at_every_step")
@pytest.mark.parametrize(("odd", "also", "module", "path", "text"), ORIGINS.values(), ids=ORIGINS)
def test_the_finding_names_the_origin_in_a_step_that_was_not_recorded(
    odd: Callable[[nn.Module, Tensor], Tensor],
    also: dict[str, Tensor],
    module: str,
    path: str,
    text: str,
    tmp_path: Path,
) -> None:
    model = Stack(odd)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, log_freq=10, backend="record", logdir=tmp_path, verbose=False):
        for step in range(31):
            model.at_step = step == 13
            optimizer.zero_grad()
            given = {"mask": torch.tensor([0.0, -math.inf, 0.0, 1.0])} | (also if model.at_step else {})
            model(torch.randn(3, 4), **given).square().mean().backward()
            optimizer.step()
    told = open_run(tmp_path).model().findings()[0]
    assert (told.kind, told.module, told.path, told.step) == ("nan", module, path, 14)
    assert text in told.text


def test_looking_between_recorded_steps_takes_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, looked = iter(range(1, 10**6)), []
    monkeypatch.setattr("torchgraph_explorer.capture.finite_checks.time.perf_counter", lambda: float(next(now)))
    checks = finite_checks.FiniteChecks(lambda *_: None, None)
    monkeypatch.setattr(checks, "_look", lambda *_, **__: looked.append(1))
    for step in range(2000):
        checks.look_at_output(torch.ones(1), step, model=nn.Identity(), args=(), kwargs={})
    assert 15 <= len(looked) <= 25  # the most steps are left out: a look takes as long as a step


@pytest.mark.usefixtures("_looks_at_every_step")
def test_a_look_that_fails_is_said_once_and_all_else_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finite_checks, "tensors", lambda *_: 1 / 0)
    with pytest.warns(TorchgraphWarning, match="no longer looked for between logged steps") as said:
        heard = seen_with(lambda out: out, loss=torch.mean)
    assert len(said) == 1
    assert [frame.step for frame in heard.frames] == [0, 10]


@pytest.fixture
def _looks_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finite_checks, "SHARE", math.inf)


class Late:
    """Stands for a number that comes from a GPU after some looks."""

    def __init__(self, _number: Tensor, step: int) -> None:
        self.step, self.looks = step, 0

    @property
    def is_there(self) -> bool:
        self.looks += 1
        return self.looks > 3

    @property
    def value(self) -> float:
        return math.nan if self.step >= 4 else 0.0


@pytest.mark.usefixtures("_looks_at_every_step")
def test_a_number_on_a_gpu_is_read_when_it_has_come_and_told_of_its_own_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finite_checks, "_Late", Late)
    monkeypatch.setattr(finite_checks, "_can_be_read", lambda _: True)
    found: list[tuple[int, str, NotFiniteOrigin | None]] = []
    checks = finite_checks.FiniteChecks(lambda *one: found.append(one), None)
    for step in range(20):
        output = torch.ones(2, device="meta", requires_grad=True)
        checks.look_at_output(output, step, model=nn.Identity(), args=(), kwargs={})
    assert found == [(4, "output", None)]


@pytest.mark.usefixtures("_looks_at_every_step")
def test_nothing_is_asked_of_a_gpu_while_a_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Late(torch.ones(()), 0)
    checks = finite_checks.FiniteChecks(lambda *_: None, None)
    checks._late["output"] = late  # type: ignore[assignment]
    monkeypatch.setattr(finite_checks, "is_captured", lambda: True)
    checks.look_at_output(torch.ones(2, requires_grad=True), 1, model=nn.Identity(), args=(), kwargs={})
    assert late.looks == 0
