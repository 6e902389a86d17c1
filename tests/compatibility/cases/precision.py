"""Number types, optimizers and training loops."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tests.compatibility.case import Table, Training, module, sgd, trained

case = Table("precision and loops")


def _net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU(inplace=True), nn.Linear(6, 2))


def _x(*shape: int) -> Any:
    return lambda: torch.randn(*(shape or (4, 6)))


def _loss(model: nn.Module) -> Tensor:
    return model(torch.randn(4, 6)).float().square().mean()


@case("autocast to bfloat16")
def _() -> Any:
    model = _net()
    optimizer = sgd(model.parameters())

    def step(_number: int) -> object:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = _loss(model)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(model, step, [optimizer])


@case("autocast within the model, switched off in a part, and its weight cache")
def _() -> Any:
    def mixed(self: Any, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.a(x) + self.a(x * 2)
            with torch.autocast("cpu", enabled=False):
                z = self.b(y.float())
        return z

    return module(mixed, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


@case("a GradScaler, clipping and a skipped step", steps=6)
def _() -> Any:
    model = _net()
    optimizer = sgd(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=2)

    def step(number: int) -> object:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = _loss(model) * (float("inf") if number == 2 else 1.0)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach(), norm, scaler.get_scale()

    return Training(model, step, [optimizer])


@case("watch(optimizer=, scaler=) with a GradScaler, clipping and a skipped step", steps=6)
def _() -> Any:
    model = _net()
    optimizer = sgd(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=2)

    def step(number: int) -> object:
        optimizer.zero_grad(set_to_none=bool(number % 2))
        loss = _loss(model) * (float("inf") if number == 2 else 1.0)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach(), norm, scaler.get_scale()

    return Training(model, step, [optimizer], options={"optimizer": optimizer, "scaler": scaler})


@case("a model in bfloat16")
def _() -> Any:
    model = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 2)).to(torch.bfloat16)
    return model, lambda: torch.randn(4, 6, dtype=torch.bfloat16)


@case("a model in double")
def _() -> Any:
    return _net().double(), lambda: torch.randn(4, 6, dtype=torch.float64)


@case("double as the default type")
def _() -> Any:
    torch.set_default_dtype(torch.float64)
    return _net(), _x()


@case("gradients clipped by norm and by value")
def _() -> Any:
    model = _net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

    def step(_number: int) -> object:
        optimizer.zero_grad()
        _loss(model).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        nn.utils.clip_grad_value_(model.parameters(), 0.01)
        optimizer.step()
        return norm

    return Training(model, step, [optimizer])


@case("LBFGS, whose closure is called many times")
def _() -> Any:
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=5)
    x = torch.randn(8, 6)

    def step(_number: int) -> object:
        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = (model(x) - 1).square().mean()
            loss.backward()
            return loss

        return optimizer.step(closure)

    return Training(model, step, [optimizer])


OPTIMIZERS: dict[str, Any] = {
    "Adam, foreach": lambda params: torch.optim.Adam(params, foreach=True),
    "AdamW, fused": lambda params: torch.optim.AdamW(params, fused=True),
    "SGD, fused": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, fused=True),
    "Adagrad": torch.optim.Adagrad,
    "RMSprop, differentiable off, maximize": lambda params: torch.optim.RMSprop(params, maximize=True),
    "NAdam": torch.optim.NAdam,
}

for _name, _make in OPTIMIZERS.items():
    case(f"optimizer {_name}")(lambda make=_make: trained(_net(), _x(), optimizer=make))  # type: ignore[misc]


@case("what calls cost is recorded", steps=3)
def _() -> Any:
    training = trained(_net(), _x())
    training.options = {"log": ("io", "io_grad", "params", "params_grad", "cost")}
    return training


@case("every third step logged", steps=5)
def _() -> Any:
    training = trained(_net(), _x())
    training.options = {"log_freq": 3}
    return training


TOLD: dict[str, Any] = {
    "SGD": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9),
    "AdamW, fused": lambda params: torch.optim.AdamW(params, fused=True),
    "Adam, foreach": lambda params: torch.optim.Adam(params, foreach=True),
    "LBFGS": lambda params: torch.optim.LBFGS(params, lr=0.1, max_iter=5),
}

for _name, _make in TOLD.items():

    @case(f"watch(optimizer=) with {_name}")
    def _(make: Any = _make) -> Any:
        model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))
        optimizer = make(model.parameters())
        x = torch.randn(8, 6)

        def step(_number: int) -> object:
            def closure() -> Tensor:
                optimizer.zero_grad()
                loss = (model(x) - 1).square().mean()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                return loss

            return optimizer.step(closure)

        return Training(model, step, [optimizer], options={"optimizer": optimizer})


@case("evaluations recorded as a phase of their own", steps=6)
def _() -> Any:
    model = _net()
    optimizer = sgd(model.parameters())

    def step(_number: int) -> object:
        optimizer.zero_grad()
        loss = _loss(model)
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            evaluated = [_loss(model) for _ in range(2)]
        model.train()
        return loss.detach(), evaluated

    return Training(model, step, [optimizer], options={"phases": ("train", "eval")})


@case("parameter groups and a schedule")
def _() -> Any:
    model = _net()
    groups: list[dict[str, Any]] = [{"params": model[0].parameters(), "lr": 0.01}, {"params": model[3].parameters()}]
    optimizer = torch.optim.SGD(groups, 0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

    def step(_number: int) -> object:
        optimizer.zero_grad()
        loss = _loss(model)
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.detach(), schedule.get_last_lr()

    return Training(model, step, [optimizer])


@case("an average of the weights, made of a copy of the watched model")
def _() -> Any:
    model = _net()
    training = trained(model, _x())
    plain, averaged = training.step, list[Any]()

    def step(number: int) -> object:
        if not averaged:
            averaged.append(torch.optim.swa_utils.AveragedModel(model))
        result = plain(number)
        averaged[0].update_parameters(model)
        return result, list(averaged[0].parameters())

    training.step = step
    return training


@case("state dicts saved and loaded while training")
def _() -> Any:
    training = trained(_net(), _x())
    plain, kept = training.step, []

    def step(number: int) -> object:
        result = plain(number)
        kept.append({name: value.clone() for name, value in training.model.state_dict().items()})
        if number == 2:
            training.model.load_state_dict(kept[0])
            training.model.load_state_dict(kept[0], assign=True)
        return result, kept[-1]

    training.step = step
    return training


@case(
    "gradients written by hand, without autograd",
    cannot={
        "P2": "The model is only ever called under no_grad, so there is no training pass. When the watcher is closed, "
        "it warns that nothing was recorded and why."
    },
)
def _() -> Any:
    model = nn.Linear(6, 2)

    def step(_number: int) -> object:
        with torch.no_grad():
            out = model(torch.randn(4, 6))
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        with torch.no_grad():
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.sub_(parameter.grad, alpha=0.1)
        return out

    return Training(model, step)


@case("evolution: weights changed in place, no backward pass")
def _() -> Any:
    model = _net()

    def step(_number: int) -> object:
        losses = []
        for _ in range(3):
            vector = nn.utils.parameters_to_vector(model.parameters())
            nn.utils.vector_to_parameters(vector + 0.01 * torch.randn_like(vector), model.parameters())
            losses.append(_loss(model).detach())
        return losses

    return Training(model, step)
