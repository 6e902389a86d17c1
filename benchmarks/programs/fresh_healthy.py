"""Healthy trainings in other people's styles, which are only measured: nothing may be told of them."""

from __future__ import annotations

import copy
import math
import tempfile
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import StochasticWeightAveraging
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.programs.earlier import cancer, rows, standardised, wine
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
    sinusoids,
    symmetric,
)
from benchmarks.programs.further import source
from benchmarks.programs.measured_healthy import diabetes
from benchmarks.programs.program import STEPS, images, mlp, normalised, regression
from benchmarks.programs.script import Script, Watched, drawn, update
from torchgraph_explorer.callbacks.lightning import WatchCallback as LightningCallback
from torchgraph_explorer.callbacks.transformers import WatchCallback as TrainerCallback


def convolutional_gan(_broken: bool, watched: Watched) -> None:
    net = nn.ModuleDict({
        "G": nn.Sequential(
            nn.ConvTranspose2d(16, 32, 4, bias=False), nn.BatchNorm2d(32), nn.ReLU(True),
            nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh(),
        ),
        "D": nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(16, 32, 4, 2, 1, bias=False),
            nn.BatchNorm2d(32), nn.LeakyReLU(0.2, True), nn.Flatten(), nn.Linear(128, 1),
        ),
    })  # fmt: skip
    for one in net.modules():
        if isinstance(one, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(one.weight, 0.0, 0.02)
    opts = {name: torch.optim.Adam(net[name].parameters(), 2e-4, betas=(0.5, 0.999)) for name in net}
    x, y = images()
    log = watched.watch(net)
    for real, _ in drawn((x.clamp(-1, 1), y)):
        fake = net["G"](torch.randn(32, 16, 1, 1))
        errD = F.softplus(-net["D"](real)).mean() + F.softplus(net["D"](fake.detach())).mean()
        update(opts["D"], errD)
        errG = F.softplus(-net["D"](fake)).mean()
        update(opts["G"], errG)
        log({"errD": errD.item(), "errG": errG.item()})


def hinge_gan(_broken: bool, watched: Watched) -> None:
    norm = nn.utils.parametrizations.spectral_norm
    judge = nn.Sequential(norm(nn.Linear(64, 64)), nn.ReLU(), norm(nn.Linear(64, 1)))
    net = nn.ModuleDict({"gen": mlp(16, 64, 64), "disc": judge})
    g_opt, d_opt = (torch.optim.Adam(net[name].parameters(), 3e-4, betas=(0.0, 0.9)) for name in ("gen", "disc"))
    log = watched.watch(net)
    for real, _ in drawn(normalised()):
        for _ in range(2):
            fake = net["gen"](torch.randn(32, 16)).detach()
            d_loss = F.relu(1 - judge(real)).mean() + F.relu(1 + judge(fake)).mean()
            update(d_opt, d_loss)
        g_loss = -judge(net["gen"](torch.randn(32, 16))).mean()
        update(g_opt, g_loss)
        log({"d_loss": d_loss, "g_loss": g_loss})


class ConvVAE(nn.Module):
    """Means and log variances of an image's code."""

    def __init__(self) -> None:
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Flatten())
        self.mu, self.logvar = nn.Linear(256, 8), nn.Linear(256, 8)
        self.dec = nn.Sequential(
            nn.Linear(8, 256), nn.ReLU(), nn.Unflatten(1, (16, 4, 4)), nn.ConvTranspose2d(16, 1, 2, 2), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        return self.dec(mu + torch.randn_like(mu) * (0.5 * logvar).exp()), mu, logvar


def annealed_vae(_broken: bool, watched: Watched) -> None:
    net = ConvVAE()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    x, y = images()
    log = watched.watch(net)
    for step, (some, _) in enumerate(drawn(((x > 0).float(), y))):
        recon, mu, logvar = net(some)
        bce = F.binary_cross_entropy(recon, some, reduction="sum") / len(some)
        kld = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
        loss = bce + min(1.0, step / 100) * kld
        update(opt, loss)
        log({"loss": loss, "bce": bce, "kld": kld})


def truncated_gru(_broken: bool, watched: Watched) -> None:
    net = CharRNN(nn.GRU)
    opt = torch.optim.RMSprop(net.parameters(), 3e-3)
    tokens = source()[0].flatten()[: 16 * 2600].view(16, -1)
    log = watched.watch(net)
    for step in range(STEPS):
        piece = tokens[:, 16 * step : 16 * step + 17]
        loss = next_character(net(piece[:, :-1]), piece[:, 1:])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
        log({"loss": loss.item(), "ppl": math.exp(loss.item())})


class Packed(nn.Module):
    """An LSTM over sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.fc = nn.LSTM(8, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.fc(self.lstm(packed)[1][0][-1])


def packed_sequences(_broken: bool, watched: Watched) -> None:
    net = Packed()
    opt = torch.optim.Adam(net.parameters(), 5e-3)
    log = watched.watch(net, optimizer=opt)
    for x, y in drawn(rows()):
        loss = F.cross_entropy(net(x, torch.randint(5, 9, (len(x),))), y)
        update(opt, loss)
        log(loss)


def trained(model: Any, watched: Watched, **options: Any) -> None:
    """Hugging Face's loop."""
    from transformers import PrinterCallback, Trainer, TrainingArguments
    from transformers.utils import logging

    logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=8, max_steps=STEPS, logging_steps=5, report_to=[], use_cpu=True,
            save_strategy="no", disable_tqdm=True, **options,
        )  # fmt: skip
        trainer = Trainer(model, arguments, train_dataset=TextSet(), callbacks=[TrainerCallback(**watched.options)])
        trainer.remove_callback(PrinterCallback)
        trainer.train()


def trainer_of_gpt2(_broken: bool, watched: Watched) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    trained(
        GPT2LMHeadModel(config), watched, learning_rate=2e-3, warmup_steps=20, lr_scheduler_type="cosine",
        gradient_accumulation_steps=2,
    )  # fmt: skip


def trainer_of_llama(_broken: bool, watched: Watched) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=32, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    trained(LlamaForCausalLM(config), watched, learning_rate=1e-3, weight_decay=0.1, adam_beta2=0.95)


class Classifier(pl.LightningModule):
    """A residual network in Lightning's style."""

    def __init__(self) -> None:
        super().__init__()
        self.net = TinyResNet(blocks=1)

    def _loss(self, batch: Any) -> Tensor:
        return F.cross_entropy(self.net(batch[0]), batch[1])

    def training_step(self, batch: Any, _index: int) -> Tensor:
        loss = self._loss(batch)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Any, _index: int) -> None:
        self.log("val_loss", self._loss(batch))

    def configure_optimizers(self) -> Any:
        opt = torch.optim.SGD(self.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
        return [opt], [torch.optim.lr_scheduler.StepLR(opt, 1, 0.5)]


def lightning_classifier(averaged: bool, watched: Watched) -> None:
    every = torch.utils.data.TensorDataset(*images())
    train, valid = torch.utils.data.random_split(every, [1500, 297])
    more = [StochasticWeightAveraging(0.02, swa_epoch_start=2)] if averaged else []
    with tempfile.TemporaryDirectory() as folder:
        pl.Trainer(
            accelerator="cpu", max_epochs=4, logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, log_every_n_steps=2, default_root_dir=folder,
            callbacks=[LightningCallback(**watched.options), *more],
        ).fit(
            Classifier(),
            torch.utils.data.DataLoader(train, 40, shuffle=True),
            torch.utils.data.DataLoader(valid, 99),
        )  # fmt: skip


def lightning_plain(_broken: bool, watched: Watched) -> None:
    lightning_classifier(False, watched)


def lightning_averaged(_broken: bool, watched: Watched) -> None:
    lightning_classifier(True, watched)


def averaged_transformer(_broken: bool, watched: Watched) -> None:
    net = PatchViT()
    ema = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    opt = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=0.05)
    warm = torch.optim.lr_scheduler.LinearLR(opt, 0.01, total_iters=20)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS - 20)
    schedule = torch.optim.lr_scheduler.SequentialLR(opt, [warm, cosine], [20])
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y, label_smoothing=0.1)
        update(opt, loss)
        schedule.step()
        ema.update_parameters(net)
        log({"loss": loss.item(), "lr": schedule.get_last_lr()[0]})


def tied_language_model(_broken: bool, watched: Watched) -> None:
    net = GPT(dropped=0.1)
    decay = [p for p in net.parameters() if p.dim() > 1]
    rest = [p for p in net.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], 3e-3, betas=(0.9, 0.95)
    )
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        loss = next_character(net(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        log({"train/loss": loss.item(), "grad_norm": norm.item()})


def graph_network(_broken: bool, watched: Watched) -> None:
    net, (x, adjacency, y) = GCN(2), neighbours()
    opt = torch.optim.Adam(net.parameters(), 1e-2, weight_decay=5e-4)
    seen, edges = torch.arange(300) < 150, symmetric(adjacency)
    log = watched.watch(net)
    for _ in range(STEPS):
        loss = F.cross_entropy(net(F.dropout(x, 0.3), edges)[seen], y[seen])
        update(opt, loss)
        log(loss)


def proximal_policy(_broken: bool, watched: Watched) -> None:
    net = nn.ModuleDict({"actor": mlp(4, 32, 32, 2, activation=nn.Tanh), "critic": mlp(4, 32, 32, 1)})
    opt = torch.optim.Adam(net.parameters(), 3e-4, eps=1e-5)
    state = 0.05 * torch.randn(16, 4)
    log = watched.watch(net)
    for _ in range(10):
        kept: list[tuple[Tensor, ...]] = []
        for _ in range(16):
            with torch.no_grad():
                policy = torch.distributions.Categorical(logits=net["actor"](state))
                action = policy.sample()
                after = pole(state, action * 2.0 - 1)
                fallen = ((after[:, 0].abs() > 2.4) | (after[:, 2].abs() > 0.21)).float()
                value = net["critic"](state).squeeze(1)
                then = 1 + 0.98 * (1 - fallen) * net["critic"](after).squeeze(1)
            kept.append((state, action, policy.log_prob(action), then - value, then))
            state = torch.where(fallen[:, None] > 0, 0.05 * torch.randn(16, 4), after)
        states, actions, before, gain, returns = (torch.cat(one) for one in zip(*kept, strict=True))
        for at in torch.randperm(256).repeat(4).split(64):
            policy = torch.distributions.Categorical(logits=net["actor"](states[at]))
            ratio = (policy.log_prob(actions[at]) - before[at]).exp()
            wanted = (gain[at] - gain[at].mean()) / (gain[at].std() + 1e-8)
            policy_loss = -torch.min(ratio * wanted, ratio.clamp(0.8, 1.2) * wanted).mean()
            value_loss = F.mse_loss(net["critic"](states[at]).squeeze(1), returns[at])
            loss = policy_loss + 0.5 * value_loss - 0.01 * policy.entropy().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            opt.step()
            log({"policy_loss": policy_loss.item(), "value_loss": value_loss.item()})


class LowRankLinear(nn.Module):
    """A layer of Hugging Face's GPT-2 with an adapter beside it."""

    def __init__(self, base: nn.Module, inputs: int, outputs: int) -> None:
        super().__init__()
        self.base, self.drop = base, nn.Dropout(0.05)
        self.lora_A, self.lora_B = nn.Linear(inputs, 4, bias=False), nn.Linear(4, outputs, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.lora_B(self.lora_A(self.drop(x))) * 4


def adapted_gpt2(_broken: bool, watched: Watched) -> None:
    net = GPT()
    opt = torch.optim.AdamW(net.parameters(), 3e-3)
    x, y = source()
    for some, wanted in drawn((x[:700], y[:700]), size=16, steps=60):
        update(opt, next_character(net(some), wanted))
    net.requires_grad_(False)
    for block in net.h:
        attn: Any = block.attn
        attn.c_attn = LowRankLinear(attn.c_attn, 32, 96)
    opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], 2e-3)
    log = watched.watch(net)
    for some, wanted in drawn((x[700:], y[700:]), size=16):
        loss = next_character(net(some), wanted)
        update(opt, loss)
        log({"loss": loss.item()})


def distilled_resnet(_broken: bool, watched: Watched) -> None:
    teacher, net = TinyResNet(16, 2), TinyResNet(8, 1)
    opt = torch.optim.Adam(teacher.parameters(), 3e-3)
    for x, y in drawn(images(), steps=60):
        update(opt, F.cross_entropy(teacher(x), y))
    teacher.eval()
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(images()):
        with torch.no_grad():
            soft = F.softmax(teacher(x) / 4, 1)
        out = net(x)
        loss = 0.7 * 16 * F.kl_div(F.log_softmax(out / 4, 1), soft, reduction="batchmean") + 0.3 * F.cross_entropy(
            out, y
        )
        update(opt, loss)
        log({"loss": loss.item()})


def nt_xent(_broken: bool, watched: Watched) -> None:
    net = nn.Sequential(mlp(64, 128, 64), nn.ReLU(), nn.Linear(64, 32))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    log = watched.watch(net)
    for x, _ in drawn(normalised(), size=64):
        z = F.normalize(net(torch.cat([x + 0.3 * torch.randn_like(x), x * (torch.rand_like(x) > 0.2)])), dim=1)
        sim = (z @ z.T / 0.1).fill_diagonal_(-1e9)
        loss = F.cross_entropy(sim, (torch.arange(128) + 64) % 128)
        update(opt, loss)
        log(loss)


def barlow_twins(_broken: bool, watched: Watched) -> None:
    net = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 32))
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    log = watched.watch(net)
    for x, _ in drawn(normalised(), size=64):
        a, b = (net(x + 0.3 * torch.randn_like(x)) for _ in range(2))
        a, b = ((one - one.mean(0)) / (one.std(0) + 1e-5) for one in (a, b))
        cross = a.T @ b / 64
        loss = (cross.diagonal() - 1).pow(2).sum() + 5e-3 * cross.fill_diagonal_(0).pow(2).sum()
        update(opt, loss)
        log(loss)


class Denoiser(nn.Module):
    """A U-Net that is told the time."""

    def __init__(self) -> None:
        super().__init__()
        self.time, self.unet = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 1)), UNet(extra=1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        when = self.time(sinusoids(t.float(), 16))[:, :, None, None].expand(-1, -1, 8, 8)
        return self.unet(torch.cat([x, when], 1))


def denoising_diffusion(_broken: bool, watched: Watched) -> None:
    net = Denoiser()
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0)
    log = watched.watch(net)
    for x, _ in drawn(images()):
        t, eps = torch.randint(1000, (len(x),)), torch.randn_like(x)
        a = kept[t][:, None, None, None]
        loss = F.mse_loss(net(a.sqrt() * x + (1 - a).sqrt() * eps, t), eps)
        update(opt, loss)
        log(loss)


def two_experts_of_four(_broken: bool, watched: Watched) -> None:
    net = MoETransformer(top=2)
    opt = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(source(), size=8):
        ce = next_character(net(x), y)
        loss = ce + 0.05 * net.moe.balance
        update(opt, loss)
        log({"loss": loss, "ce": ce})


def quasi_newton(_broken: bool, watched: Watched) -> None:
    net = mlp(10, 16, 1, activation=nn.Tanh)
    opt = torch.optim.LBFGS(net.parameters(), lr=1, max_iter=4, history_size=10, line_search_fn="strong_wolfe")
    x, y = diabetes()
    log = watched.watch(net)

    def closure() -> Tensor:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        return loss

    for _ in range(40):
        log(opt.step(closure))


def sparse_embeddings(_broken: bool, watched: Watched) -> None:
    net = nn.ModuleDict({"emb": nn.Embedding(64, 16, sparse=True), "out": nn.Linear(16 * 6, 64)})
    opts = [torch.optim.SparseAdam(net["emb"].parameters(), 1e-2), torch.optim.Adam(net["out"].parameters(), 1e-2)]
    x, y = source()
    log = watched.watch(net)
    for some, wanted in drawn((x, y), size=64):
        loss = F.cross_entropy(net["out"](net["emb"](some[:, -6:]).flatten(1)), wanted[:, -1])
        for opt in opts:
            opt.zero_grad()
        loss.backward()
        for opt in opts:
            opt.step()
        log(loss)


def autocast_in_bfloat(_broken: bool, watched: Watched) -> None:
    net = TinyResNet()
    opt = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(images()):
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log({"loss": loss.item()})


def scaled_half(_broken: bool, watched: Watched) -> None:
    net = GPT()
    opt, scaler = torch.optim.AdamW(net.parameters(), 2e-3), torch.amp.GradScaler("cpu")
    log = watched.watch(net)
    for x, y in drawn(source(), size=8):
        opt.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = next_character(net(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        log({"loss": loss.item(), "scale": scaler.get_scale()})


def accumulated_and_clipped(_broken: bool, watched: Watched) -> None:
    net = PatchViT()
    opt = torch.optim.AdamW(net.parameters(), 2e-3)
    log = watched.watch(net)
    for step, (x, y) in enumerate(drawn(images(), size=16)):
        loss = F.cross_entropy(net(x), y) / 4
        loss.backward()
        if (step + 1) % 4 == 0:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
        log({"loss": 4 * loss.item()})


def one_cycle(_broken: bool, watched: Watched) -> None:
    net = TinyResNet()
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 0.4, STEPS + 1)
    log = watched.watch(net)
    for x, y in drawn(images(), size=64):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        schedule.step()
        log({"loss": loss.item(), "lr": schedule.get_last_lr()[0]})


def gradually_unfrozen(_broken: bool, watched: Watched) -> None:
    net = TinyResNet()
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    x, y = images()
    for some, wanted in drawn((x, y % 5), steps=60):
        update(opt, F.cross_entropy(net(some), wanted))
    net.fc = nn.Linear(48, 10)
    net.stem.requires_grad_(False)
    net.blocks.requires_grad_(False)
    opt = torch.optim.Adam(
        [
            {"params": net.stem.parameters(), "lr": 1e-4},
            {"params": net.blocks.parameters(), "lr": 3e-4},
            {"params": net.fc.parameters(), "lr": 2e-3},
        ]
    )
    log = watched.watch(net)
    for step, (some, wanted) in enumerate(drawn((x, y))):
        if step == 50:
            net.blocks.requires_grad_(True)
        if step == 100:
            net.stem.requires_grad_(True)
        loss = F.cross_entropy(net(some), wanted)
        update(opt, loss)
        log({"loss": loss.item()})


class TwoTowers(nn.Module):
    """Halves of an image and a temperature that is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.upper, self.lower = mlp(32, 64, 16), mlp(32, 64, 16)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, x: Tensor) -> Tensor:
        one, two = F.normalize(self.upper(x[:, :32]), dim=1), F.normalize(self.lower(x[:, 32:]), dim=1)
        return self.logit_scale.exp() * one @ two.T


def two_towers(_broken: bool, watched: Watched) -> None:
    net = TwoTowers()
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    log = watched.watch(net)
    for x, _ in drawn(normalised(), size=64):
        logits, at = net(x), torch.arange(64)
        loss = (F.cross_entropy(logits, at) + F.cross_entropy(logits.T, at)) / 2
        update(opt, loss)
        log(loss)


def segmentation(_broken: bool, watched: Watched) -> None:
    net = UNet()
    opt = torch.optim.RMSprop(net.parameters(), 1e-3, momentum=0.9, weight_decay=1e-8)
    log = watched.watch(net)
    for x, _ in drawn(images(), size=16):
        mask, out = (x > 0).float(), net(x + torch.randn_like(x))
        p = out.sigmoid()
        dice = 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)
        loss = F.binary_cross_entropy_with_logits(out, mask) + dice
        update(opt, loss)
        log({"loss": loss.item()})


def connectionist(_broken: bool, watched: Watched) -> None:
    net = nn.ModuleDict({"rnn": nn.LSTM(8, 24, batch_first=True, bidirectional=True), "fc": nn.Linear(48, 11)})
    opt = torch.optim.Adam(net.parameters(), 5e-3)
    ctc = nn.CTCLoss(zero_infinity=True)
    x, y = rows()
    log = watched.watch(net)
    for _ in range(STEPS):
        at = torch.randint(len(x), (32, 2))
        out = net["fc"](net["rnn"](x[at].flatten(1, 2))[0]).log_softmax(-1)
        loss = ctc(out.transpose(0, 1), y[at] + 1, torch.full((32,), 16), torch.full((32,), 2))
        update(opt, loss)
        log(loss)


def fourier_features(_broken: bool, watched: Watched) -> None:
    grid = torch.stack(torch.meshgrid(*[torch.linspace(-1, 1, 24)] * 2, indexing="ij"), -1).view(-1, 2)
    colours = ((grid * 5).sin().prod(1, keepdim=True) + grid[:, :1]).sigmoid()
    spread = 3 * torch.randn(2, 32)
    net = nn.Sequential(mlp(64, 64, 64, 1), nn.Sigmoid())
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn((grid, colours), size=128):
        turns = 2 * math.pi * x @ spread
        loss = F.mse_loss(net(torch.cat([turns.sin(), turns.cos()], 1)), y)
        update(opt, loss)
        log({"loss": loss.item(), "psnr": -10 * math.log10(loss.item())})


class Uncertain(nn.Module):
    """Two tasks, each with an uncertainty that is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.kind, self.ink = nn.Linear(64, 64), nn.Linear(64, 10), nn.Linear(64, 1)
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = F.relu(self.shared(x))
        return self.kind(h), self.ink(h)


def weighted_by_uncertainty(_broken: bool, watched: Watched) -> None:
    net = Uncertain()
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    log = watched.watch(net)
    for x, y in drawn(normalised()):
        kind, ink = net(x)
        losses = torch.stack([F.cross_entropy(kind, y), F.mse_loss(ink.squeeze(1), x.mean(1))])
        loss = ((-net.log_vars).exp() * losses + net.log_vars).sum()
        update(opt, loss)
        log({"loss": loss.item()})


class Lion(torch.optim.Optimizer):
    """Steps by the sign of an average of gradients."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    m = self.state[p].setdefault("m", torch.zeros_like(p))
                    p.sub_(group["lr"] * (0.9 * m + 0.1 * p.grad).sign())
                    m.mul_(0.99).add_(p.grad, alpha=0.01)


def own_optimizer(_broken: bool, watched: Watched) -> None:
    net = PatchViT()
    opt = Lion(net.parameters(), 3e-4)
    log = watched.watch(net)
    for x, y in drawn(images()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)


def memorised(_broken: bool, watched: Watched) -> None:
    x, y = normalised()
    net = mlp(64, 128, 128, 10)
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for some, wanted in drawn((x[:100], y[:100])):
        loss = F.cross_entropy(net(some), wanted)
        update(opt, loss)
        log(loss)


class DeepSets(nn.Module):
    """A function of a set of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.phi, self.rho = mlp(9, 32, 32), mlp(32, 32, 10)

    def forward(self, x: Tensor) -> Tensor:
        place = torch.linspace(-1, 1, 8)[:, None].expand(len(x), 8, 1)
        return self.rho(self.phi(torch.cat([x, place], 2)).sum(1))


def sets(_broken: bool, watched: Watched) -> None:
    net = DeepSets()
    opt = torch.optim.NAdam(net.parameters(), 2e-3)
    log = watched.watch(net)
    for x, y in drawn(rows()):
        loss = F.cross_entropy(net(x), y)
        update(opt, loss)
        log(loss)


class WaveBlock(nn.Module):
    """Gated, dilated convolutions with a way around."""

    def __init__(self, dilation: int) -> None:
        super().__init__()
        self.pad = dilation
        self.filter, self.gate = (nn.Conv1d(24, 24, 2, dilation=dilation) for _ in range(2))
        self.mix = nn.Conv1d(24, 24, 1)

    def forward(self, x: Tensor) -> Tensor:
        padded = F.pad(x, (self.pad, 0))
        return x + self.mix(torch.tanh(self.filter(padded)) * torch.sigmoid(self.gate(padded)))


class WaveNet(nn.Module):
    """Such blocks over characters."""

    def __init__(self) -> None:
        super().__init__()
        self.emb, self.blocks = nn.Embedding(64, 24), nn.Sequential(*[WaveBlock(2**k) for k in range(4)])
        self.out = nn.Conv1d(24, 64, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.blocks(self.emb(x).transpose(1, 2))).transpose(1, 2)


def gated_convolutions(_broken: bool, watched: Watched) -> None:
    net = WaveNet()
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    log = watched.watch(net)
    for x, y in drawn(source(), size=16):
        loss = next_character(net(x), y)
        update(opt, loss)
        log({"loss": loss.item()})


class Seq2Seq(nn.Module):
    """Reverses text, with attention over what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.src, self.tgt = nn.Embedding(64, 32), nn.Embedding(65, 32)
        self.encoder, self.decoder = nn.GRU(32, 32, batch_first=True), nn.GRU(32, 32, batch_first=True)
        self.attn, self.out = nn.MultiheadAttention(32, 1, batch_first=True), nn.Linear(64, 64)

    def forward(self, x: Tensor, shifted: Tensor) -> Tensor:
        memory, state = self.encoder(self.src(x))
        h, _ = self.decoder(self.tgt(shifted), state)
        seen, _ = self.attn(h, memory, memory)
        return self.out(torch.cat([h, seen], -1))


def sequence_to_sequence(_broken: bool, watched: Watched) -> None:
    net = Seq2Seq()
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    x, _ = source()
    log = watched.watch(net)
    for some, _ in drawn((x[:, :8].contiguous(), x)):
        wanted = some.flip(1)
        shifted = torch.cat([torch.full((len(some), 1), 64), wanted[:, :-1]], 1)
        loss = next_character(net(some, shifted), wanted)
        update(opt, loss)
        log({"train_loss": loss.item()})


class MAE(nn.Module):
    """Rebuilds the patches that it does not see."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.mask = nn.Linear(4, 32), nn.Parameter(torch.zeros(1, 1, 32))
        self.pos = nn.Parameter(torch.randn(1, 16, 32) * 0.02)
        layers = (nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, norm_first=True) for _ in range(2))
        self.encoder, self.decoder = layers
        self.head = nn.Linear(32, 4)

    def forward(self, patches: Tensor, order: Tensor) -> Tensor:
        x = self.patch(patches) + self.pos
        seen = order[:, :6, None].expand(-1, -1, 32)
        h = self.encoder(x.gather(1, seen))
        full = (self.mask + self.pos).repeat(len(x), 1, 1).scatter(1, seen, h)
        return self.head(self.decoder(full))


def masked_autoencoder(_broken: bool, watched: Watched) -> None:
    net = MAE()
    opt = torch.optim.AdamW(net.parameters(), 2e-3, betas=(0.9, 0.95), weight_decay=0.05)
    log = watched.watch(net)
    for x, _ in drawn(images()):
        patches = F.unfold(x, 2, stride=2).transpose(1, 2)
        order = torch.rand(len(x), 16).argsort(1)
        hidden = order[:, 6:, None].expand(-1, -1, 4)
        loss = F.mse_loss(net(patches, order).gather(1, hidden), patches.gather(1, hidden))
        update(opt, loss)
        log(loss)


def runge_kutta(_broken: bool, watched: Watched) -> None:
    net = nn.ModuleDict({"f": mlp(2, 32, 2, activation=nn.Tanh)})
    f, opt = net["f"], torch.optim.Adam(net.parameters(), 5e-3)
    log = watched.watch(net)
    for _ in range(100):
        start = 2 * torch.rand(32, 2) - 1
        here, h, loss = start, 0.2, torch.zeros(())
        for step in range(1, 6):
            k1 = f(here)
            k2 = f(here + h / 2 * k1)
            k3 = f(here + h / 2 * k2)
            here = here + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(here + h * k3))
            angle = torch.tensor(h * step)
            turn = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
            loss = loss + F.mse_loss(here, start @ turn.T)
        update(opt, loss)
        log(loss)


class Tabular(nn.Module):
    """Categories and numbers of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.embeds = nn.ModuleList(nn.Embedding(6, 4) for _ in range(5))
        self.bn, self.mlp = (
            nn.BatchNorm1d(25),
            nn.Sequential(nn.Linear(45, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Dropout(0.3), nn.Linear(64, 2)),
        )

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        parts = [embed(categories[:, at]) for at, embed in enumerate(self.embeds)]
        return self.mlp(torch.cat([*parts, self.bn(numbers)], 1))


def table(_broken: bool, watched: Watched) -> None:
    x, y = standardised(cancer())
    net = Tabular()
    opt = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=1e-2)
    log = watched.watch(net)
    for some, wanted in drawn((x, y)):
        loss = F.cross_entropy(net((some[:, :5] + 3).clamp(0, 5).long(), some[:, 5:]), wanted)
        update(opt, loss)
        log(loss)


class Radial(nn.Module):
    """Distances to centres."""

    def __init__(self) -> None:
        super().__init__()
        self.centres, self.width = nn.Parameter(torch.randn(48, 16)), nn.Parameter(torch.zeros(48))
        self.out = nn.Linear(48, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out((-(torch.cdist(x, self.centres) ** 2) / 32 * self.width.exp()).exp())


def radial(_broken: bool, watched: Watched) -> None:
    net = Radial()
    opt = torch.optim.Adam(net.parameters(), 1e-2)
    log = watched.watch(net)
    for x, y in drawn(regression()):
        loss = F.mse_loss(net(x), y)
        update(opt, loss)
        log(loss)


def adversarial_examples(_broken: bool, watched: Watched) -> None:
    net = mlp(64, 96, 96, 10)
    opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    log = watched.watch(net)
    for clean, y in drawn(normalised()):
        x = clean.clone().requires_grad_()
        (grad,) = torch.autograd.grad(F.cross_entropy(net(x), y), x)
        loss = F.cross_entropy(net((x + 0.1 * grad.sign()).detach()), y)
        update(opt, loss)
        log(loss)


def curriculum(_broken: bool, watched: Watched) -> None:
    net = mlp(64, 64, 64, 10)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    log = watched.watch(net)
    for step, (x, y) in enumerate(drawn(normalised())):
        loss = F.cross_entropy(net(x + step / 75 * torch.randn_like(x)), y)
        update(opt, loss)
        log({"loss": loss.item(), "noise": step / 75})


def soft_actor_critic(_broken: bool, watched: Watched) -> None:
    net = nn.ModuleDict({"policy": mlp(4, 32, 2), "q1": mlp(5, 32, 1), "q2": mlp(5, 32, 1)})
    target = copy.deepcopy(net).requires_grad_(False)
    pi_opt = torch.optim.Adam(net["policy"].parameters(), 1e-3)
    q_opt = torch.optim.Adam([*net["q1"].parameters(), *net["q2"].parameters()], 1e-3)

    def act(state: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = net["policy"](state).chunk(2, 1)
        policy = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = policy.rsample()
        return raw.tanh(), policy.log_prob(raw) - (1 - raw.tanh() ** 2 + 1e-6).log()

    log = watched.watch(net)
    for _ in range(STEPS):
        state, action = 0.2 * torch.randn(64, 4), 2 * torch.rand(64, 1) - 1
        after = pole(state, action.squeeze(1))
        reward = -after[:, 2:3].abs()
        with torch.no_grad():
            then, logp = act(after)
            least = torch.min(*(target[q](torch.cat([after, then], 1)) for q in ("q1", "q2")))
            wanted = reward + 0.95 * (least - 0.1 * logp)
        q_loss = sum(F.mse_loss(net[q](torch.cat([state, action], 1)), wanted) for q in ("q1", "q2"))
        update(q_opt, q_loss)  # type: ignore[arg-type]
        now, logp = act(state)
        least = torch.min(*(net[q](torch.cat([state, now], 1)) for q in ("q1", "q2")))
        pi_loss = (0.1 * logp - least).mean()
        update(pi_opt, pi_loss)
        with torch.no_grad():
            for old, new in zip(target.parameters(), net.parameters(), strict=True):
                old.lerp_(new, 0.05)
        log({"q_loss": q_loss, "pi_loss": pi_loss})


def accelerated(_broken: bool, watched: Watched) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = TinyResNet(blocks=1)
    opt = torch.optim.AdamW(net.parameters(), 3e-3)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*images()), 32, shuffle=True)
    net, opt, loader = accelerator.prepare(net, opt, loader)
    log = watched.watch(net)
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(net):
                loss = F.cross_entropy(net(x), y)
                accelerator.backward(loss)
                opt.step()
                opt.zero_grad()
            log({"loss": loss.item()})


def wide_and_small(_broken: bool, watched: Watched) -> None:
    net = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 3))
    opt = torch.optim.SGD(net.parameters(), 0.02)
    log = watched.watch(net)
    for x, y in drawn(standardised(wine())):
        loss = F.multi_margin_loss(net(x), y)
        update(opt, loss)
        log(loss)


HEALTHY = (
    Script("convolutional GAN", convolutional_gan),
    Script("hinge GAN with spectral normalisation", hinge_gan),
    Script("variational autoencoder with annealing", annealed_vae),
    Script("GRU over pieces of one text", truncated_gru),
    Script("packed sequences", packed_sequences),
    Script("Trainer: GPT-2 with accumulation", trainer_of_gpt2),
    Script("Trainer: Llama", trainer_of_llama),
    Script("Lightning: classifier with validation", lightning_plain),
    Script("Lightning: stochastic weight averaging", lightning_averaged),
    Script("vision transformer with a moving average", averaged_transformer),
    Script("tied language model", tied_language_model),
    Script("graph convolutions", graph_network),
    Script("proximal policy", proximal_policy),
    Script("adapters in attention", adapted_gpt2),
    Script("residual network distilled", distilled_resnet),
    Script("contrastive with temperature 0.1", nt_xent),
    Script("Barlow twins", barlow_twins),
    Script("denoising diffusion", denoising_diffusion),
    Script("two experts of four", two_experts_of_four),
    Script("LBFGS on diabetes", quasi_newton),
    Script("sparse embeddings", sparse_embeddings),
    Script("residual network under autocast", autocast_in_bfloat),
    Script("float16 with a scaler", scaled_half),
    Script("accumulated and clipped", accumulated_and_clipped),
    Script("one cycle", one_cycle),
    Script("gradually unfrozen", gradually_unfrozen),
    Script("two towers", two_towers),
    Script("segmentation", segmentation),
    Script("connectionist temporal classification", connectionist),
    Script("Fourier features", fourier_features),
    Script("tasks weighted by uncertainty", weighted_by_uncertainty),
    Script("optimizer of one's own", own_optimizer),
    Script("one hundred samples learned by heart", memorised),
    Script("sets", sets),
    Script("gated convolutions", gated_convolutions),
    Script("sequence to sequence", sequence_to_sequence),
    Script("masked autoencoder", masked_autoencoder),
    Script("Runge and Kutta", runge_kutta),
    Script("table with categories", table),
    Script("radial basis functions", radial),
    Script("adversarial examples", adversarial_examples),
    Script("curriculum", curriculum),
    Script("soft actor and critic", soft_actor_critic),
    Script("accelerate with accumulation", accelerated),
    Script("wide network on wine", wide_and_small),
)
