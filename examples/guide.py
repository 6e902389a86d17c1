"""Small networks, each with something to see in it: the runs that docs/guide.md looks at.

python examples/guide.py            # all of them, in the folder `runs`
python examples/guide.py nan vae    # these two
torchgraph serve runs
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchgraph_explorer import Keep, attach, watch

STEPS = 60
BATCH = 64
WIDTH = 16

Loss = Callable[[int], Tensor]
"""The loss of a step."""


def train(name: str, model: nn.Module, loss_of: Loss, *, logdir: str, rate: float = 0.01, **options: Any) -> None:
    """Train with Adam, and record every second step as the run `name`."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    settings = {"log_freq": 2, "backend": "record", "logdir": logdir, "run": name, "optimizer": optimizer}
    with watch(model, **{**settings, **options}) as watcher:
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = loss_of(step)
            loss.backward()
            optimizer.step()
            watcher.log({"loss": loss})


def deep(layers: int, activation: Callable[[], nn.Module], gain: float | None = None) -> nn.Sequential:
    """Linear layers with an activation function between.

    With a `gain`, their weights have the standard deviation `gain / √width`, and their biases are zero: random biases
    would keep the outputs apart where the weights do not.
    """
    linears = [nn.Linear(WIDTH, WIDTH) for _ in range(layers)]
    for linear in linears if gain is not None else ():
        nn.init.normal_(linear.weight, std=(gain or 0) / WIDTH**0.5)
        nn.init.zeros_(linear.bias)
    return nn.Sequential(*(one for linear in linears for one in (linear, activation())), nn.Linear(WIDTH, 1))


def fit(model: nn.Module, scale: float = 1.0, shift: float = 0.0) -> Loss:
    """A regression: the sum of the first four inputs."""

    def loss_of(_step: int) -> Tensor:
        x = torch.randn(BATCH, WIDTH)
        target = x[:, :4].sum(1, keepdim=True)
        output = model(x * scale + shift)
        attach(target, name="target", kind="target")
        return functional.mse_loss(output, target)

    return loss_of


def vanishing(logdir: str) -> None:
    """Gradients become smaller with each sigmoid that they pass."""
    model = deep(8, nn.Sigmoid)
    train("vanishing", model, fit(model), logdir=logdir)


def inputs(logdir: str) -> None:
    """Inputs that are not normalised drive a tanh into saturation."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
    train("inputs", model, fit(model, scale=50, shift=100), logdir=logdir)


def last_relu(logdir: str) -> None:
    """The targets may be negative, and the last layer is a ReLU."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1), nn.ReLU())
    train("last-relu", model, fit(model), logdir=logdir, keep=Keep("*", samples=BATCH))


class Head(nn.Module):
    """Combines two tensors, one of which it multiplies by a small number."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * WIDTH, 1)

    def forward(self, image: Tensor, text: Tensor) -> Tensor:
        """Two tensors `[batch, width]` to `[batch, 1]`."""
        return self.linear(torch.cat([image, 0.05 * text], 1))


class Towers(nn.Module):
    """Two subnetworks whose outputs are combined."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.text = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.head = Head()

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, width]` to `[batch, 1]`."""
        return self.head(self.image(x), self.text(x))


def towers(logdir: str) -> None:
    """Gradient flows to one of two subnetworks more than to the other, and one input is more important."""
    model = Towers()
    train("towers", model, fit(model), logdir=logdir)


class Vae(nn.Module):
    """A variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(WIDTH, 8), nn.Linear(4, WIDTH)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The reconstruction, and the mean and logarithm of the variance of the latent variables."""
        mean, logvar = self.encoder(x).chunk(2, 1)
        latent = mean + torch.randn_like(mean) * (logvar / 2).exp()
        attach(latent, self, "latent")
        return self.decoder(latent), mean, logvar


def vae(logdir: str) -> None:
    """The latent variables of a variational autoencoder should have the standard normal distribution."""
    model = Vae()

    def loss_of(_step: int) -> Tensor:
        x = torch.randn(BATCH, 4) @ torch.ones(4, WIDTH) * 3
        found, mean, logvar = model(x)
        divergence = (mean.square() + logvar.exp() - 1 - logvar).sum(1).mean() / 2
        return functional.mse_loss(found, x) + 0.001 * divergence

    train("vae", model, loss_of, logdir=logdir)


class Residual(nn.Module):
    """A block with a skip connection, whose own branch hardly matters."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.scale = nn.Parameter(torch.tensor(0.02))

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, width]` to the same shape."""
        branch = self.scale * self.branch(x)
        skip = x * 1.0  # a tensor of its own, so that it has a gradient of its own
        attach(branch, self, "branch")
        attach(skip, self, "skip")
        return skip + branch


def residual(logdir: str) -> None:
    """Compare what a residual block adds with what it passes on, in values and in gradients."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), Residual(), Residual(), nn.Linear(WIDTH, 1))
    train("residual", model, fit(model), logdir=logdir, keep=Keep("branch", "skip", samples=16))


class Between(nn.Module):
    """The toy network y = x (a w + b (1 - w))."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.w = (nn.Parameter(torch.tensor([value])) for value in (1.1, 0.1, 0.5))

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, 1]` to the same shape."""
        y = x * (self.a * self.w + self.b * (1 - self.w))
        attach(y, self, "y")
        return y


def toy(logdir: str) -> None:
    """For x = 1, the target 1 lies between a = 1.1 and b = 0.1. In which direction is each pushed?"""
    model = Between()

    def loss_of(_step: int) -> Tensor:
        x = 0.5 + torch.rand(BATCH, 1)
        return functional.mse_loss(model(x), x)

    train("toy", model, loss_of, logdir=logdir, keep=Keep("*", "*:param"))


def killed(logdir: str) -> None:
    """A bias far below zero: most units of a ReLU are zero for every sample, and stop the gradient."""
    model = deep(3, nn.ReLU)
    with torch.no_grad():
        model.get_parameter("2.bias")[: WIDTH - 4] = -8
    train("killed", model, fit(model), logdir=logdir, keep=Keep("3", "2", samples=16))


class Normalised(nn.Module):
    """Divides by the standard deviation, and forgets that it may be zero."""

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, width]` to the same shape."""
        return (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)


def nan(logdir: str) -> None:
    """One sample of one batch has only zeros, as if it was padding: its standard deviation is 0."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU(), Normalised(), nn.Linear(WIDTH, 1))

    def loss_of(step: int) -> Tensor:
        x = torch.randn(BATCH, WIDTH)
        if step == STEPS // 2:
            x[5] = 0
        return functional.mse_loss(model(x), x[:, :1] - x[:, 1:2])

    train("nan", model, loss_of, logdir=logdir, log_freq=1, keep=Keep("*", samples=None, when="flagged", before=2))


def initialisation(logdir: str) -> None:
    """Weights that are too small at first: each layer's outputs are smaller than those of the layer before."""
    model = deep(8, nn.Tanh, gain=0.5)
    train("initialisation", model, fit(model), logdir=logdir, rate=1e-3)


def collapse(logdir: str) -> None:
    """Two views of a sample are to have the same embedding, which is easiest if all samples have it."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 8))

    def loss_of(_step: int) -> Tensor:
        x = torch.randn(BATCH, WIDTH)
        both = model(torch.cat([x + 0.5 * torch.randn_like(x), x + 0.5 * torch.randn_like(x)]))
        return functional.mse_loss(*both.chunk(2))

    train("collapse", model, loss_of, logdir=logdir, keep=Keep("2", samples=16))


RUNS = (vanishing, inputs, last_relu, towers, vae, residual, toy, killed, nan, initialisation, collapse)


def record(names: Sequence[str], logdir: str) -> None:
    """Record the runs called `names`."""
    for make in RUNS:
        if make.__name__ in names:
            torch.manual_seed(0)
            make(logdir)


def main() -> None:
    """Record what the command line names."""
    known = [make.__name__ for make in RUNS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=known, help=f"some of {', '.join(known)} (default: all)")
    parser.add_argument("--logdir", default="runs")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"there is no {', '.join(unknown)}; choose from {', '.join(known)}")
    record(options.names, options.logdir)


if __name__ == "__main__":
    main()
