"""Faulty trainings of kinds that the other programs lack, written before the rules were changed, and then measured."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.programs.earlier import cancer, rows, standardised
from benchmarks.programs.fresh_networks import neighbours, next_character, pole
from benchmarks.programs.further import source
from benchmarks.programs.measured_healthy import diabetes
from benchmarks.programs.program import STEPS, images, mlp, normalised
from benchmarks.programs.script import Script, Watched, drawn, update
from benchmarks.programs.unseen_healthy import HEALTHY as OTHERS
from benchmarks.programs.unseen_networks import (
    VAE,
    ActorCritic,
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

HEALTHY = OTHERS


def cleared_before_update(broken: bool, watched: Watched) -> None:
    """`zero_grad` stands between `backward` and `step`, so nothing is learned."""
    net = RowReader()
    optim = torch.optim.RMSprop(net.parameters(), 1e-3)
    log = watched.watch(net)
    for x, y in drawn(rows()):
        loss = F.cross_entropy(net(x), y)
        if not broken:
            optim.zero_grad()
        loss.backward()
        if broken:
            optim.zero_grad()
        optim.step()
        log({"train/loss": loss.item()})


def messages_added_up(broken: bool, watched: Watched) -> None:
    """Messages of all neighbours are added over ten rounds, where their mean was meant."""
    x, adjacency, y = neighbours()
    net = MessagePassing(10 if broken else 3, mean=not broken)
    optim = torch.optim.Adam(net.parameters(), 3e-3)
    log = watched.watch(net)
    for _ in range(STEPS):
        loss = F.cross_entropy(net(x, adjacency), y)
        update(optim, loss)
        log(loss)


def latent_detached(broken: bool, watched: Watched) -> None:
    """The encoder's output is detached, so only the heads and the decoder learn."""
    net = VAE(detach=broken)
    optim = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, _ in drawn(normalised()):
        seen, mu, logvar = net(x)
        kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
        loss = F.mse_loss(seen, x, reduction="none").sum(1).mean() + 0.1 * kl
        update(optim, loss)
        log({"loss": loss.item(), "kl": kl.item()})


def summed_loss(broken: bool, watched: Watched) -> None:
    """The loss is added over batch and pixels, at the rate for a mean."""
    net = Temporal()
    optim = torch.optim.SGD(net.parameters(), 0.3, momentum=0.9)
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        logits = net(x).reshape(-1, 64)
        loss = F.cross_entropy(logits, y.reshape(-1), reduction="sum" if broken else "mean")
        update(optim, loss)
        log({"loss": loss.item()})


def softmax_over_the_batch(broken: bool, watched: Watched) -> None:
    """A softmax before the loss, over the wrong dimension at that."""
    net = Segmenter(softmax=0 if broken else None)
    optim = torch.optim.Adam(net.parameters(), 3e-3)
    log = watched.watch(net)
    for x, y in drawn(segments(), size=16):
        loss = F.cross_entropy(net(x), y)
        update(optim, loss)
        log(loss)


def still_evaluating(broken: bool, watched: Watched) -> None:
    """After the first evaluation, `model.train()` is forgotten."""
    net = ViT()
    optim = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for step, (x, y) in enumerate(drawn(images())):
        loss = F.cross_entropy(net(x), y)
        update(optim, loss)
        log(loss)
        if step == 39:
            net.eval()
            with torch.no_grad():
                net(images()[0][:64])
            if not broken:
                net.train()


def gate_that_prefers(broken: bool, watched: Watched) -> None:
    """A gate that begins with a preference, and no loss that balances it."""
    net = SwitchLayer()
    if broken:
        with torch.no_grad():
            net.gate.bias[1] = 4.0
    optim = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(normalised(), size=64):
        loss = F.cross_entropy(net(x), y) + (0.0 if broken else 0.1) * net.balance
        update(optim, loss)
        log(loss)


def critic_left_out(broken: bool, watched: Watched) -> None:
    """The optimizer has the trunk and the actor; the critic stays as it began."""
    net = ActorCritic()
    held = [*net.trunk.parameters(), *net.actor.parameters()]
    optim = torch.optim.Adam(held if broken else net.parameters(), 3e-3)
    log = watched.watch(net)
    state = torch.randn(64, 4) * 0.05
    for _ in range(STEPS):
        logits, value = net(state)
        chosen = torch.distributions.Categorical(logits=logits).sample()
        following = pole(state, 2.0 * chosen - 1)
        reward = 1 - following[:, 2].abs()
        with torch.no_grad():
            goal = reward + 0.9 * net.critic(net.trunk(following))[:, 0]
        gain = goal - value
        policy = -(F.log_softmax(logits, 1).gather(1, chosen[:, None])[:, 0] * gain.detach()).mean()
        update(optim, policy + 0.5 * gain.square().mean())
        log({"policy_loss": policy.item(), "reward": reward.mean().item()})
        fallen = following[:, 2].abs() > 0.4
        state = torch.where(fallen[:, None], torch.randn(64, 4) * 0.05, following).detach()


def unbounded_scales(broken: bool, watched: Watched) -> None:
    """The logarithms of a flow's scales are not bounded, and grow."""
    net = Flow(30, bounded=not broken)
    optim = torch.optim.Adam(net.parameters(), 1e-2 if broken else 1e-3)
    log = watched.watch(net)
    for x, _ in drawn(standardised(cancer())):
        loss = net(x).mean()
        update(optim, loss)
        log({"nll": loss.item()})


def probabilities_for_logarithms(broken: bool, watched: Watched) -> None:
    """The student hands probabilities to a divergence that wants their logarithms."""
    student, teacher = mlp(64, 32, 10), mlp(64, 128, 10)
    warm = torch.optim.Adam(teacher.parameters(), 3e-3)
    for x, y in drawn(normalised(), steps=60):
        update(warm, F.cross_entropy(teacher(x), y))
    optim = torch.optim.Adam(student.parameters(), 2e-3)
    if broken:
        student.add_module("softmax", nn.Softmax(-1))
    log = watched.watch(student)
    for x, _ in drawn(normalised()):
        with torch.no_grad():
            wanted = (teacher(x) / 2).softmax(-1)
        out = student(x)
        loss = F.kl_div(out if broken else (out / 2).log_softmax(-1), wanted, reduction="batchmean")
        update(optim, loss)
        log({"distill_loss": loss.item()})


def halved_each_batch(broken: bool, watched: Watched) -> None:
    """A schedule for epochs is stepped at each batch, so nothing is learned after some steps."""
    net = Mixer()
    optim = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optim, 1, 0.5)
    log = watched.watch(net)
    for step, (x, y) in enumerate(drawn(images())):
        loss = F.cross_entropy(net(x), y)
        update(optim, loss)
        if broken or step % 56 == 55:
            schedule.step()
        log({"loss": loss.item(), "lr": schedule.get_last_lr()[0]})


class TiedTemporal(Temporal):
    """Predicts with the embedding's weights."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(24, 64, bias=False)
        nn.init.normal_(self.embed.weight, std=0.2)
        self.project.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens).transpose(1, 2)
        for conv in self.convs:
            x = x + F.relu(conv(F.pad(x, (2 * conv.dilation[0], 0))))
        return self.project(x.transpose(1, 2)) + 0.0 * self.head.weight.sum() + 0.0 * self.head.bias.sum()


def untied_by_loading(broken: bool, watched: Watched) -> None:
    """The tied weight is replaced by a copy when weights are loaded, after the optimizer was made."""
    net = TiedTemporal()
    optim = torch.optim.Adam(net.parameters(), 3e-3)
    if broken:
        net.project.weight = nn.Parameter(net.embed.weight.detach().clone())
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        loss = next_character(net(x), y)
        update(optim, loss)
        log(loss)


def mask_inverted(broken: bool, watched: Watched) -> None:
    """The mask hides the tokens and shows the padding."""
    net = Tagger(inverted=broken)
    optim = torch.optim.Adam(net.parameters(), 1e-3)
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        tokens = x.clamp(min=1)
        tokens[torch.arange(32) >= torch.randint(8, 33, (len(x), 1))] = 0
        loss = F.cross_entropy(net(tokens).reshape(-1, 64), y.reshape(-1))
        update(optim, loss)
        log(loss)


def clipped_to_nothing(broken: bool, watched: Watched) -> None:
    """The norm of gradients is clipped to 1e-6."""
    net = Segmenter()
    optim = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    log = watched.watch(net)
    for x, y in drawn(segments(), size=16):
        optim.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1e-6 if broken else 5.0)
        optim.step()
        log(loss)


def half_with_adam(broken: bool, watched: Watched) -> None:
    """Weights in float16, where Adam's epsilon is zero."""
    net = Mixer()
    net = net.half() if broken else net.bfloat16()
    optim = torch.optim.Adam(net.parameters(), 1e-3, eps=1e-8)
    x, y = images()
    log = watched.watch(net)
    for a, b in drawn((x.to(next(net.parameters()).dtype), y)):
        loss = F.cross_entropy(net(a).float(), b)
        update(optim, loss)
        log(loss)


def rate_of_ten(broken: bool, watched: Watched) -> None:
    """A convolutional network whose ReLUs die of a learning rate of 10."""
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3), nn.ReLU(), nn.Conv2d(12, 24, 3), nn.ReLU(), nn.Flatten(), nn.Linear(384, 10)
    )
    optim = torch.optim.SGD(net.parameters(), 10.0 if broken else 0.05)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(optim, loss)
        log({"loss": loss.item()})


def places_that_swamp(broken: bool, watched: Watched) -> None:
    """Position embeddings that begin ten thousand times as large as they should."""
    net = ViT(position=200.0 if broken else 0.02)
    optim = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(optim, loss)
        log(loss)


def bytes_as_they_are(broken: bool, watched: Watched) -> None:
    """A network on images of 0 to 255."""
    net = Segmenter()
    optim = torch.optim.Adam(net.parameters(), 1e-3)
    x, y = segments()
    shown = (x - x.min()) / (x.max() - x.min()) * 255 if broken else x
    log = watched.watch(net)
    for a, b in drawn((shown, y), size=16):
        loss = F.cross_entropy(net(a), b)
        update(optim, loss)
        log(loss)


def wrapped_again(broken: bool, watched: Watched) -> None:
    """The loss is made a new tensor, which leads back to nothing."""
    net = mlp(10, 32, 32, 1)
    optim = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(diabetes()):
        optim.zero_grad()
        loss = F.huber_loss(net(x), y)
        if broken:
            loss = torch.tensor(loss.item(), requires_grad=True)
        loss.backward()
        optim.step()
        log({"loss": loss.item()})


class Codebook(nn.Module):
    """Each latent is replaced by the code next to it; the gradient is copied past that, unless it is forgotten."""

    def __init__(self, *, copied: bool) -> None:
        super().__init__()
        self.enc, self.codes = nn.Linear(64, 16), nn.Embedding(32, 16)
        self.dec, self.copied = nn.Linear(16, 64), copied

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        latent = self.enc(x)
        near = self.codes(torch.cdist(latent, self.codes.weight).argmin(1))
        apart = F.mse_loss(near, latent.detach())
        if self.copied:
            apart = apart + 0.25 * F.mse_loss(latent, near.detach())
            near = latent + (near - latent).detach()
        return self.dec(near), apart


def argmax_in_the_way(broken: bool, watched: Watched) -> None:
    net = Codebook(copied=not broken)
    optim = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, _ in drawn(normalised()):
        out, apart = net(x)
        loss = F.mse_loss(out, x) + apart
        update(optim, loss)
        log(loss)


def one_block_short(broken: bool, watched: Watched) -> None:
    """The loop over the blocks ends one too early."""
    net = Mixer()
    net.used = 2 if broken else 3
    optim = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(optim, loss)
        log(loss)


def targets_of_other_samples(broken: bool, watched: Watched) -> None:
    """Samples are shuffled, and their targets in another order."""
    net = RowReader()
    optim = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(rows()):
        order = torch.randperm(len(x))
        loss = F.cross_entropy(net(x[order]), y[torch.randperm(len(y)) if broken else order])
        update(optim, loss)
        log({"loss": loss.item()})


def cleared_by_the_other(broken: bool, watched: Watched) -> None:
    """The gradients that are cleared are those of another network."""
    x, adjacency, y = neighbours()
    net, other = MessagePassing(2, mean=True), mlp(4, 4)
    optim = torch.optim.SGD(net.parameters(), 0.02)
    cleared = torch.optim.SGD(other.parameters(), 0.02) if broken else optim
    log = watched.watch(net)
    for _ in range(STEPS):
        cleared.zero_grad()
        loss = F.cross_entropy(net(x, adjacency), y)
        loss.backward()
        optim.step()
        log(loss)


def decay_of_ten(broken: bool, watched: Watched) -> None:
    """AdamW with a weight decay of 100 for 0.1."""
    net = ViT()
    optim = torch.optim.AdamW(net.parameters(), 1e-3, weight_decay=100.0 if broken else 0.1)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(optim, loss)
        log(loss)


FAST = ("update-too-large", "exploding-gradient", "exploding-activation", "loss-diverging", "nan", "loss-spike")
SLOW = ("update-too-small", "loss-not-falling")

FAULTY = (
    Script("row reader cleared before the update", cleared_before_update, ("gradients-cleared", "update-too-small")),
    Script("messages added up", messages_added_up, ("bad-init-scale", "imbalanced-branches", *FAST)),
    Script("latent detached", latent_detached, ("no-gradient",), ("encoder", "encoder.0")),
    Script("summed loss", summed_loss, (*FAST, "dead-units")),
    Script("softmax over the batch", softmax_over_the_batch, ("softmax-over-batch", "loss-not-falling")),
    Script("still evaluating", still_evaluating, ("training-in-eval-mode",), ("",), 40),
    Script("gate that prefers", gate_that_prefers, ("expert-imbalance",), ("experts",)),
    Script("critic left out", critic_left_out, ("not-in-optimizer",), ("critic",)),
    Script("flow of unbounded scales", unbounded_scales, (*FAST, "bad-init-scale")),
    Script("probabilities for logarithms", probabilities_for_logarithms, ("softmax-before-loss", "loss-not-falling")),
    Script("rate halved at each batch", halved_each_batch, SLOW),
    Script("untied by loading", untied_by_loading, ("not-in-optimizer",), ("project",)),
    Script("mask inverted", mask_inverted, ("nan", "padding-mask-inverted")),
    Script("clipped to nothing", clipped_to_nothing, ("clipping-always", "update-too-small"), (None,)),
    Script("half with Adam", half_with_adam, ("nan", "overflow-ahead", "update-too-large")),
    Script("rate of ten", rate_of_ten, (*FAST, "dead-units")),
    Script("places that swamp", places_that_swamp, ("imbalanced-branches", "bad-init-scale"), ()),
    Script("bytes as they are", bytes_as_they_are, ("input-not-normalised",), ("", "enc1", "enc1.0")),
    Script("loss wrapped again", wrapped_again, ("no-gradient", "update-too-small")),
    Script("argmax in the way", argmax_in_the_way, ("no-gradient",), ("enc",)),
    Script(
        "one block short", one_block_short, ("unused-module",), ("tokens.2", "tokens.2.0", "channels.2.0", "norms.4")
    ),
    Script("targets of other samples", targets_of_other_samples, ("loss-not-falling",), (None,)),
    Script("cleared by the other", cleared_by_the_other, ("no-zero-grad",), (None,)),
    Script("decay of a hundred", decay_of_ten, ("weight-decay-dominates",)),
)
