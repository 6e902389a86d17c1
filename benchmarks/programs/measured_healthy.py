"""The healthy programs of the half that is only ever measured. Choose no threshold by looking at them."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.programs.earlier import Block, cancer, rows, standardised, wine
from benchmarks.programs.further import sequence_loss, source
from benchmarks.programs.program import (
    Losses,
    Program,
    Setup,
    adam,
    images,
    mlp,
    normalised,
    regression,
    supervised,
)


@lru_cache
def diabetes() -> tuple[Tensor, Tensor]:
    """Ten measurements of patients and how their illness went on, both standardised: `[442, 10]` and `[442, 1]`."""
    from sklearn.datasets import load_diabetes

    samples, targets = (torch.tensor(one, dtype=torch.float32) for one in load_diabetes(return_X_y=True))
    return (samples - samples.mean(0)) / samples.std(0), ((targets - targets.mean()) / targets.std())[:, None]


class Characters(nn.Module):
    """An LSTM over characters."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(64, 24), nn.LSTM(24, 48, batch_first=True), nn.Linear(48, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(self.embed(x))[0])


def recurrent_language_model(_broken: bool) -> Setup:
    model = Characters()
    optimizer = adam(model, 5e-3)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = sequence_loss(model(samples), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, source(), batch=16)


class UNet(nn.Module):
    """Down, up, and a way around."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle = nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up, self.last = nn.ConvTranspose2d(16, 8, 2, stride=2), nn.Conv2d(9, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.leaky_relu(self.middle(F.leaky_relu(self.down(x))))
        return self.last(torch.cat([self.up(hidden), x], 1))


def denoising(_broken: bool) -> Setup:
    model = UNet()
    optimizer = adam(model)

    def step(samples: Tensor, _targets: Tensor) -> dict[str, Tensor]:
        optimizer.zero_grad()
        loss = F.l1_loss(model(samples + torch.randn_like(samples)), samples)
        loss.backward()
        optimizer.step()
        return {"train/l1_loss": loss}

    return Setup(model, step, optimizer, images())


class Grouped(nn.Module):
    """Residual blocks with group normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.GroupNorm(4, 16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1)) for _ in range(3)
        )
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(F.relu(x).mean((2, 3)))


def cosine_schedule(_broken: bool) -> Setup:
    model = Grouped()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 150)
    setup = supervised(model, optimizer, images())

    def step(samples: Tensor, targets: Tensor) -> dict[str, object]:
        loss = setup.step(samples, targets)
        schedule.step()
        return {"loss": loss, "lr": schedule.get_last_lr()[0]}

    return Setup(model, step, optimizer, setup.data)


class Vision(nn.Module):
    """Patches, a token for the class, and two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.token = nn.Conv2d(1, 32, 2, stride=2), nn.Parameter(torch.zeros(1, 1, 32))
        self.place = nn.Parameter(0.02 * torch.randn(1, 17, 32))
        self.blocks, self.norm, self.head = nn.Sequential(Block(32), Block(32)), nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


def vision_transformer(_broken: bool) -> Setup:
    model = Vision()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    return supervised(model, optimizer, images(), lambda out, y: F.cross_entropy(out, y, label_smoothing=0.1))


class Messages(nn.Module):
    """Attention over the neighbours of each node."""

    neighbours: Tensor

    def __init__(self, samples: Tensor) -> None:
        super().__init__()
        self.register_buffer("neighbours", torch.cdist(samples, samples).topk(5, largest=False).indices)
        self.send, self.score, self.head = nn.Linear(30, 16), nn.Linear(32, 1), nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        sent = self.send(x)
        near = sent[self.neighbours]
        pairs = torch.cat([sent[:, None].expand_as(near), near], 2)
        return self.head(F.elu((F.leaky_relu(self.score(pairs)).softmax(1) * near).sum(1)))


def graph_attention(_broken: bool) -> Setup:
    model = Messages(standardised(cancer())[0])
    return supervised(model, adam(model, 5e-3), standardised(cancer()), batch=0)


class Chain:
    """A walk over eight places; the last one pays."""

    def __init__(self) -> None:
        self.place = torch.randint(0, 8, (32,))

    def moved(self, action: Tensor) -> Tensor:
        """Go left or right, and get paid at the end."""
        self.place = (self.place + 2 * action - 1).clamp(0, 7)
        reward = (self.place == 7).float()
        self.place = torch.where(self.place == 7, torch.randint(0, 4, (32,)), self.place)
        return reward


def deep_q_learning(_broken: bool) -> Setup:
    model, walk = mlp(8, 32, 2), Chain()
    frozen, optimizer, count = deepcopy(model), adam(model, 3e-3), iter(range(10**9))

    def step(_samples: Tensor, _targets: Tensor) -> dict[str, object]:
        before = F.one_hot(walk.place, 8).float()
        with torch.no_grad():
            greedy = frozen(before).argmax(1)
        action = torch.where(torch.rand(32) < 0.3, torch.randint(0, 2, (32,)), greedy)
        reward = walk.moved(action)
        with torch.no_grad():
            wanted = reward + 0.95 * frozen(F.one_hot(walk.place, 8).float()).amax(1)
        optimizer.zero_grad()
        loss = F.smooth_l1_loss(model(before).gather(1, action[:, None])[:, 0], wanted)
        loss.backward()
        optimizer.step()
        if not next(count) % 10:
            frozen.load_state_dict(model.state_dict())
        return {"loss": loss, "mean_reward": reward.mean(), "epsilon": 0.3}

    return Setup(model, step, optimizer, normalised())


class ActorAndCritic(nn.Module):
    """A policy and its value on one body."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.actor, self.critic = nn.Linear(8, 32), nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.tanh(self.body(x))
        return self.actor(x), self.critic(x)[:, 0]


def actor_critic(_broken: bool) -> Setup:
    model, walk = ActorAndCritic(), Chain()
    optimizer = adam(model, 3e-3)

    def step(_samples: Tensor, _targets: Tensor) -> dict[str, Tensor]:
        logits, value = model(F.one_hot(walk.place, 8).float())
        choice = torch.distributions.Categorical(logits=logits)
        action = choice.sample()
        reward = walk.moved(action)
        with torch.no_grad():
            wanted = reward + 0.9 * model(F.one_hot(walk.place, 8).float())[1]
        policy = -(choice.log_prob(action) * (wanted - value.detach())).mean()
        critic = F.mse_loss(value, wanted)
        optimizer.zero_grad()
        (policy + 0.5 * critic - 0.01 * choice.entropy().mean()).backward()
        optimizer.step()
        return {"policy_loss": policy, "value_loss": critic, "entropy": choice.entropy().mean()}

    return Setup(model, step, optimizer, normalised())


def wasserstein(_broken: bool) -> Setup:
    model = nn.ModuleDict({"generator": mlp(8, 32, 13), "critic": mlp(13, 32, 1)})
    makes, judges = (torch.optim.RMSprop(model[name].parameters(), lr=5e-4) for name in ("generator", "critic"))

    def step(samples: Tensor, _targets: Tensor) -> dict[str, Tensor]:
        for _ in range(2):
            judges.zero_grad()
            fake = model["generator"](torch.randn(len(samples), 8)).detach()
            critic = model["critic"](fake).mean() - model["critic"](samples).mean()
            critic.backward()
            judges.step()
            with torch.no_grad():
                for one in model["critic"].parameters():
                    one.clamp_(-0.1, 0.1)
        makes.zero_grad()
        made = -model["critic"](model["generator"](torch.randn(len(samples), 8))).mean()
        made.backward()
        makes.step()
        return {"critic_loss": critic, "generator_loss": made}

    return Setup(model, step, None, standardised(wine()))


class Flow(nn.Module):
    """Four affine couplings."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(mlp(6, 32, 14, activation=nn.Tanh) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        logs = torch.zeros(len(x))
        for part in self.parts:
            kept, moved = x[:, :6], x[:, 6:]
            scale, shift = part(kept).chunk(2, 1)
            x = torch.cat([moved * scale.tanh().exp() + shift, kept], 1)
            logs = logs + scale.tanh().sum(1)
        return logs - (x**2).sum(1) / 2


def normalising_flow(_broken: bool) -> Setup:
    model = Flow()
    return supervised(model, adam(model, 2e-3), standardised(wine()), lambda out, _: -out.mean() / 13)


def bootstrapped_views(_broken: bool) -> Setup:
    model = nn.ModuleDict({"online": mlp(64, 64, 16), "predict": mlp(16, 32, 16)})
    model["target"] = deepcopy(model["online"]).requires_grad_(False)
    optimizer = adam(model, 1e-3)

    def step(samples: Tensor, _targets: Tensor) -> Tensor:
        one, two = (samples + 0.5 * torch.randn_like(samples) for _ in range(2))
        with torch.no_grad():
            wanted = F.normalize(model["target"](two), dim=1)
        optimizer.zero_grad()
        loss = 2 - 2 * (F.normalize(model["predict"](model["online"](one)), dim=1) * wanted).sum(1).mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(model["target"].parameters(), model["online"].parameters(), strict=True):
                slow.lerp_(fast, 0.02)
        return loss

    return Setup(model, step, optimizer, normalised())


class LowRank(nn.Module):
    """A frozen layer and what is learned beside it."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(4, base.in_features) / 8)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 2 * x @ self.lora_a.T @ self.lora_b.T


def fitted(setup: Setup, steps: int) -> None:
    """Train before anything is watched."""
    samples, targets = setup.data
    for _ in range(steps):
        at = torch.randint(len(samples), (32,))
        setup.step(samples[at], targets[at])


def adapted_transformer(_broken: bool) -> Setup:
    model = Vision()
    fitted(supervised(model, adam(model, 2e-3), images()), 40)
    model.requires_grad_(False)
    for block in model.blocks:
        block.up, block.down = LowRank(block.up), LowRank(block.down)  # type: ignore[arg-type]
    return supervised(model, adam(model, 2e-3), images())


class Backbone(nn.Module):
    """Convolutions with batch normalisation that are kept as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
        )
        self.head = nn.Linear(256, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def transfer(_broken: bool) -> Setup:
    model = Backbone()
    fitted(supervised(model, adam(model, 2e-3), images()), 60)
    model.features.requires_grad_(False).eval()
    model.head = nn.Linear(256, 2)
    samples, targets = images()
    return supervised(model, adam(model, 2e-3), (samples, targets % 2))


def continued(_broken: bool) -> Setup:
    model = mlp(64, 64, 32, 10)
    setup = supervised(model, adam(model, 5e-4), normalised())
    fitted(setup, 400)
    return setup


def distilled(_broken: bool) -> Setup:
    teacher = mlp(64, 64, 10)
    fitted(supervised(teacher, adam(teacher, 3e-3), normalised()), 100)
    model = mlp(64, 16, 10)
    optimizer = adam(model, 3e-3)

    def step(samples: Tensor, targets: Tensor) -> dict[str, Tensor]:
        with torch.no_grad():
            wanted = (teacher(samples) / 2).softmax(1)
        optimizer.zero_grad()
        outputs = model(samples)
        soft = F.kl_div((outputs / 2).log_softmax(1), wanted, reduction="batchmean") * 4
        loss = soft + 0.5 * F.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        return {"loss/total": loss, "loss/soft": soft}

    return Setup(model, step, optimizer, normalised())


def mixed_up(_broken: bool) -> Setup:
    samples, targets = normalised()
    model = mlp(64, 96, 10, activation=nn.SiLU)
    optimizer = adam(model, 2e-3)

    def step(x: Tensor, y: Tensor) -> Tensor:
        share, other = float(torch.rand(1)), torch.randperm(len(x))
        optimizer.zero_grad()
        outputs = model(share * x + (1 - share) * x[other])
        loss = share * F.cross_entropy(outputs, y) + (1 - share) * F.cross_entropy(outputs, y[other])
        loss.backward()
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, (samples, targets))


def focal(_broken: bool) -> Setup:
    samples, targets = normalised()
    model = mlp(64, 32, 1)
    nn.init.constant_(model.fc2.bias, -3.0)  # type: ignore[union-attr,arg-type]

    def loss(outputs: Tensor, wanted: Tensor) -> Tensor:
        each = F.binary_cross_entropy_with_logits(outputs, wanted, reduction="none")
        return ((1 - (-each).exp()) ** 2 * each).mean()

    return supervised(model, adam(model, 2e-3), (samples, (targets == 7).float()[:, None]), loss)


def quantiles(_broken: bool) -> Setup:
    model = mlp(10, 32, 3)
    levels = torch.tensor([0.1, 0.5, 0.9])

    def loss(outputs: Tensor, wanted: Tensor) -> Tensor:
        away = wanted - outputs
        return torch.maximum(levels * away, (levels - 1) * away).mean()

    return supervised(model, adam(model, 3e-3), diabetes(), loss)


def counts(_broken: bool) -> Setup:
    samples, _ = regression(8)
    rates = (samples[:, :3].sum(1, keepdim=True) / 2).exp()
    wanted = torch.poisson(rates, generator=torch.Generator().manual_seed(0))
    model = mlp(8, 32, 1, activation=nn.Softplus)
    return supervised(model, adam(model, 5e-3), (samples, wanted), nn.PoissonNLLLoss(full=True))


def physics(_broken: bool) -> Setup:
    places = torch.linspace(0, math.pi, 90)[:, None].requires_grad_()
    model = mlp(1, 32, 32, 1, activation=nn.Tanh)
    optimizer = adam(model, 5e-3)

    def step(x: Tensor, _targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        value = model(x)
        first = torch.autograd.grad(value.sum(), x, create_graph=True)[0]
        second = torch.autograd.grad(first.sum(), x, create_graph=True)[0]
        loss = ((second + value) ** 2).mean() + 10 * (value[0] ** 2 + (first[0] - 1) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, (places, places), batch=0)


def logistic(_broken: bool) -> Setup:
    model = nn.Linear(30, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5, line_search_fn="strong_wolfe")

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(samples), targets) + 1e-3 * (model.weight**2).sum()
            loss.backward()
            return loss

        return optimizer.step(closure)

    return Setup(model, step, optimizer, standardised(cancer()), batch=0)


def at_the_edge(_broken: bool) -> Setup:
    model = mlp(64, 64, 10, activation=nn.Tanh)
    return supervised(model, torch.optim.SGD(model.parameters(), lr=0.5), normalised(), batch=64)


def root_mean_square(_broken: bool) -> Setup:
    model = mlp(10, 24, 1)
    return supervised(model, torch.optim.RMSprop(model.parameters(), lr=2e-3), diabetes(), F.smooth_l1_loss)


def pruned(_broken: bool) -> Setup:
    model = mlp(64, 128, 10)
    masks = {name: (torch.rand_like(one) < 0.2).float() for name, one in model.named_parameters() if one.dim() > 1}
    optimizer = adam(model, 3e-3)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        with torch.no_grad():
            for name, mask in masks.items():
                model.get_parameter(name).mul_(mask)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, normalised())


class Hyper(nn.Module):
    """A network whose weights another one makes."""

    def __init__(self) -> None:
        super().__init__()
        self.code, self.make, self.head = nn.Parameter(torch.randn(8)), nn.Linear(8, 64 * 16), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(x @ self.make(self.code).view(64, 16) / 4))


def hypernetwork(_broken: bool) -> Setup:
    model = Hyper()
    return supervised(model, adam(model, 2e-3), normalised())


def mixture_density(_broken: bool) -> Setup:
    model = mlp(10, 32, 9, activation=nn.Tanh)

    def loss(outputs: Tensor, wanted: Tensor) -> Tensor:
        logits, mean, log_std = outputs.chunk(3, 1)
        each = -(((wanted - mean) / log_std.exp()) ** 2) / 2 - log_std
        return -torch.logsumexp(logits.log_softmax(1) + each, 1).mean()

    return supervised(model, adam(model, 5e-3), diabetes(), loss)


def triplets(_broken: bool) -> Setup:
    samples, targets = normalised()
    by_class = [samples[targets == one] for one in range(10)]
    model = mlp(64, 64, 8)
    optimizer = adam(model)

    def step(anchors: Tensor, wanted: Tensor) -> dict[str, Tensor]:
        near = torch.stack([by_class[one][torch.randint(len(by_class[one]), ())] for one in wanted.tolist()])
        far = torch.stack([by_class[one - 1][torch.randint(len(by_class[one - 1]), ())] for one in wanted.tolist()])
        optimizer.zero_grad()
        loss = F.triplet_margin_loss(model(anchors), model(near), model(far))
        loss.backward()
        optimizer.step()
        return {"triplet_loss": loss}

    return Setup(model, step, optimizer, (samples, targets))


class NormalisedRows(nn.Module):
    """A perceptron with batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.norm, self.two = nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.two(F.relu(self.norm(self.one(x))))


def accumulated_eight(_broken: bool) -> Setup:
    model = NormalisedRows()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(samples: Tensor, targets: Tensor) -> Losses:
        losses = []
        for some, wanted in zip(samples.chunk(8), targets.chunk(8), strict=True):
            losses.append(F.cross_entropy(model(some), wanted))
            (losses[-1] / 8).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return torch.stack(losses).mean()

    return Setup(model, step, optimizer, normalised(), batch=64)


def deep_linear(_broken: bool) -> Setup:
    model = mlp(10, *[16] * 6, 1, activation=nn.Identity)
    for one in model.parameters():
        if one.dim() > 1:
            nn.init.orthogonal_(one)
    return supervised(model, torch.optim.SGD(model.parameters(), lr=0.01), diabetes(), F.mse_loss)


class Dense(nn.Module):
    """Experts that all see each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(13, 4), nn.ModuleList(mlp(13, 16, 3) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        weights = self.gate(x).softmax(1)
        return (torch.stack([expert(x) for expert in self.experts], 1) * weights[..., None]).sum(1)


def dense_experts(_broken: bool) -> Setup:
    model = Dense()
    return supervised(model, adam(model, 5e-3), standardised(wine()))


def one_sample(_broken: bool) -> Setup:
    model = nn.Sequential(nn.Linear(64, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 10))
    return supervised(model, torch.optim.SGD(model.parameters(), lr=0.01), normalised(), batch=1)


class Repeated(nn.Module):
    """One block again and again, as the steps of a differential equation."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.block, self.leave = nn.Linear(64, 32), mlp(32, 32, 32, activation=nn.Tanh), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for _ in range(6):
            x = x + self.block(x) / 6
        return self.leave(x)


def differential_equation(_broken: bool) -> Setup:
    model = Repeated()
    return supervised(model, adam(model, 3e-3), normalised())


class Bag(nn.Module):
    """The mean of embedded characters."""

    def __init__(self) -> None:
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(64, 32, mode="mean"), nn.Linear(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.bag(x))


def bag_of_characters(_broken: bool) -> Setup:
    samples, targets = source()
    model = Bag()
    return supervised(model, adam(model, 1e-2), (samples[:, -4:].contiguous(), targets[:, -1]))


def self_normalising(_broken: bool) -> Setup:
    model = nn.Sequential()
    for number in range(6):
        model.append(nn.Linear(64, 64))
        model.append(nn.SELU())
        model.append(nn.AlphaDropout(0.05))
        nn.init.normal_(model[3 * number].weight, std=1 / 8)  # type: ignore[arg-type]
    model.append(nn.Linear(64, 10))
    return supervised(model, adam(model), normalised())


def strong_dropout(_broken: bool) -> Setup:
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.6), nn.Linear(256, 10))
    return supervised(model, adam(model, 2e-3), normalised())


def autocast_of_attention(_broken: bool) -> Setup:
    model = Vision()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, images())


def bidirectional(_broken: bool) -> Setup:
    model = nn.ModuleDict({"cell": nn.GRU(8, 16, batch_first=True, bidirectional=True), "head": nn.Linear(32, 10)})
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model["head"](model["cell"](samples)[0].mean(1)), targets)
        loss.backward()
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, rows())


HEALTHY = (
    Program("LSTM language model with clipping", recurrent_language_model),
    Program("denoising with a way around", denoising),
    Program("group normalisation, cosine schedule", cosine_schedule),
    Program("vision transformer with label smoothing", vision_transformer),
    Program("graph attention", graph_attention),
    Program("deep Q-learning", deep_q_learning),
    Program("actor and critic", actor_critic),
    Program("Wasserstein GAN", wasserstein),
    Program("normalising flow", normalising_flow),
    Program("bootstrapped views", bootstrapped_views),
    Program("low-rank adapters of a transformer", adapted_transformer),
    Program("transfer from a frozen backbone", transfer),
    Program("training that goes on", continued),
    Program("distillation", distilled),
    Program("mixed samples", mixed_up),
    Program("focal loss", focal),
    Program("quantiles", quantiles),
    Program("counts", counts),
    Program("differential equation as a loss", physics),
    Program("logistic regression by LBFGS", logistic),
    Program("SGD at learning rate 0.5", at_the_edge),
    Program("RMSprop on diabetes", root_mean_square),
    Program("pruned weights", pruned),
    Program("hypernetwork", hypernetwork),
    Program("mixture density", mixture_density),
    Program("triplets", triplets),
    Program("eight accumulated batches", accumulated_eight),
    Program("deep linear network", deep_linear),
    Program("dense experts", dense_experts),
    Program("one sample at a time", one_sample),
    Program("one block six times", differential_equation),
    Program("bag of characters", bag_of_characters),
    Program("self-normalising network", self_normalising),
    Program("dropout of 0.6", strong_dropout),
    Program("transformer under autocast", autocast_of_attention),
    Program("bidirectional GRU with Adagrad", bidirectional),
)
