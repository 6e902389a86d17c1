"""Healthy trainings of kinds that the other programs lack, written before the rules were changed, and then measured."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.programs.earlier import cancer, rows, standardised
from benchmarks.programs.fresh_networks import neighbours, next_character
from benchmarks.programs.further import source
from benchmarks.programs.measured_healthy import diabetes
from benchmarks.programs.program import STEPS, images, mlp, normalised, regression
from benchmarks.programs.script import Script, Watched, drawn, update
from benchmarks.programs.unseen_networks import (
    Flow,
    MessagePassing,
    Mixer,
    RowReader,
    Segmenter,
    SwitchLayer,
    Tagger,
    Temporal,
    ViT,
    segments,
)


def mixed_up(_broken: bool, watched: Watched) -> None:
    """Mixup and label smoothing, under a cosine schedule with warm-up."""
    net = Mixer()
    optim = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optim, lambda step: min((step + 1) / 20, 0.5 * (1 + math.cos(math.pi * step / STEPS)))
    )
    log = watched.watch(net)
    for x, y in drawn(images()):
        share, order = float(torch.distributions.Beta(0.4, 0.4).sample()), torch.randperm(len(x))
        out = net(share * x + (1 - share) * x[order])
        loss = share * F.cross_entropy(out, y, label_smoothing=0.1)
        loss = loss + (1 - share) * F.cross_entropy(out, y[order], label_smoothing=0.1)
        update(optim, loss)
        schedule.step()
        log({"loss": loss.item(), "lr": schedule.get_last_lr()[0]})


def mean_teacher(_broken: bool, watched: Watched) -> None:
    """A student that agrees with the moving average of itself on samples without labels."""
    student = RowReader()
    teacher = copy.deepcopy(student).requires_grad_(requires_grad=False)
    optim = torch.optim.Adam(student.parameters(), 2e-3)
    log = watched.watch(student)
    for step, (x, y) in enumerate(drawn(rows())):
        noisy = student(x + 0.2 * torch.randn_like(x))
        with torch.no_grad():
            wanted = teacher(x).softmax(1)
        agree = F.mse_loss(noisy.softmax(1), wanted)
        loss = F.cross_entropy(noisy[:8], y[:8]) + min(1.0, step / 50) * agree
        update(optim, loss)
        with torch.no_grad():
            for one, other in zip(teacher.parameters(), student.parameters(), strict=True):
                one.lerp_(other, 0.05)
        log({"loss": loss.item(), "agreement": agree.item()})


def triplets(_broken: bool, watched: Watched) -> None:
    """Anchors nearer to their own class than to others, on the unit sphere."""
    net = mlp(64, 64, 16)
    optim = torch.optim.Adam(net.parameters(), 1e-3)
    log = watched.watch(net)
    for x, y in drawn(normalised(), size=48):
        code = F.normalize(net(x), dim=1)
        apart = torch.cdist(code, code)
        same = y[:, None] == y
        far = (apart - 10.0 * (~same)).amax(1)
        near = (apart + 10.0 * same).amin(1)
        loss = F.relu(far - near + 0.3).mean()
        update(optim, loss)
        log({"triplet_loss": loss.item()})


def quantiles(_broken: bool, watched: Watched) -> None:
    """Three quantiles at once, by the pinball loss."""
    net = nn.Sequential(nn.Linear(10, 48), nn.ELU(), nn.Linear(48, 3))
    optim = torch.optim.NAdam(net.parameters(), 2e-3)
    shares = torch.tensor([0.1, 0.5, 0.9])
    log = watched.watch(net)
    for x, y in drawn(diabetes()):
        miss = y - net(x)
        loss = torch.maximum(shares * miss, (shares - 1) * miss).mean()
        update(optim, loss)
        log(loss)


def physics(_broken: bool, watched: Watched) -> None:
    """A differential equation, through the gradient of the network."""
    net = mlp(1, 32, 32, 1, activation=nn.Tanh)
    optim = torch.optim.Adam(net.parameters(), 3e-3)
    log = watched.watch(net)
    for _ in range(STEPS):
        time = (3 * torch.rand(64, 1)).requires_grad_()
        out = net(time)
        [slope] = torch.autograd.grad(out.sum(), time, create_graph=True)
        loss = (slope + out).square().mean() + (net(torch.zeros(1, 1)) - 1).square().mean()
        update(optim, loss)
        log({"residual_loss": loss.item()})


class WordPairs(nn.Module):
    """Words and contexts as vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.context = nn.Embedding(64, 16), nn.Embedding(64, 16)
        nn.init.zeros_(self.context.weight)

    def forward(self, word: Tensor, context: Tensor) -> Tensor:
        return (self.word(word)[:, None] * self.context(context)).sum(-1)


def negative_sampling(_broken: bool, watched: Watched) -> None:
    """Skip-grams of characters with negative samples; contexts begin at zero, as in word2vec."""
    net = WordPairs()
    optim = torch.optim.Adagrad(net.parameters(), 0.1)
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        word, right = x.reshape(-1), y.reshape(-1, 1)
        scores = net(word, torch.cat([right, torch.randint(64, (len(word), 5))], 1))
        loss = -F.logsigmoid(scores[:, 0]).mean() - F.logsigmoid(-scores[:, 1:]).sum(1).mean()
        update(optim, loss)
        log(loss)


class Mixture(nn.Module):
    """The logarithm of the likelihood under a mixture of Gaussians that depends on the input."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(16, 32), nn.Tanh()), nn.Linear(32, 12)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        share, mean, width = self.head(self.body(x)).chunk(3, 1)
        each = torch.distributions.Normal(mean, F.softplus(width) + 1e-2).log_prob(y)
        return torch.logsumexp(share.log_softmax(1) + each, 1)


def mixture_density(_broken: bool, watched: Watched) -> None:
    net = Mixture()
    optim = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(regression()):
        loss = -net(x, y).mean()
        update(optim, loss)
        log({"nll_loss": loss.item()})


class Gumbel(nn.Module):
    """An autoencoder whose code is nearly one choice of eight, four times."""

    def __init__(self) -> None:
        super().__init__()
        self.enc, self.dec = nn.Linear(64, 32), nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 64))

    def forward(self, x: Tensor, heat: float) -> Tensor:
        code = F.gumbel_softmax(self.enc(x).view(-1, 4, 8), heat)
        return self.dec(code.flatten(1))


def gumbel(_broken: bool, watched: Watched) -> None:
    net = Gumbel()
    optim = torch.optim.Adam(net.parameters(), 3e-3)
    log = watched.watch(net)
    for step, (x, _) in enumerate(drawn(normalised())):
        loss = F.mse_loss(net(x, max(0.5, 2 * 0.99**step)), x)
        update(optim, loss)
        log(loss)


class Hyper(nn.Module):
    """A network that writes the weights of another, for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.write = nn.Linear(4, 32), nn.Linear(32, 12 * 8 + 8)
        self.out = nn.Linear(8, 1)
        nn.init.normal_(self.write.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.write(F.relu(self.read(x[:, :4])))
        weight, bias = weights[:, :96].view(-1, 8, 12), weights[:, 96:]
        return self.out(torch.tanh((weight @ x[:, 4:, None])[..., 0] + bias))


def hypernetwork(_broken: bool, watched: Watched) -> None:
    net = Hyper()
    optim = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(regression()):
        loss = F.mse_loss(net(x), y)
        update(optim, loss)
        log(loss)


def energies(_broken: bool, watched: Watched) -> None:
    """Denoising score matching: the noise that was added is learned, at several scales."""
    net = nn.Sequential(nn.Linear(65, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 64))
    optim = torch.optim.Adam(net.parameters(), 1e-3)
    log = watched.watch(net)
    for x, _ in drawn(normalised(), size=64):
        scale, noise = torch.rand(len(x), 1) + 0.1, torch.randn_like(x)
        loss = (net(torch.cat([x + scale * noise, scale], 1)) - noise).square().mean()
        update(optim, loss)
        log(loss)


def ranking(_broken: bool, watched: Watched) -> None:
    """Which of two samples has the larger target."""
    net = mlp(10, 32, 1, activation=nn.LeakyReLU)
    optim = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, nesterov=True)
    log = watched.watch(net)
    for x, y in drawn(diabetes(), size=64):
        one, other = net(x[:32]), net(x[32:])
        loss = F.margin_ranking_loss(one, other, torch.sign(y[:32] - y[32:]), margin=0.1)
        update(optim, loss)
        log({"rank_loss": loss.item()})


def sparse_codes(_broken: bool, watched: Watched) -> None:
    """A sparse autoencoder, of which most units are off for a sample."""
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    optim = torch.optim.Adam(net.parameters(), 1e-3)
    log = watched.watch(net)
    for x, _ in drawn(normalised(), size=64):
        code = net[1](net[0](x))
        out = net[2](code)
        loss = F.mse_loss(out, x) + 0.01 * code.abs().mean()
        update(optim, loss)
        log(loss)


def flow_of_cells(_broken: bool, watched: Watched) -> None:
    """A flow with bounded scales, under a plateau schedule."""
    net = Flow(30)
    optim = torch.optim.Adamax(net.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optim, patience=10)
    log = watched.watch(net)
    for x, _ in drawn(standardised(cancer()), size=48):
        loss = net(x).mean()
        update(optim, loss)
        schedule.step(loss.item())
        log({"nll": loss.item()})


def held_out_nodes(_broken: bool, watched: Watched) -> None:
    """A graph with dropout, half of whose nodes have labels; evaluated every 25 steps."""
    x, adjacency, y = neighbours()
    net = MessagePassing(2, mean=True)
    optim = torch.optim.Adam(net.parameters(), 5e-3, weight_decay=5e-4)
    log = watched.watch(net)
    for step in range(STEPS):
        out = net(F.dropout(x, 0.3), adjacency)
        loss = F.cross_entropy(out[:150], y[:150])
        update(optim, loss)
        log({"train_loss": loss.item()})
        if step % 25 == 24:
            net.eval()
            with torch.no_grad():
                held_out = F.cross_entropy(net(x, adjacency)[150:], y[150:])
            net.train()
            log({"val_loss": held_out.item()})


def six_experts(_broken: bool, watched: Watched) -> None:
    """Six experts that are kept in balance, with noise on the samples."""
    net = SwitchLayer()
    optim = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(normalised(), size=64):
        loss = F.cross_entropy(net(x + 0.1 * torch.randn_like(x)), y) + 0.05 * net.balance
        update(optim, loss)
        log(loss)


def dilated(_broken: bool, watched: Watched) -> None:
    """Dilated convolutions over text, in two groups of parameters, with accumulation."""
    net = Temporal()
    optim = torch.optim.AdamW(
        [{"params": net.embed.parameters(), "lr": 1e-2}, {"params": [*net.convs.parameters(), *net.head.parameters()]}],
        3e-3,
    )
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        for part in range(2):
            loss = next_character(net(x[8 * part : 8 * part + 8]), y[8 * part : 8 * part + 8])
            (loss / 2).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optim.step()
        optim.zero_grad()
        log({"loss": loss.item()})


def padded_sentences(_broken: bool, watched: Watched) -> None:
    net = Tagger()
    optim = torch.optim.RAdam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        tokens = x.clamp(min=1)
        tokens[torch.arange(32) >= torch.randint(4, 33, (len(x), 1))] = 0
        loss = F.cross_entropy(net(tokens).reshape(-1, 64), y.masked_fill(tokens == 0, -100).reshape(-1))
        update(optim, loss)
        log(loss)


def focal(_broken: bool, watched: Watched) -> None:
    """Segmentation by the focal loss, with flipped images."""
    net = Segmenter()
    optim = torch.optim.Adam(net.parameters(), 3e-3)
    log = watched.watch(net)
    for x, y in drawn(segments(), size=16):
        if torch.rand(()) < 0.5:
            x, y = x.flip(-1), y.flip(-1)  # noqa: PLW2901  # as people write it
        each = F.cross_entropy(net(x), y, reduction="none")
        loss = ((1 - torch.exp(-each)) ** 2 * each).mean()
        update(optim, loss)
        log(loss)


def probed_transformer(_broken: bool, watched: Watched) -> None:
    """A transformer that was trained before; only its head and norms learn."""
    net = ViT()
    warm = torch.optim.AdamW(net.parameters(), 3e-3)
    for x, y in drawn(images(), steps=80):
        update(warm, F.cross_entropy(net(x), y % 5))
    net.requires_grad_(requires_grad=False)
    net.head = nn.Linear(32, 10)
    tuned = [*net.norm.parameters(), *net.head.parameters()]
    for one in tuned:
        one.requires_grad_()
    optim = torch.optim.AdamW(tuned, 1e-2)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(optim, loss)
        log(loss)


HEALTHY = (
    Script("mixup with a mixer", mixed_up),
    Script("mean teacher", mean_teacher),
    Script("triplets", triplets),
    Script("quantile regression", quantiles),
    Script("differential equation", physics),
    Script("skip-grams with negative samples", negative_sampling),
    Script("mixture density", mixture_density),
    Script("Gumbel softmax", gumbel),
    Script("hypernetwork", hypernetwork),
    Script("score matching", energies),
    Script("pairs ranked", ranking),
    Script("sparse autoencoder", sparse_codes),
    Script("bounded flow", flow_of_cells),
    Script("message passing with held-out nodes", held_out_nodes),
    Script("six experts in balance", six_experts),
    Script("dilated convolutions accumulated", dilated),
    Script("padded sentences", padded_sentences),
    Script("focal loss", focal),
    Script("probed transformer", probed_transformer),
)
