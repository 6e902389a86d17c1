"""Faulty trainings in other people's styles, written before the rules of that day were touched, and only measured.

Change no threshold to please them.
"""

from __future__ import annotations

import copy
import tempfile
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from benchmarks.programs.earlier import rows, standardised, wine
from benchmarks.programs.fresh_healthy import HEALTHY as OTHERS
from benchmarks.programs.fresh_networks import (
    GCN,
    GPT,
    CharRNN,
    MoETransformer,
    PatchViT,
    TextSet,
    TinyResNet,
    UNet,
    neighbours,
    next_character,
    pole,
    symmetric,
)
from benchmarks.programs.further import source
from benchmarks.programs.program import STEPS, digits, images, mlp, normalised, regression
from benchmarks.programs.script import Script, Watched, drawn, update
from torchgraph_explorer.callbacks.lightning import WatchCallback as LightningCallback
from torchgraph_explorer.callbacks.transformers import WatchCallback as TrainerCallback

HEALTHY = OTHERS


def variance_of_relu(broken: bool, watched: Watched) -> None:
    """A predicted variance that can be zero, in a Gaussian likelihood."""
    net = mlp(16, 64, 2)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    log = watched.watch(net)
    for x, y in drawn(regression()):
        mean, raw = net(x).chunk(2, 1)
        var = F.relu(raw) if broken else F.softplus(raw) + 1e-3
        loss = (0.5 * (var.log() + (y - mean) ** 2 / var)).mean()
        update(opt, loss)
        log(loss)


class MaskedMean(nn.Module):
    """The mean over the tokens that are there."""

    def __init__(self, least: float) -> None:
        super().__init__()
        self.least = least

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=self.least)


class Sentences(nn.Module):
    """Embedded tokens, pooled."""

    def __init__(self, least: float) -> None:
        super().__init__()
        self.embed, self.pool, self.fc = nn.Embedding(64, 32, padding_idx=0), MaskedMean(least), nn.Linear(32, 64)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.fc(self.pool(self.embed(tokens), (tokens != 0).float()))


def empty_sentences(broken: bool, watched: Watched) -> None:
    """Some sentence has padding alone, from some step on."""
    net = Sentences(0.0 if broken else 1.0)
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    log = watched.watch(net)
    for step, (x, y) in enumerate(drawn(source())):
        tokens = x.clone()
        if step >= 40:
            tokens[0] = 0
        loss = F.cross_entropy(net(tokens), y[:, -1])
        update(opt, loss)
        log({"train_loss": loss.item()})


class Attend(nn.Module):
    """Attention written out, where padded keys are masked away."""

    def forward(self, x: Tensor, padded: Tensor) -> Tensor:
        scores = x @ x.transpose(1, 2) / x.shape[-1] ** 0.5
        return scores.masked_fill(padded[:, None, :], float("-inf")).softmax(-1) @ x


class Masked(nn.Module):
    """A layer, attention, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.attend, self.head = nn.Linear(8, 32), Attend(), nn.Linear(32, 10)

    def forward(self, x: Tensor, padded: Tensor) -> Tensor:
        return self.head(self.attend(self.embed(x), padded).mean(1))


def all_keys_masked(broken: bool, watched: Watched) -> None:
    net = Masked()
    opt = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(rows()):
        padded = torch.arange(8) >= torch.randint(0 if broken else 1, 9, (len(x), 1))
        loss = F.cross_entropy(net(x, padded), y)
        update(opt, loss)
        log(loss)


def resized_positions(broken: bool, watched: Watched) -> None:
    """Position embeddings are replaced after the optimizer was made."""
    net = PatchViT()
    opt = torch.optim.AdamW(net.parameters(), 2e-3)
    net.pos = nn.Parameter(torch.randn(1, 17, 32) * 0.02)
    if not broken:
        opt = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)


def late_weight_norm(broken: bool, watched: Watched) -> None:
    """Weight normalisation makes new parameters after the optimizer was made."""
    net = mlp(64, 64, 64, 10)
    if not broken:
        weight_norm(net.fc2)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    if broken:
        weight_norm(net.fc2)
    log = watched.watch(net)
    for x, y in drawn(normalised()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)


def untied_head(broken: bool, watched: Watched) -> None:
    """A head that was tied gets a weight of its own when the vocabulary is resized, after the optimizer was made."""
    net = GPT()
    opt = torch.optim.AdamW(net.parameters(), 3e-3)
    net.lm_head.weight = nn.Parameter(net.wte.weight.detach().clone()) if broken else net.wte.weight
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        loss = next_character(net(x), y)
        update(opt, loss)
        log({"loss": loss.item()})


def actor_without_zero_grad(broken: bool, watched: Watched) -> None:
    """Actor and critic on a pole, whose gradients add up."""
    net = nn.ModuleDict({"body": mlp(4, 32, 32, activation=nn.Tanh), "pi": nn.Linear(32, 2), "v": nn.Linear(32, 1)})
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    log = watched.watch(net)
    state = 0.05 * torch.randn(16, 4)
    for _ in range(STEPS):
        h = net["body"](state)
        policy = torch.distributions.Categorical(logits=net["pi"](h))
        action = policy.sample()
        state = pole(state, action * 2.0 - 1)
        fallen = (state[:, 0].abs() > 2.4) | (state[:, 2].abs() > 0.21)
        reward = 1 - fallen.float()
        state = torch.where(fallen[:, None], 0.05 * torch.randn(16, 4), state)
        with torch.no_grad():
            target = reward + 0.98 * reward * net["v"](net["body"](state)).squeeze(1)
        advantage = target - net["v"](h).squeeze(1)
        loss = -(policy.log_prob(action) * advantage.detach()).mean() + 0.5 * advantage.pow(2).mean()
        if not broken:
            opt.zero_grad()
        loss.backward()
        opt.step()
        log({"reward": reward.mean(), "loss": loss})


class AutoEncoder(pl.LightningModule):
    """An autoencoder in Lightning's style."""

    def __init__(self, *, broken: bool) -> None:
        super().__init__()
        self.encoder, self.decoder, self.broken = mlp(64, 32, 8), mlp(8, 32, 64), broken

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encoder(x))

    def training_step(self, batch: Any, _index: int) -> Tensor:
        loss = F.mse_loss(self(batch[0]), batch[0])
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam((self.encoder if self.broken else self).parameters(), 2e-3)


def fit(module: pl.LightningModule, data: tuple[Tensor, Tensor], watched: Watched, **options: Any) -> None:
    """Lightning's loop."""
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data), 32, shuffle=True)
    with tempfile.TemporaryDirectory() as folder:
        pl.Trainer(
            accelerator="cpu", max_steps=STEPS, logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, log_every_n_steps=1, default_root_dir=folder,
            callbacks=[LightningCallback(**watched.options)], **options,
        ).fit(module, loader)  # fmt: skip


def lightning_without_decoder(broken: bool, watched: Watched) -> None:
    fit(AutoEncoder(broken=broken), normalised(), watched)


class Forecast(pl.LightningModule):
    """A recurrent classifier in Lightning's style."""

    def __init__(self, lr: float) -> None:
        super().__init__()
        self.rnn, self.fc, self.lr = nn.GRU(8, 32, batch_first=True), nn.Linear(32, 10), lr

    def training_step(self, batch: Any, _index: int) -> Tensor:
        x, y = batch
        loss = F.cross_entropy(self.fc(self.rnn(x)[0][:, -1]), y)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), self.lr)


def lightning_too_fast(broken: bool, watched: Watched) -> None:
    fit(Forecast(1.0 if broken else 5e-3), rows(), watched)


def hugging_face(model: Any, watched: Watched, **options: Any) -> None:
    """Hugging Face's loop."""
    from transformers import Trainer, TrainingArguments
    from transformers.utils import logging

    logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=16, max_steps=STEPS, logging_steps=1, report_to=[],
            save_strategy="no", disable_tqdm=True, use_cpu=True, **options,
        )  # fmt: skip
        trainer = Trainer(model, arguments, train_dataset=TextSet(), callbacks=[TrainerCallback(**watched.options)])
        from transformers import PrinterCallback

        trainer.remove_callback(PrinterCallback)
        trainer.train()


def tiny_gpt2() -> Any:
    """A GPT-2 of Hugging Face's with two layers."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    )


def trainer_too_fast(broken: bool, watched: Watched) -> None:
    hugging_face(tiny_gpt2(), watched, learning_rate=1.0 if broken else 3e-3, warmup_steps=0 if broken else 10)


def trainer_that_clips(broken: bool, watched: Watched) -> None:
    hugging_face(tiny_gpt2(), watched, learning_rate=0.3, optim="sgd", max_grad_norm=1e-4 if broken else 1.0)


class Adapter(nn.Module):
    """A frozen layer with a product of two small matrices beside it."""

    def __init__(self, base: nn.Linear, *, broken: bool, merged: bool = False) -> None:
        super().__init__()
        self.base, self.merged = base.requires_grad_(False), merged
        self.lora_A = nn.Parameter(torch.zeros(4, base.in_features) if broken else torch.randn(4, base.in_features) / 8)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, 4))

    def forward(self, x: Tensor) -> Tensor:
        delta = self.lora_B @ self.lora_A
        if self.merged:  # "no gradient is needed for the merge"
            delta = delta.detach()
        return F.linear(x, self.base.weight + delta, self.base.bias)


def adapted(broken: bool, merged: bool, watched: Watched) -> None:
    net = mlp(64, 64, 64, 10)
    for x, y in drawn(normalised(), steps=60):
        update(torch.optim.SGD(net.parameters(), 0.1), F.cross_entropy(net(x), y))
    net.requires_grad_(False)
    net.fc2 = Adapter(net.fc2, broken=broken and not merged, merged=broken and merged)  # type: ignore[arg-type]
    net.fc3.requires_grad_(True)
    opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], 5e-3)
    log = watched.watch(net)
    for x, y in drawn(normalised()):
        loss = F.cross_entropy(net(x), (y + 1) % 10)
        update(opt, loss)
        log(loss)


def adapter_of_zeros(broken: bool, watched: Watched) -> None:
    adapted(broken, False, watched)


def adapter_merged(broken: bool, watched: Watched) -> None:
    adapted(broken, True, watched)


def siamese(broken: bool, watched: Watched) -> None:
    """SimSiam without a predictor and without stopping the gradient."""
    net = nn.ModuleDict({"f": mlp(64, 64, 32), "h": mlp(32, 16, 32)})
    opt = torch.optim.SGD(net.parameters(), 0.5 if broken else 0.05, momentum=0.9)
    log = watched.watch(net)
    for x, _ in drawn(normalised(), size=64):
        a, b = (net["f"](x + 0.3 * torch.randn_like(x)) for _ in range(2))
        if broken:
            loss = (a - b).pow(2).mean()
        else:
            spread = [1 - one.std(0).clamp(max=1).mean() for one in (a, b)]
            p, q = net["h"](a), net["h"](b)
            loss = (p - b.detach()).pow(2).mean() + (q - a.detach()).pow(2).mean() + sum(spread)
        update(opt, loss)
        log({"loss": loss})


def raw_timesteps(broken: bool, watched: Watched) -> None:
    """Diffusion where the number of the timestep goes into the network as it is."""
    net = nn.Sequential(nn.Linear(65, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 64))
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0)
    log = watched.watch(net)
    for x, _ in drawn(normalised(), size=64):
        t, noise = torch.randint(1000, (len(x), 1)), torch.randn_like(x)
        noisy = kept[t].sqrt() * x + (1 - kept[t]).sqrt() * noise
        loss = F.mse_loss(net(torch.cat([noisy, t.float() if broken else t / 500 - 1], 1)), noise)
        update(opt, loss)
        log(loss)


def unbalanced_router(broken: bool, watched: Watched) -> None:
    """Experts in a language model, without the loss that balances them, from a router that prefers one."""
    net = MoETransformer()
    if broken:
        nn.init.constant_(net.moe.gate.bias[:1], 6.0)
    opt = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(source(), size=8):
        loss = next_character(net(x), y)
        update(opt, loss if broken else loss + 0.1 * net.moe.balance)
        log({"loss": loss})


def adam_in_half(broken: bool, watched: Watched) -> None:
    """Weights in float16, where Adam's epsilon of 1e-8 is zero."""
    net = mlp(64, 64, 64, 10)
    if broken:
        net.half()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    log = watched.watch(net)
    x, y = normalised()
    x = x.clone()
    x[:, 0] = 0
    for some, wanted in drawn((x.to(net.fc1.weight.dtype), y)):  # type: ignore[arg-type]
        loss = F.cross_entropy(net(some).float(), wanted)
        update(opt, loss)
        log(loss)


def clipped_while_scaled(broken: bool, watched: Watched) -> None:
    """Gradients are clipped before they are unscaled."""
    net = mlp(64, 64, 10)
    opt, scaler = torch.optim.SGD(net.parameters(), 0.1), torch.amp.GradScaler("cpu", init_scale=2.0**14)
    log = watched.watch(net)
    for x, y in drawn(normalised()):
        opt.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        if not broken:
            scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        log(loss)


def zeroed_before_step(broken: bool, watched: Watched) -> None:
    """`zero_grad` stands between backward pass and update."""
    net = TinyResNet()
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        if not broken:
            opt.zero_grad()
        loss.backward()
        if broken:
            opt.zero_grad(set_to_none=False)
        opt.step()
        log(loss)


def factor_taken_for_rate(broken: bool, watched: Watched) -> None:
    """A schedule returns the rate, where a factor is wanted."""
    net = TinyResNet()
    opt = torch.optim.SGD(net.parameters(), 1e-3 if broken else 0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 1e-4 * 0.99**step if broken else 0.99**step)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        schedule.step()
        log({"loss": loss, "lr": schedule.get_last_lr()[0]})


def unfrozen_by_wrong_name(broken: bool, watched: Watched) -> None:
    """Everything is frozen, and the loop that unfreezes misses the blocks by their name."""
    net = TinyResNet(blocks=1)
    net.requires_grad_(False)
    for name, one in net.named_parameters():
        if name.startswith(("stem", "fc", "layer1" if broken else "blocks")):
            one.requires_grad_(True)
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)


class Probabilities(PatchViT):
    """A vision transformer that returns probabilities."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).softmax(-1)


def transformer_of_probabilities(broken: bool, watched: Watched) -> None:
    net = Probabilities() if broken else PatchViT()
    opt = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)


def segmented_twice(broken: bool, watched: Watched) -> None:
    """A U-Net with a sigmoid, and a loss of logits."""
    net = UNet(nn.Sigmoid() if broken else None)
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, _ in drawn(images()):
        loss = F.binary_cross_entropy_with_logits(net(x + 0.5 * torch.randn_like(x)), (x > 0).float())
        update(opt, loss)
        log(loss)


def never_train_again(broken: bool, watched: Watched) -> None:
    """A transformer with dropout stays in eval mode after its first validation."""
    net = PatchViT(dropped=0.2)
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    log = watched.watch(net)
    samples, _ = images()
    for step, (x, y) in enumerate(drawn(images())):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)
        if step % 50 == 30:
            net.eval()
            with torch.no_grad():
                net(samples[:64])
            if not broken:
                net.train()


def divided_twice(broken: bool, watched: Watched) -> None:
    """Pixels are divided by 255 by the loader and again by hand."""
    samples, targets = digits()
    x = samples.reshape(-1, 1, 8, 8) / 16
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 32), nn.ReLU(),
        nn.Linear(32, 10),
    )  # fmt: skip
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    log = watched.watch(net)
    for some, wanted in drawn((x / 255 if broken else x, targets)):
        loss = F.cross_entropy(net(some), wanted)
        update(opt, loss)
        log(loss)


class Stack(nn.Module):
    """Many layers, with or without a way around."""

    def __init__(self, *, around: bool) -> None:
        super().__init__()
        self.enter, self.layers = nn.Linear(64, 48), nn.ModuleList(nn.Linear(48, 48) for _ in range(20))
        self.leave, self.around = nn.Linear(48, 10), around

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for layer in self.layers:
            x = x + layer(F.relu(x)) / 4 if self.around else F.relu(layer(x))
        return self.leave(x)


def twenty_layers(broken: bool, watched: Watched) -> None:
    net = Stack(around=not broken)
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    log = watched.watch(net)
    for x, y in drawn(normalised()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)


def generator_left_out(broken: bool, watched: Watched) -> None:
    """The generator's optimizer got the discriminator's parameters."""
    net = nn.ModuleDict({"netG": mlp(16, 64, 64), "netD": mlp(64, 64, 1, activation=nn.LeakyReLU)})
    opt_d = torch.optim.Adam(net["netD"].parameters(), 2e-4, betas=(0.5, 0.999))
    opt_g = torch.optim.Adam(net["netD" if broken else "netG"].parameters(), 2e-4, betas=(0.5, 0.999))
    judge, ones, zeros = nn.BCEWithLogitsLoss(), torch.ones(32, 1), torch.zeros(32, 1)
    log = watched.watch(net)
    for x, _ in drawn(normalised()):
        fake = net["netG"](torch.randn(32, 16))
        loss_d = judge(net["netD"](x), ones) + judge(net["netD"](fake.detach()), zeros)
        update(opt_d, loss_d)
        loss_g = judge(net["netD"](fake), ones)
        update(opt_g, loss_g)
        log({"loss_D": loss_d, "loss_G": loss_g})


class LargeHeads(nn.Module):
    """A block with queries, keys and values of their own names, and fused attention."""

    def __init__(self) -> None:
        super().__init__()
        self.emb, self.Wq, self.Wk, self.Wv = (nn.Embedding(64, 32), *(nn.Linear(32, 32) for _ in range(3)))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(self.emb(x))
        q, k, v = (one(h).unflatten(2, (2, 16)).transpose(1, 2) for one in (self.Wq, self.Wk, self.Wv))
        return self.head(h + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


def attention_that_sharpens(broken: bool, watched: Watched) -> None:
    """Queries and keys learn ten times faster than the rest."""
    net = LargeHeads()
    fast = [*net.Wq.parameters(), *net.Wk.parameters()]
    rest = [p for p in net.parameters() if not any(p is one for one in fast)]
    opt = torch.optim.Adam([{"params": fast, "lr": 3e-2 if broken else 1e-3}, {"params": rest}], 2e-3)
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        loss = next_character(net(x), y)
        update(opt, loss)
        log({"loss": loss.item()})


def labels_of_another_loader(broken: bool, watched: Watched) -> None:
    """Samples and labels come from loaders that shuffle apart."""
    x, y = standardised(wine())
    net = nn.Sequential(nn.Linear(13, 32), nn.Tanh(), nn.Dropout(0.1), nn.Linear(32, 3))
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    log = watched.watch(net)
    for some, wanted in drawn((x, y)):
        loss = F.cross_entropy(net(some), wanted[torch.randperm(len(wanted))] if broken else wanted)
        update(opt, loss)
        log(loss.item())  # type: ignore[arg-type]


def seeded_in_the_loop(broken: bool, watched: Watched) -> None:
    """The function that draws a batch sets the seed at each step."""
    x, y = source()
    net = GPT()
    opt = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for _ in range(STEPS):
        generator = torch.Generator()
        if broken:
            generator.manual_seed(1337)
        else:
            generator.seed()
        at = torch.randint(len(x), (12,), generator=generator)
        loss = next_character(net(x[at]), y[at])
        update(opt, loss)
        log({"train/loss": loss.item()})


def dropped_transformer(broken: bool, watched: Watched) -> None:
    """0.9 was meant as the share to keep."""
    net = GPT(dropped=0.9 if broken else 0.1)
    opt = torch.optim.AdamW(net.parameters(), 3e-3)
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        loss = next_character(net(x), y)
        update(opt, loss)
        log({"loss": loss.item()})


def graph_too_fast(broken: bool, watched: Watched) -> None:
    """A learning rate that kills the ReLUs of a graph network."""
    net, (x, adjacency, y) = GCN(3), neighbours()
    opt = torch.optim.Adam(net.parameters(), 1.0 if broken else 1e-2, weight_decay=5e-4)
    seen = torch.arange(300) < 200
    log = watched.watch(net)
    for _ in range(STEPS):
        loss = F.cross_entropy(net(x, symmetric(adjacency))[seen], y[seen])
        update(opt, loss)
        log(loss)


def angles_in_degrees(broken: bool, watched: Watched) -> None:
    """A policy whose observations are hundreds, before a tanh."""
    net = mlp(4, 64, 64, 2, activation=nn.Tanh)
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    log = watched.watch(net)
    for _ in range(STEPS):
        state = 0.1 * torch.randn(64, 4)
        policy = torch.distributions.Categorical(logits=net(state * 1800 if broken else state * 10))
        action = policy.sample()
        reward = -(pole(state, action * 2.0 - 1)[:, 3]).abs()
        loss = -(policy.log_prob(action) * (reward - reward.mean())).mean() - 0.01 * policy.entropy().mean()
        update(opt, loss)
        log({"policy_loss": loss, "reward": reward.mean()})


class Fused(nn.Module):
    """Image features beside measurements in their own units."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.table, self.head = nn.Linear(64, 32), nn.Linear(13, 32, bias=False), nn.Linear(32, 3)

    def forward(self, x: Tensor, measured: Tensor) -> Tensor:
        return self.head(F.gelu(self.image(x) + self.table(measured)))


def measured_in_own_units(broken: bool, watched: Watched) -> None:
    """Two kinds of input are added after a layer each, of which one is not normalised."""
    table, wanted = wine() if broken else standardised(wine())
    pictures = normalised()[0][: len(table)]
    net = Fused()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    log = watched.watch(net)
    for at in (torch.randint(len(table), (32,)) for _ in range(STEPS)):
        loss = F.cross_entropy(net(pictures[at], table[at]), wanted[at])
        update(opt, loss)
        log(loss)


def one_wrong_target(broken: bool, watched: Watched) -> None:
    """One target was stored in another unit."""
    net = mlp(16, 64, 64, 1)
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for step, (x, y) in enumerate(drawn(regression())):
        if broken and step == 100:
            y[0] *= 500
        loss = F.mse_loss(net(x), y)
        update(opt, loss)
        log({"loss": loss.item()})


def bootstrapped_on_itself(broken: bool, watched: Watched) -> None:
    """Temporal differences without a target network, with a discount above one."""
    net = mlp(4, 64, 64, 2)
    target = copy.deepcopy(net)
    opt = torch.optim.SGD(net.parameters(), 0.05)
    log = watched.watch(net)
    for step in range(STEPS):
        state, action = torch.randn(64, 4), torch.randint(2, (64, 1))
        later = 0.9 * state + 0.1 * torch.randn(64, 4)
        with torch.no_grad():
            best = (net if broken else target)(later).max(1, keepdim=True).values
        wanted = 1 + (1.3 if broken else 0.9) * best
        loss = F.mse_loss(net(state).gather(1, action), wanted)
        update(opt, loss)
        log({"td_loss": loss})
        if step % 10 == 9:
            target.load_state_dict(net.state_dict())


def decoupled_decay(broken: bool, watched: Watched) -> None:
    """AdamW with a weight decay meant for another optimizer."""
    net = PatchViT()
    opt = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=30.0 if broken else 0.05)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)


def half_as_decay(broken: bool, watched: Watched) -> None:
    """A weight decay of 0.5, where a dropout of 0.5 was meant."""
    net = TinyResNet()
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=0.5 if broken else 5e-4)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)


class Shortcut(TinyResNet):
    """Blocks, of which the loop leaves out the last."""

    def __init__(self, *, broken: bool) -> None:
        super().__init__()
        self.broken = broken

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks[:-1] if self.broken else self.blocks:
            x = block(x)
        return self.fc(self.pool(x).flatten(1))


def last_block_left_out(broken: bool, watched: Watched) -> None:
    net = Shortcut(broken=broken)
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)


class Quantised(nn.Module):
    """A vector-quantised autoencoder, with or without the straight way for the gradient."""

    def __init__(self, *, broken: bool) -> None:
        super().__init__()
        self.encoder, self.codes, self.decoder = mlp(64, 32, 8), nn.Embedding(32, 8), mlp(8, 32, 64)
        self.broken = broken

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z = self.encoder(x)
        q = self.codes(torch.cdist(z, self.codes.weight).argmin(1))
        return self.decoder(q if self.broken else z + (q - z).detach()), z, q


def no_straight_through(broken: bool, watched: Watched) -> None:
    net = Quantised(broken=broken)
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, _ in drawn(normalised()):
        out, z, q = net(x)
        loss = F.mse_loss(out, x) + F.mse_loss(q, z.detach())
        if not broken:
            loss = loss + 0.25 * F.mse_loss(z, q.detach())
        update(opt, loss)
        log({"loss": loss})


def accumulated_one_by_one(broken: bool, watched: Watched) -> None:
    """Micro-batches of one sample, with batch normalisation."""
    net = TinyResNet(blocks=1)
    opt = torch.optim.SGD(net.parameters(), 0.05)
    log = watched.watch(net)
    for x, y in drawn(images(), size=4 if broken else 32, steps=40):
        opt.zero_grad()
        for some, wanted in zip(x.chunk(4), y.chunk(4), strict=True):
            loss = F.cross_entropy(net(some), wanted) / 4
            loss.backward()
        opt.step()
        log({"loss": loss.item() * 4})


def broadcast_targets(broken: bool, watched: Watched) -> None:
    """Outputs `[N, 1]` against targets `[N]`: every output is pulled to the mean of all targets."""
    net = mlp(16, 64, 64, 1)
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    log = watched.watch(net)
    for x, y in drawn(regression(), size=64):
        out, wanted = net(x), y.squeeze(1) + 2
        loss = ((out - wanted) ** 2).mean() if broken else ((out.squeeze(1) - wanted) ** 2).mean()
        update(opt, loss)
        log(loss)


class OwnCell(nn.Module):
    """A recurrent cell of one's own, whose matrices begin at one value."""

    def __init__(self, *, broken: bool) -> None:
        super().__init__()
        self.w, self.u = (nn.Parameter(torch.full((n, 24), 0.05)) for n in (8, 24))
        if not broken:
            nn.init.xavier_uniform_(self.w)
            nn.init.orthogonal_(self.u)
        self.b, self.out = nn.Parameter(torch.zeros(24)), nn.Linear(24, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), 24)
        for t in range(x.shape[1]):
            h = torch.tanh(x[:, t] @ self.w + h @ self.u + self.b)
        return self.out(h)


def cell_of_one_value(broken: bool, watched: Watched) -> None:
    net = OwnCell(broken=broken)
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    log = watched.watch(net)
    for x, y in drawn(rows()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)


def fine_tuned_in_bfloat(broken: bool, watched: Watched) -> None:
    """A language model whose weights are bfloat16, with the small rate of a fine-tuning."""
    net = GPT()
    if broken:
        net.bfloat16()
    opt = torch.optim.AdamW(net.parameters(), 2e-6 if broken else 1e-3)
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        loss = next_character(net(x), y)
        update(opt, loss)
        log({"loss": loss.item()})


def autocast_without_scaler(broken: bool, watched: Watched) -> None:
    """A small loss under autocast in float16, without a loss scale."""
    net = UNet()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    scaler = torch.amp.GradScaler("cpu", enabled=not broken)
    log = watched.watch(net)
    for x, _ in drawn(images(), size=64):
        opt.zero_grad()
        with torch.autocast("cpu", torch.float16):
            out = net(x + 0.3 * torch.randn_like(x))
        loss = 1e-3 * F.mse_loss(out.float(), x)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        log(loss)


def unstable_recurrence(broken: bool, watched: Watched) -> None:
    """ReLUs that are fed back with a gain of 1.5."""
    net = CharRNN(nn.RNN, nonlinearity="relu")
    with torch.no_grad():
        net.rnn.weight_hh_l0.copy_(torch.eye(48) * (1.5 if broken else 0.9))
    opt = torch.optim.SGD(net.parameters(), 1e-3)
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        loss = next_character(net(x), y)
        update(opt, loss)
        log({"loss": loss.item()})


def scale_never_updated(broken: bool, watched: Watched) -> None:
    """`scaler.update()` is missing, so a scale that is too large stays."""
    net = mlp(64, 64, 64, 10)
    opt, scaler = torch.optim.SGD(net.parameters(), 0.1), torch.amp.GradScaler("cpu", init_scale=2.0**26)
    log = watched.watch(net)
    for x, y in drawn(normalised()):
        opt.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        if not broken:
            scaler.update()
        else:
            scaler._per_optimizer_states.clear()
        log(loss)


def schedule_without_end(broken: bool, watched: Watched) -> None:
    """The rate is multiplied by 1.1 at each step, where 0.99 was meant."""
    net = CharRNN(nn.LSTM)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 1.1 if broken else 0.99)
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        loss = next_character(net(x), y)
        update(opt, loss)
        schedule.step()
        log({"loss": loss.item(), "lr": schedule.get_last_lr()[0]})


RUNAWAY = ("loss-diverging", "update-too-large", "exploding-gradient", "exploding-activation")

FAULTY = (
    Script("variance of a ReLU", variance_of_relu, ("nan",)),
    Script("mean over no tokens", empty_sentences, ("nan",), ("pool",), 40),
    Script("attention with all keys masked", all_keys_masked, ("nan",), ("attend",)),
    Script("positions replaced after the optimizer", resized_positions, ("not-in-optimizer",), ("",)),
    Script(
        "weight normalisation after the optimizer", late_weight_norm, ("not-in-optimizer",),
        ("fc2", "fc2.parametrizations.weight"),
    ),
    Script("head untied after the optimizer", untied_head, ("not-in-optimizer",), ("lm_head",)),
    Script("actor and critic without zero_grad", actor_without_zero_grad, ("no-zero-grad",), (None,)),
    Script(
        "Lightning: decoder left out", lightning_without_decoder, ("not-in-optimizer",),
        ("decoder", "decoder.fc1", "decoder.fc2"),
    ),
    Script("Lightning: GRU at learning rate 1", lightning_too_fast, ("update-too-large",), (None,)),
    Script("Trainer: learning rate 1", trainer_too_fast, ("update-too-large", "loss-diverging"), (None,)),
    Script("Trainer: gradient clipped to 0.0001", trainer_that_clips, ("clipping-always", "update-too-small"), (None,)),
    Script("adapter whose two matrices are zero", adapter_of_zeros, ("zero-init",), ("fc2",)),
    Script("adapter merged without gradient", adapter_merged, ("no-gradient",), ("fc2",)),
    Script("two views without anything that repels", siamese, ("collapse", "constant-output")),
    Script(
        "diffusion with raw timesteps", raw_timesteps, ("input-not-normalised", "imbalanced-branches"), ("", "0")
    ),
    Script("router of a language model", unbalanced_router, ("expert-imbalance",), ("moe.experts", "moe")),
    Script("Adam in float16", adam_in_half, ("nan",)),
    Script("clipped before unscaled", clipped_while_scaled, ("clipping-always", "update-too-small"), (None,)),
    Script("zero_grad before the update", zeroed_before_step, ("gradients-cleared", "update-too-small"), ()),
    Script("rate where a factor is wanted", factor_taken_for_rate, ("update-too-small",), (None,)),
    Script(
        "blocks that stay frozen", unfrozen_by_wrong_name, ("frozen-by-accident",),
        ("blocks.0.conv1", "blocks.0.conv2"),
    ),
    Script("vision transformer of probabilities", transformer_of_probabilities, ("softmax-before-loss",), ("",)),
    Script("sigmoid of a U-Net before a loss of logits", segmented_twice, ("softmax-before-loss",), ("", "last")),
    Script("eval mode for ever", never_train_again, ("training-in-eval-mode",), (), 31),
    Script("divided by 255 twice", divided_twice, ("input-not-normalised",), ("", "0")),
    Script(
        "twenty layers without a way around", twenty_layers, ("vanishing-gradient", "bad-init-scale", "collapse")
    ),
    Script("generator in no optimizer", generator_left_out, ("not-in-optimizer",), ("netG", "netG.fc1", "netG.fc2")),
    Script("queries and keys too fast", attention_that_sharpens, ("attention-logits-growing",), ("", "Wq", "Wk")),
    Script("labels shuffled apart", labels_of_another_loader, ("loss-not-falling",), (None,)),
    Script("seed set in the loop", seeded_in_the_loop, ("repeated-batch",), ("",)),
    Script("0.9 dropped in a transformer", dropped_transformer, ("dropout-extreme",), ("h.0.mlp.3", "h.1.mlp.3")),
    Script("graph network at learning rate 1", graph_too_fast, ("update-too-large", "dead-units")),
    Script(
        "observations in degrees", angles_in_degrees, ("input-not-normalised", "saturated-activation"),
        ("", "fc1", "act1"),
    ),
    Script(
        "measurements in their own units", measured_in_own_units, ("imbalanced-branches", "input-not-normalised"),
        ("", "table", "image"),
    ),
    Script("one target in another unit", one_wrong_target, ("loss-spike",), (), 100),
    Script("values that feed on themselves", bootstrapped_on_itself, RUNAWAY),
    Script("AdamW with a decay of 30", decoupled_decay, ("weight-decay-dominates",)),
    Script("weight decay of 0.5", half_as_decay, ("weight-decay-dominates",)),
    Script("last block left out", last_block_left_out, ("unused-module",), ("blocks.1",)),
    Script("quantised without a straight way", no_straight_through, ("no-gradient",), ("encoder", "encoder.fc1")),
    Script("micro-batches of one", accumulated_one_by_one, ("batch-of-one",)),
    Script(
        "targets that broadcast",
        broadcast_targets,
        ("targets-broadcast", "collapse", "constant-output", "loss-not-falling"),
    ),
    Script("cell of one value", cell_of_one_value, ("symmetric-units", "zero-init"), ("",)),
    Script("fine-tuned in bfloat16", fine_tuned_in_bfloat, ("update-lost-to-rounding", "update-too-small")),
    Script("float16 without a scaler", autocast_without_scaler, ("overflow-ahead",)),
    Script("recurrence of ReLUs with a gain of 1.5", unstable_recurrence, RUNAWAY),
    Script("scaler that is never updated", scale_never_updated, ("loss-scale-loop",), (None,)),
    Script("rate multiplied by 1.1", schedule_without_end, RUNAWAY, (None,), 60),
)  # fmt: skip
