"""Training loops: where an update comes, which optimizers make it, and where the model is entered."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tests.compatibility.case import Table, Training, module, sgd
from tests.sharpness_aware import SharpnessAware

case = Table("training loops")


def _net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Linear(6, 2))


def _loss(model: Any, samples: int = 4) -> Tensor:
    loss: Tensor = model(torch.randn(samples, 6)).square().mean()
    return loss


def _update(optimizers: Sequence[Any], loss: Tensor) -> Tensor:
    for each in optimizers:
        each.zero_grad()
    loss.backward()
    for each in optimizers:
        each.step()
    return loss.detach()


@case("nine micro-batches in an update", steps=2)
def _() -> Any:
    model = _net()
    optimizer = sgd(model.parameters())

    def step(_number: int) -> object:
        optimizer.zero_grad()
        for _ in range(9):
            (_loss(model) / 9).backward()
        optimizer.step()
        return None

    return Training(model, step, [optimizer])


@case("an episode of forty moves in an update, as in REINFORCE", steps=3)
def _() -> Any:
    model = _net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(_number: int) -> object:
        moves = [torch.log_softmax(model(torch.randn(1, 6)), dim=-1)[0, 0] for _ in range(40)]
        return _update([optimizer], -torch.stack(moves).sum())

    return Training(model, step, [optimizer])


@case("LBFGS, which calls a closure several times")
def _() -> Any:
    model = _net()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)

    def step(_number: int) -> object:
        batch = torch.randn(4, 6)

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = model(batch).square().mean()
            loss.backward()
            return loss

        return optimizer.step(closure).detach()

    return Training(model, step, [optimizer])


@case("SAM, which calls another optimizer")
def _() -> Any:
    model = _net()
    base = sgd(model.parameters())
    optimizer = SharpnessAware(base)

    def step(_number: int) -> object:
        batch = torch.randn(4, 6)

        def closure() -> None:
            optimizer.zero_grad()
            model(batch).square().mean().backward()

        closure()
        optimizer.step(closure)
        return None

    return Training(model, step, [base])


@case("Muon for matrices and AdamW for the rest")
def _() -> Any:
    model = _net()
    muon = getattr(torch.optim, "Muon", torch.optim.SGD)
    matrices = muon([each for each in model.parameters() if each.ndim == 2], lr=0.01)
    rest = torch.optim.AdamW([each for each in model.parameters() if each.ndim != 2], lr=0.01)
    return Training(model, lambda _: _update([matrices, rest], _loss(model)), [matrices, rest])


class _Adversaries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Linear(3, 6)
        self.discriminator = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1))


def _adversaries(watched: Callable[[Any], nn.Module]) -> Training:
    both = _Adversaries()
    makes, judges = sgd(both.generator.parameters()), sgd(both.discriminator.parameters())

    def step(_number: int) -> object:
        fake = both.generator(torch.randn(4, 3))
        true = both.discriminator(torch.randn(4, 6))
        first = _update([judges], (true - both.discriminator(fake.detach())).mean())
        second = _update([makes], both.discriminator(both.generator(torch.randn(4, 3))).mean())
        return first, second

    return Training(watched(both), step, [makes, judges])


@case("a GAN in one module, which is never called itself")
def _() -> Any:
    return _adversaries(lambda both: both)


@case("a GAN's discriminator, which the generator's update calls, too")
def _() -> Any:
    return _adversaries(lambda both: both.discriminator)


@case("a GAN of which every second step is logged, and the next one of the other optimizer", steps=4)
def _() -> Any:
    training = _adversaries(lambda both: both)
    training.options = {"log_freq": 2}
    return training


class _Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.action, self.value = nn.Sequential(nn.Linear(6, 4), nn.Tanh()), nn.Linear(4, 2), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        action: Tensor = self.action(self.body(x))
        return action

    def evaluate_actions(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.body(x)
        return self.action(hidden), self.value(hidden)


@case("an actor and a critic with an optimizer each, and rollouts under no_grad")
def _() -> Any:
    model = _Policy()
    actor = sgd([*model.body.parameters(), *model.action.parameters()])
    critic = torch.optim.Adam(model.value.parameters(), lr=0.01)

    def step(_number: int) -> object:
        with torch.no_grad():
            for _ in range(3):
                model(torch.randn(1, 6))
        action, _ = model.evaluate_actions(torch.randn(4, 6))
        first = _update([actor], action.square().mean())
        _, value = model.evaluate_actions(torch.randn(4, 6))
        return first, _update([critic], value.square().mean())

    return Training(model, step, [actor, critic])


@case("layers that are trained one by one, as in the forward-forward algorithm")
def _() -> Any:
    model = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 4)])
    optimizers = [sgd(layer.parameters()) for layer in model]

    def step(_number: int) -> object:
        x, losses = torch.randn(4, 6), []
        for layer, optimizer in zip(model, optimizers, strict=True):
            out = layer(x).relu()
            losses.append(_update([optimizer], out.square().mean()))
            x = out.detach()
        return losses

    return Training(model, step, optimizers)


@case("a mean teacher, whose weights follow the student's")
def _() -> Any:
    def forward(self: Any, x: Tensor) -> Tensor:
        with torch.no_grad():
            target = self.teacher(x)
        difference: Tensor = (self.student(x) - target - 1).square().mean()
        return difference

    student = _net()
    model = module(forward, student=student, teacher=copy.deepcopy(student).requires_grad_(False))
    optimizer = sgd(student.parameters())

    def step(_number: int) -> object:
        loss = _update([optimizer], model(torch.randn(4, 6)))
        with torch.no_grad():
            for slow, fast in zip(model.teacher.parameters(), model.student.parameters(), strict=True):
                slow.lerp_(fast, 0.1)
        return loss

    return Training(model, step, [optimizer])


@case("a frozen teacher that the loop calls under no_grad, and a rollout of the student")
def _() -> Any:
    model = nn.ModuleDict({"teacher": _net().requires_grad_(False), "student": _net()})
    optimizer = sgd(model["student"].parameters())

    def step(_number: int) -> object:
        with torch.no_grad():
            model["student"](torch.randn(2, 6))
            target = model["teacher"](x := torch.randn(4, 6))
        return _update([optimizer], (model["student"](x) - target).square().mean())

    return Training(model, step, [optimizer])


@case("MAML: an inner loop of functional calls, and an update through it")
def _() -> Any:
    model = _net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(_number: int) -> object:
        weights: dict[str, Tensor] = dict(model.named_parameters())
        x = torch.randn(4, 6)
        for _ in range(2):
            inner = torch.func.functional_call(model, weights, x).square().mean()
            slopes = torch.autograd.grad(inner, [*weights.values()], create_graph=True)
            weights = {
                name: weight - 0.1 * slope for (name, weight), slope in zip(weights.items(), slopes, strict=True)
            }
        return _update([optimizer], torch.func.functional_call(model, weights, x).square().mean())

    return Training(model, step, [optimizer])


@case("a head that replaces the one that the optimizer has")
def _() -> Any:
    model = _net()
    optimizer = sgd(model.parameters())
    model[2] = nn.Linear(6, 3)
    return Training(model, lambda _number: _update([optimizer], _loss(model)), [optimizer])


@case("a model that was made again, of which the optimizer has the one before")
def _() -> Any:
    before, model = _net(), _net()
    optimizer = sgd(before.parameters())
    return Training(model, lambda _: _update([optimizer], _loss(model)), [optimizer])


@case("two calls of an autoencoder's halves, with noise between them")
def _() -> Any:
    model = nn.ModuleDict({"encoder": nn.Linear(6, 8), "decoder": nn.Linear(4, 6)})
    optimizer = sgd(model.parameters())

    def step(_number: int) -> object:
        mean, deviation = model["encoder"](x := torch.randn(4, 6)).chunk(2, dim=1)
        latent = mean + deviation.exp() * torch.randn_like(mean)
        return _update([optimizer], (model["decoder"](latent) - x).square().mean())

    return Training(model, step, [optimizer])


@case("Accelerate, which accumulates", slow=True, needs=("accelerate",))
def _() -> Any:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = _net()
    model, optimizer = accelerator.prepare(net, sgd(net.parameters()))

    def step(_number: int) -> object:
        loss = torch.zeros(())
        for _ in range(2):
            with accelerator.accumulate(model):
                loss = _loss(model)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
        return loss.detach()

    return Training(net, step, [optimizer.optimizer])


@case("a GradScaler that skips an update")
def _() -> Any:
    model = _net()
    optimizer = sgd(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)

    def step(number: int) -> object:
        optimizer.zero_grad()
        loss = _loss(model) * (float("inf") if number == 1 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return Training(model, step, [optimizer])


@case("an optimizer's step in another thread")
def _() -> Any:
    import threading

    model = _net()
    optimizer = sgd(model.parameters())

    def step(_number: int) -> object:
        optimizer.zero_grad()
        loss = _loss(model)
        loss.backward()
        thread = threading.Thread(target=optimizer.step)
        thread.start()
        thread.join()
        return loss.detach()

    return Training(model, step, [optimizer])


@case("its forward called directly")
def _() -> Any:
    model = _net()
    optimizer = sgd(model.parameters())
    return Training(model, lambda _: _update([optimizer], _loss(model.forward)), [optimizer])


@case("an optimizer whose state was loaded", first=2)
def _() -> Any:
    model = _net()
    earlier, optimizer = (torch.optim.Adam(model.parameters(), lr=0.01) for _ in range(2))
    for _ in range(2):
        _update([earlier], _loss(model))
    optimizer.load_state_dict(copy.deepcopy(earlier.state_dict()))
    return Training(model, lambda _: _update([optimizer], _loss(model)), [optimizer])


def _lightning(*, manual: bool) -> Training:
    import random

    import lightning

    class Lit(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = not manual
            self.body, self.head = nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True)), nn.Linear(6, 2)
            self.losses: list[Tensor] = []

        def training_step(self, batch: Any, _number: int) -> Any:
            loss = self.head(self.body(batch[0])).square().mean()
            self.losses.append(loss.detach())
            if manual:
                optimizers: Any = self.optimizers()
                for optimizer in optimizers:
                    optimizer.zero_grad()
                self.manual_backward(loss)
                for optimizer in optimizers:
                    optimizer.step()
            return loss

        def validation_step(self, batch: Any, _number: int) -> None:
            self.head(self.body(batch[0]))

        def configure_optimizers(self) -> Any:
            return [sgd(self.body.parameters()), sgd(self.head.parameters())] if manual else sgd(self.parameters())

    model = Lit()

    def step(_number: int) -> object:
        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(12, 6)), batch_size=4)
        quiet: Any = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
        trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", enable_checkpointing=False, **quiet)
        trainer.fit(model, data, data)
        random.seed(7)  # Lightning draws from it in a way that is not the same twice
        return list(model.losses)

    return Training(model, step)


@case("a LightningModule without forward", slow=True, needs=("lightning",), steps=1)
def _() -> Any:
    return _lightning(manual=False)


@case("a LightningModule without forward, optimized by hand", slow=True, needs=("lightning",), steps=1)
def _() -> Any:
    return _lightning(manual=True)
