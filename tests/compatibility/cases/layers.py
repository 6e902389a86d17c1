"""torch's own layers, and small models in the manner of well-known families."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.compatibility.case import Table, Training, module, sgd, trained

case = Table("layers")


def _x(*shape: int) -> Any:
    return lambda: torch.randn(*shape)


@case("MultiheadAttention with weights, masks and another key")
def _() -> Any:
    def attend(self: Any, x: Tensor, other: Tensor) -> Any:
        mask = torch.ones(3, 5, dtype=torch.bool).tril(2).logical_not()
        y, weights = self.att(x, other, other, attn_mask=mask, need_weights=True)
        return y, weights

    model = module(attend, att=nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True, add_bias_kv=True))
    return model, lambda: (torch.randn(2, 3, 8), torch.randn(2, 5, 8))


@case("a Transformer, encoder and decoder")
def _() -> Any:
    model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    return model, lambda: (torch.randn(2, 4, 8), torch.randn(2, 3, 8))


@case("the fast path of a TransformerEncoder, in evaluation between steps")
def _() -> Any:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    training = trained(model, _x(2, 4, 8))
    plain = training.step

    def step(number: int) -> object:
        model.eval()
        with torch.inference_mode():
            fast = model(torch.randn(2, 4, 8), src_key_padding_mask=torch.tensor([[False] * 4, [False] * 3 + [True]]))
        model.train()
        return fast, plain(number)

    training.step = step
    return training


@case("scaled dot product attention and rotary positions")
def _() -> Any:
    def attend(self: Any, x: Tensor) -> Tensor:
        q, k, v = (part.view(2, 5, 2, 4).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        turn = torch.arange(5.0)[:, None]
        q = torch.cat([-q[..., 2:], q[..., :2]], -1) * turn.sin() + q * turn.cos()
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(2, 5, 8))

    return module(attend, qkv=nn.Linear(8, 24), out=nn.Linear(8, 8)), _x(2, 5, 8)


@case("a language model with attention and dropout by functions")
def _() -> Any:
    def read(self: Any, tokens: Tensor) -> Tensor:
        q, k, v = self.qkv(self.embed(tokens)).chunk(3, -1)
        mask = torch.ones(6, 6, dtype=torch.bool).tril()
        weights = (q @ k.mT).masked_fill(~mask, float("-inf")).softmax(-1)
        fused = functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], attn_mask=mask)
        over_queries = functional.dropout((q @ k.mT).softmax(1), 0.1)
        y = functional.dropout(weights, 0.1) @ v + over_queries @ v + fused[:, 0]
        return self.out(y.reshape(8, 2, 6, 4).reshape(8, 6, 8))

    model = module(read, embed=nn.Embedding(9, 8, padding_idx=0), qkv=nn.Linear(8, 24), out=nn.Linear(8, 9))
    targets = torch.arange(48) % 9
    return trained(
        model, lambda: torch.randint(9, (8, 6)), loss=lambda out: functional.cross_entropy(out.flatten(0, 1), targets)
    )


@case("one number for each sample")
def _() -> Any:
    return trained(nn.Linear(3, 1), _x(10, 3), loss=lambda out: (out[:, 0] - 1).abs().mean())


RECURRENT: dict[str, Any] = {
    "LSTM, two layers, both ways, with dropout": lambda: nn.LSTM(6, 4, 2, bidirectional=True, dropout=0.1),
    "LSTM with a projection": lambda: nn.LSTM(6, 4, proj_size=2),
    "GRU": lambda: nn.GRU(6, 4),
    "RNN": lambda: nn.RNN(6, 4, nonlinearity="relu"),
}

for _name, _make in RECURRENT.items():
    case(_name)(lambda make=_make: (make(), _x(5, 2, 6)))  # type: ignore[misc]


@case("recurrent cells in a loop")
def _() -> Any:
    def loop(self: Any, x: Tensor) -> Any:
        hidden = cell = other = x.new_zeros(2, 4)
        for moment in x:
            hidden, cell = self.lstm(moment, (hidden, cell))
            other = self.gru(hidden, other)
        return hidden, cell, self.rnn(other)

    return module(loop, lstm=nn.LSTMCell(6, 4), gru=nn.GRUCell(4, 4), rnn=nn.RNNCell(4, 4)), _x(3, 2, 6)


@case("normalisations of every kind")
def _() -> Any:
    norms = nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.LocalResponseNorm(2)
    return nn.Sequential(nn.Conv2d(3, 4, 3), *norms, nn.LayerNorm([4, 4, 4]), nn.RMSNorm(4)), _x(2, 3, 6, 6)


@case("convolutions, transposed and pooled, with indices")
def _() -> Any:
    def coder(self: Any, x: Tensor) -> Tensor:
        y, where = self.pool(self.down(x))
        return self.up(self.unpool(y, where))

    parts = {"down": nn.Conv2d(3, 4, 3, padding=1), "pool": nn.MaxPool2d(2, return_indices=True)}
    return module(coder, **parts, unpool=nn.MaxUnpool2d(2), up=nn.ConvTranspose2d(4, 3, 2, 2)), _x(2, 3, 8, 8)


@case("embedding bags and an adaptive softmax")
def _() -> Any:
    def words(self: Any, tokens: Tensor, targets: Tensor) -> Any:
        return self.softmax(self.bag(tokens), targets)

    model = module(words, bag=nn.EmbeddingBag(20, 8), softmax=nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10]))
    return model, lambda: (torch.randint(0, 20, (6, 3)), torch.randint(0, 20, (6,)))


@case("a residual network in the manner of ResNet")
def _() -> Any:
    class Bottleneck(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
            self.relu = nn.ReLU(inplace=True)
            self.downsample = nn.Sequential(nn.Conv2d(width, width, 1), nn.BatchNorm2d(width))

        def forward(self, x: Tensor) -> Tensor:
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += self.downsample(x)
            return self.relu(out)

    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), Bottleneck(4), Bottleneck(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )
    return model, _x(2, 3, 8, 8)


@case("densely connected, with squeeze and excitation")
def _() -> Any:
    def dense(self: Any, x: Tensor) -> Tensor:
        features = [self.stem(x)]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        y = torch.cat(features, 1)
        return y.mul(self.gate(y.mean((2, 3), keepdim=True)))

    layers = nn.ModuleList(
        nn.Sequential(nn.BatchNorm2d(4 * i), nn.ReLU(inplace=True), nn.Conv2d(4 * i, 4, 3, padding=1)) for i in (1, 2)
    )
    gate = nn.Sequential(nn.Conv2d(12, 12, 1), nn.SiLU(inplace=True), nn.Hardsigmoid(inplace=True))
    return module(dense, stem=nn.Conv2d(3, 4, 3), layers=layers, gate=gate), _x(2, 3, 6, 6)


@case("shifted windows in the manner of Swin")
def _() -> Any:
    def windows(self: Any, x: Tensor) -> Tensor:
        x = torch.roll(self.norm(x), (-1, -1), (1, 2))
        parts = x.view(2, 2, 2, 2, 2, 8).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, 8)
        y, _ = self.att(parts, parts, parts, need_weights=False)
        return self.mlp(y)

    mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    model = module(windows, norm=nn.LayerNorm(8), att=nn.MultiheadAttention(8, 2, batch_first=True), mlp=mlp)
    return model, _x(2, 4, 4, 8)


@case("a variational autoencoder")
def _() -> Any:
    def sample(self: Any, x: Tensor) -> Any:
        mean, spread = self.encode(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * spread.exp()
        return self.decode(z), torch.distributions.Normal(mean, spread.exp()).rsample()

    return module(sample, encode=nn.Linear(6, 8), decode=nn.Linear(4, 6)), _x(4, 6)


@case("vector quantisation with a straight-through gradient")
def _() -> Any:
    def quantise(self: Any, x: Tensor) -> Any:
        z = self.encode(x)
        nearest = torch.cdist(z, self.codes.weight).argmin(-1)
        q = self.codes(nearest)
        return self.decode(z + (q - z).detach()), (q - z.detach()).square().mean(), nearest

    model = module(quantise, encode=nn.Linear(6, 4), codes=nn.Embedding(5, 4), decode=nn.Linear(4, 6))
    return model, _x(3, 6)


@case("a hypernetwork that makes another's weights")
def _() -> Any:
    def hyper(self: Any, x: Tensor) -> Tensor:
        weight = self.maker(torch.ones(1, 3)).view(4, 6)
        return self.head(functional.linear(x, weight))

    return module(hyper, maker=nn.Linear(3, 24), head=nn.Linear(4, 2)), _x(3, 6)


@case("a graph convolution with scatter")
def _() -> Any:
    def convolve(self: Any, x: Tensor, edges: Tensor) -> Tensor:
        messages = self.message(torch.cat([x[edges[0]], x[edges[1]]], -1)).relu()
        total = torch.zeros(5, 6).index_add(0, edges[1], messages)
        return self.update(total) + x

    model = module(convolve, message=nn.Linear(12, 6), update=nn.Linear(6, 6))
    return model, lambda: (torch.randn(5, 6), torch.randint(0, 5, (2, 9)))


@case("a selective state space in the manner of Mamba")
def _() -> Any:
    def scan(self: Any, x: Tensor) -> Tensor:
        u, gate = self.inward(x).chunk(2, -1)
        u = functional.silu(self.conv(u.transpose(1, 2))[..., :5].transpose(1, 2))
        step = functional.softplus(self.step(u))
        state, outs = torch.zeros(2, 6), []
        for t in range(5):
            state = state * torch.exp(-step[:, t]) + step[:, t] * u[:, t]
            outs.append(state)
        return self.outward(torch.stack(outs, 1) * functional.silu(gate))

    parts = {"inward": nn.Linear(6, 12), "conv": nn.Conv1d(6, 6, 3, padding=2, groups=6), "step": nn.Linear(6, 6)}
    return module(scan, **parts, outward=nn.Linear(6, 6)), _x(2, 5, 6)


@case("a contrastive pair of towers with a learned temperature")
def _() -> Any:
    def towers(self: Any, image: Tensor, tokens: Tensor) -> Any:
        a = functional.normalize(self.image(image), dim=-1)
        b = functional.normalize(self.text(tokens).mean(1), dim=-1)
        logits = a @ b.t() * self.scale.exp()
        return logits, logits.t()

    model = module(towers, image=nn.Sequential(nn.Flatten(), nn.Linear(12, 4)), text=nn.Embedding(9, 4))
    model.register_parameter("scale", nn.Parameter(torch.tensor(0.5)))
    return model, lambda: (torch.randn(3, 3, 2, 2), torch.randint(0, 9, (3, 5)))


@case("a policy that samples actions")
def _() -> Any:
    # Validating is torch's default, which some libraries of other cases switch off for the whole process.
    actor = module(
        lambda self, x: (torch.distributions.Categorical(logits=self.policy(x), validate_args=True), self.value(x)),
        policy=nn.Linear(6, 3),
        value=nn.Linear(6, 1),
    )
    optimizer = sgd(actor.parameters())

    def step(_number: int) -> object:
        choices, value = actor(torch.randn(4, 6))
        action = choices.sample()
        loss = -choices.log_prob(action).mean() + value.square().mean() - 0.01 * choices.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), action

    return Training(actor, step, [optimizer])
