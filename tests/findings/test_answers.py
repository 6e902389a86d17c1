"""What gradients at the output tell of the targets, and operations between the modules of the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.tables import matrix
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.capture.facts.operations import swaps_sizes
from torchgraph_explorer.finding import Finding

WORDS, LENGTH, WIDTH, SAMPLES = 12, 18, 16, 10
BEGIN, PADDING = 1, 0

Loop = Callable[[], tuple[nn.Module, Callable[[], "Tensor | None"]]]
"""Makes a model, and what gives the loss of each step."""


class Attention(nn.Module):
    """One layer of attention, written out as people do."""

    def __init__(
        self, *, mask: bool = True, heads: Callable[[Tensor], Tensor] | None = None, scale: float = 0.5
    ) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.mask, self.scale = mask, scale
        self.heads = heads or (lambda x: x.view(*x.shape[:2], 4, 4).transpose(1, 2))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = map(self.heads, self.qkv(x).chunk(3, -1))
        logits = query @ key.mT * self.scale
        if self.mask:
            logits = logits + torch.full(logits.shape[-2:], -math.inf).triu(1)
        result: Tensor = (logits.softmax(-1) @ value).transpose(1, 2).reshape(x.shape)
        return result


class Turned(nn.Module):
    """Attention whose weights sum to one over a dimension, and are multiplied by the values as they are or turned."""

    def __init__(
        self, multiply: Callable[[Tensor, Tensor], Tensor], *, over: int, heads: int = 4, p: float = 0
    ) -> None:
        super().__init__()
        self.qkv, self.dropout = nn.Linear(WIDTH, 3 * WIDTH), nn.Dropout(p)
        self.multiply, self.over, self.heads = multiply, over, heads

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (one.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        logits = query @ key.mT * 0.5
        if self.over == -1:
            logits = logits + torch.full(logits.shape[-2:], -math.inf).triu(1)
        weights = logits.softmax(self.over)
        result: Tensor = self.multiply(self.dropout(weights), value).transpose(1, 2).reshape(x.shape)
        return result


class Graph(nn.Module):
    """Nodes take from their neighbours, whose matrix is sparse, beside weights that sum to one over the rows."""

    def forward(self, x: Tensor) -> Tensor:
        weights = (x[0] @ x[0].T).softmax(0)
        neighbours = torch.eye(LENGTH).roll(1, 0).to_sparse()
        result: Tensor = x + torch.sparse.mm(neighbours, weights.T @ x[0])
        return result


class OverPlaces(nn.Module):
    """Attention with keys that sum to one over as many places as there are features, as linear attention has it."""

    def forward(self, x: Tensor) -> Tensor:
        square = x[:, :WIDTH]
        result: Tensor = x.softmax(-1) @ (square.softmax(-2).mT @ square)
        return result


class Relative(Attention):
    """Adds logits of relative positions, which are put in order by one more column and a view."""

    def __init__(self, widen: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.widen, self.distances = widen, nn.Parameter(torch.randn(2 * LENGTH - 1, 4))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = map(self.heads, self.qkv(x).chunk(3, -1))
        distances = query @ self.distances.T
        wider = self.widen(distances)
        n, heads, rows, columns = wider.shape
        distances = wider.view(n, heads, columns, rows)[:, :, 1:].view_as(distances)[..., :LENGTH]
        logits = (query @ key.mT + distances) * self.scale + torch.full((LENGTH, LENGTH), -math.inf).triu(1)
        result: Tensor = (logits.softmax(-1) @ value).transpose(1, 2).reshape(x.shape)
        return result


class Patches(nn.Module):
    """A convolution over patches, whose channels become the last dimension."""

    def __init__(self, turn: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.patch, self.head, self.turn = nn.Conv2d(1, 8, 2, 2), nn.Linear(8, 3), turn

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(self.turn(self.patch(x)).relu().amax(1))
        return result


def patched(turn: Callable[[Tensor], Tensor]) -> Loop:
    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Patches(turn)
        return model, lambda: F.cross_entropy(model(torch.randn(SAMPLES, 1, 6, 8)), torch.randint(3, (SAMPLES,)))

    return make


class Fused(nn.Module):
    """The same by torch's function."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.qkv, self.options = nn.Linear(WIDTH, 3 * WIDTH), options

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (one[:, None] for one in self.qkv(x).chunk(3, -1))
        result: Tensor = F.scaled_dot_product_attention(query, key, value, **self.options)[:, 0]
        return result


class Recurrent(nn.Module):
    def __init__(self, *, both_ways: bool) -> None:
        super().__init__()
        self.rnn = nn.GRU(WIDTH, WIDTH // 2 if both_ways else WIDTH, batch_first=True, bidirectional=both_ways)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.rnn(x)[0]
        return result


class Convolution(nn.Module):
    def __init__(self, *, ahead: int, behind: int, masked: bool = False) -> None:
        super().__init__()
        both = min(ahead, behind)
        self.pads = ahead - both, behind - both
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3, padding=both)
        if masked:
            self.conv.weight.register_hook(lambda gradient: gradient * torch.tensor([1.0, 1.0, 0.0]))
            with torch.no_grad():
                self.conv.weight[..., 2] = 0

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.conv(F.pad(x.mT, self.pads)).mT
        return result


class Scaled(nn.Embedding):
    """As large language models have it."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) * WIDTH**0.5


class Reader(nn.Module):
    """Logits for each token."""

    def __init__(self, inner: nn.Module, embedding: type[nn.Embedding] = nn.Embedding) -> None:
        super().__init__()
        self.embed = embedding(WORDS, WIDTH, padding_idx=PADDING)
        self.place = nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.inner, self.head = inner, nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> Tensor:
        x = self.embed(tokens) + self.place
        result: Tensor = self.head(x + self.inner(x))
        return result


class Shifting(Reader):
    """Shifts what it is given by itself, with a row for the beginning."""

    def __init__(self, *, by: str) -> None:
        super().__init__(Attention())
        self.beginning = nn.Parameter(torch.randn(1, 1, WIDTH)) if by == "cat" else None

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> Tensor:
        x = self.embed(tokens)
        if self.beginning is not None:
            x = torch.cat([self.beginning.expand(len(x), -1, -1), x[:, :-1]], 1)
        else:
            x = F.pad(x, (0, 0, 1, 0))[:, :-1]
        x = x + self.place
        result: Tensor = self.head(x + self.inner(x))
        return result


def shifting(by: str) -> Loop:
    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Shifting(by=by)

        def loss() -> Tensor:
            tokens = text(LENGTH)
            return entropy(model(tokens), tokens)

        return model, loss

    return make


class Attended(nn.Module):
    """A causal decoder beside an encoder of a sequence of another length."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.over = nn.Linear(3, WIDTH), Fused()
        self.decoder = Reader(Fused(is_causal=True))

    def forward(self, source: Tensor, tokens: Tensor) -> Tensor:
        result: Tensor = self.decoder(tokens) + self.over(self.read(source)).mean((1, 2))[:, None, None]
        return result


def beside(shift: int) -> Loop:
    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Attended()

        def loss() -> Tensor:
            tokens = text(LENGTH + 1)
            targets = tokens[:, shift : LENGTH + shift]
            return entropy(model(torch.randn(SAMPLES, LENGTH + 3, 3), tokens[:, :LENGTH]), targets)

        return model, loss

    return make


class Forecaster(nn.Module):
    def __init__(self, *, both_ways: bool) -> None:
        super().__init__()
        self.rnn = nn.LSTM(2, 8, batch_first=True, bidirectional=both_ways)
        self.head = nn.Linear(16 if both_ways else 8, 2)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(self.rnn(x)[0])
        return result


def forecast(*, both_ways: bool, ahead: bool = True) -> Loop:
    """The next numbers at each place, or those that the input is a noisy copy of."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Forecaster(both_ways=both_ways)

        def loss() -> Tensor:
            x = torch.randn(SAMPLES, LENGTH + 1, 2)
            if ahead:
                return F.mse_loss(model(x[:, :-1]), x[:, 1:])
            return F.mse_loss(model(x + torch.randn_like(x) / 2), x)

        return model, loss

    return make


class Spectra(nn.Module):
    """Channels of a spectrum are joined with its frequencies, at each time."""

    def __init__(self, join: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.conv, self.join, self.rnn, self.head = nn.Conv2d(1, 3, 3, padding=1), join, nn.GRU(15, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(self.rnn(self.join(self.conv(x)))[0][-1])
        return result


def spectra(join: Callable[[Tensor], Tensor]) -> Loop:
    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Spectra(join)
        return model, lambda: F.cross_entropy(model(torch.randn(SAMPLES, 1, 8, 5)), torch.randint(3, (SAMPLES,)))

    return make


class Translator(nn.Module):
    """An encoder and a decoder, or an autoencoder: then nothing is handed to the decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.encoder, self.decoder = (nn.GRU(WIDTH, WIDTH, batch_first=True) for _ in range(2))

    def forward(self, source: Tensor, given: Tensor | None = None) -> Tensor:
        state = self.encoder(self.embed(source))[1]
        x = state[0][:, None].expand(-1, LENGTH, -1) if given is None else self.embed(given)
        result: Tensor = self.head(self.decoder(x, state)[0])
        return result


def text(length: int = LENGTH + 1) -> Tensor:
    return torch.randint(2, WORDS, (SAMPLES, length))


def entropy(logits: Tensor, targets: Tensor, **options: Any) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), **options)


def language(
    inner: Callable[[], nn.Module],
    *,
    shift: int = 1,
    hand_over: bool = False,
    embedding: type[nn.Embedding] = nn.Embedding,
) -> Loop:
    """Asks for the token `shift` places on."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Reader(inner(), embedding)

        def loss() -> Tensor:
            tokens = text(LENGTH + max(shift, 1))
            given, targets = tokens[:, :LENGTH], tokens[:, shift : LENGTH + shift]
            return entropy(model(given, targets) if hand_over else model(given), targets)

        return model, loss

    return make


def sorting() -> tuple[nn.Module, Callable[[], Tensor]]:
    """Each place has to see all others."""
    model = Reader(Attention(mask=False))

    def loss() -> Tensor:
        tokens = text(LENGTH)
        return entropy(model(tokens), tokens.sort(1).values)

    return model, loss


def padded(**options: Any) -> Loop:
    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Reader(Attention())

        def loss() -> Tensor:
            tokens = text()
            tokens[torch.arange(LENGTH + 1) >= torch.randint(2, 4, (SAMPLES, 1))] = PADDING
            return entropy(model(tokens[:, :-1]), tokens[:, 1:], **options)

        return model, loss

    return make


def translation(*, given: str) -> Loop:
    """Sorted tokens, or a copy, of which the decoder is given `nothing`, those before each, or the answers."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Translator()

        def loss() -> Tensor:
            source = text(LENGTH)
            answers = source if given in {"a copy", "nothing"} else source.sort(1).values
            before = torch.cat([torch.full((SAMPLES, 1), BEGIN), answers[:, :-1]], 1)
            handed = {"nothing": (), "the answers": (answers,)}.get(given, (before,))
            return entropy(model(source, *handed), answers)

        return model, loss

    return make


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(WORDS, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.rnn(self.embed(x))[1]
        return result


class Decoder(nn.Module):
    """Is given the answers, of which it takes those before each place, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(WORDS, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, state: Tensor, answers: Tensor) -> Tensor:
        found, before = [], torch.full((SAMPLES, 1), BEGIN)
        for at in range(LENGTH):
            values, state = self.rnn(self.embed(before), state)
            found.append(self.head(values))
            before = answers[:, at : at + 1]
        return torch.cat(found, 1)


class Reversing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()

    def forward(self, source: Tensor, answers: Tensor) -> Tensor:
        result: Tensor = self.decoder(self.encoder(source), answers)
        return result


def reversed_text() -> tuple[nn.Module, Callable[[], Tensor]]:
    model = Reversing()

    def loss() -> Tensor:
        source = text(LENGTH)
        return entropy(model(source, source.flip(1)), source.flip(1))

    return model, loss


def heads_by_view(x: Tensor) -> Tensor:
    return x.reshape(len(x), 4, LENGTH, 4)


class LastState(nn.Module):
    """The last states of both directions to a head."""

    def __init__(self, join: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.rnn, self.head, self.join = nn.LSTM(4, 6, bidirectional=True, batch_first=True), nn.Linear(12, 3), join

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.head(self.join(self.rnn(x)[1][0]))
        return result


def states(join: Callable[[Tensor], Tensor]) -> Loop:
    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = LastState(join)
        return model, lambda: F.cross_entropy(model(torch.randn(SAMPLES, 5, 4)), torch.randint(3, (SAMPLES,)))

    return make


def huber(found: Tensor, wanted: Tensor) -> Tensor:
    """As `F.smooth_l1_loss`, which warns where sizes differ."""
    apart = (found - wanted).abs()
    return torch.where(apart < 1, apart**2 / 2, apart - 0.5).mean()


def numbers(error: Callable[[Tensor, Tensor], Tensor], *, targets: Callable[[Tensor], Tensor] | None = None) -> Loop:
    """A regression with numbers of which some are far away."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))

        def loss() -> Tensor:
            x = torch.randn(24, 4)
            return error(model(x), targets(x) if targets else x.sum(1))

        return model, loss

    return make


def values(*, broadcast: bool, scale: float = 1.0) -> Loop:
    """Values of actions: what they are drawn to rises with them. Small errors are squared."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
        rise = iter(range(10_000))

        def loss() -> Tensor:
            x = torch.randn(24, 4)
            chosen = model(x).gather(1, torch.randint(3, (24, 1)))
            rewards = scale * x.sum(1) * (1 + 0.05 * next(rise))
            return huber(chosen if broadcast else chosen[:, 0], rewards)

        return model, loss

    return make


class Dropping(nn.Module):
    """Drops by a function, or hides with noise of its own."""

    def __init__(self, drop: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.last, self.drop = nn.Linear(4, 16), nn.Linear(16, 3), drop

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.last(self.drop(F.relu(self.first(x))))
        return result


def hide_most(x: Tensor) -> Tensor:
    return x * torch.empty_like(x).bernoulli_(0.1)


def classes(make: Callable[[], nn.Module], *, scale: float = 1.0) -> Loop:
    def begin() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = make()
        return model, lambda: F.cross_entropy(model(scale * torch.randn(SAMPLES, 4)), torch.randint(3, (SAMPLES,)))

    return begin


class TwoHeads(nn.Module):
    """A policy and a value; or a head whose result counts nothing, as where all ranks have to have gradients."""

    def __init__(self, *, adds_unused: bool = False) -> None:
        super().__init__()
        self.body, self.policy, self.value = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
        self.spare = nn.Linear(8, 2) if adds_unused else None

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.tanh(self.body(x))
        spare = 0.0 if self.spare is None else 0.0 * self.spare.weight.sum()
        return self.policy(h).log_softmax(1) + spare, self.value(h)[:, 0]


def ratios(*, detach: bool, adds_unused: bool = False) -> Loop:
    """The ratio of new and old probabilities, where the old ones are those of the same pass."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = TwoHeads(adds_unused=adds_unused)

        def loss() -> Tensor:
            logs, value = model(torch.randn(SAMPLES, 4))
            old = logs.detach() if detach else logs
            return ((logs - old).exp()[:, 0] * torch.randn(SAMPLES)).mean() + (value - 1).pow(2).mean()

        return model, loss

    return make


class Placed(nn.Module):
    """Tokens with a table of positions, and attention that has the samples first or second."""

    def __init__(self, *, samples_first: bool, along: int, is_learned: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        table = torch.randn(50, 1, WIDTH)
        if is_learned:
            self.table = nn.Parameter(table)
        else:
            self.register_buffer("table", table)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=samples_first)
        self.head, self.samples_first, self.along = nn.Linear(WIDTH, 3), samples_first, along

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens if self.samples_first else tokens.T)
        rows = self.table[: x.shape[self.along]]
        x = x + (rows if self.along == 0 else rows.transpose(0, 1))
        y = self.attention(x, x, x)[0].mean(1 if self.samples_first else 0)
        result: Tensor = self.head(y)
        return result


def placed(**options: Any) -> Loop:
    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Placed(**options)
        return model, lambda: F.cross_entropy(model(text(LENGTH)), torch.randint(3, (SAMPLES,)))

    return make


class Ending(nn.Module):
    """A network with something at its end."""

    def __init__(self, body: nn.Module, end: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.body, self.end = body, end

    def forward(self, x: Tensor) -> Tensor:
        return self.end(self.body(x))


def labelled(dim: int, *, logarithms: bool = True) -> Loop:
    """A class for each place of a sequence, by probabilities that sum to one over a dimension."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Ending(nn.Linear(4, 5), lambda x: x.log_softmax(dim) if logarithms else x.softmax(dim))

        def loss() -> Tensor:
            found, right = model(torch.randn(SAMPLES, 7, 4)), torch.randint(5, (SAMPLES, 7))
            if logarithms:
                return F.nll_loss(found.flatten(0, 1), right.flatten())
            return 1 - (found * F.one_hot(right, 5)).mean()

        return model, loss

    return make


def coloured(dim: int) -> Loop:
    """A class for each pixel."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Ending(nn.Conv2d(3, 4, 1), lambda x: x.softmax(dim))

        def loss() -> Tensor:
            right = F.one_hot(torch.randint(4, (SAMPLES, 6, 6)), 4).movedim(-1, 1)
            return 1 - (model(torch.randn(SAMPLES, 3, 6, 6)) * right).mean()

        return model, loss

    return make


def several(end: Callable[[Tensor], Tensor], *, wanted: int | None = None) -> Loop:
    """A binary cross entropy for each class, of which any number is right, or so many."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = Ending(nn.Linear(4, 5), end)

        def loss() -> Tensor:
            numbers = torch.rand(SAMPLES, 5)
            right = numbers > 0.5 if wanted is None else numbers.argsort(1) < wanted
            return F.binary_cross_entropy(model(torch.randn(SAMPLES, 4)), right.float())

        return model, loss

    return make


def smoothed(share: float) -> Loop:
    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = nn.Linear(4, 5)
        return model, lambda: F.cross_entropy(
            model(torch.randn(SAMPLES, 4)), torch.randint(5, (SAMPLES,)), label_smoothing=share
        )

    return make


def distilled() -> tuple[nn.Module, Callable[[], Tensor]]:
    """Labels of another model, of which none is sure."""
    model, other = nn.Linear(4, 5), nn.Linear(4, 5)

    def loss() -> Tensor:
        x = torch.randn(SAMPLES, 4)
        return F.cross_entropy(model(x), other(x).detach().softmax(1))

    return model, loss


def columns(target: Callable[[Tensor], Tensor], *, is_recurrent: bool = False) -> Loop:
    """A regression from a table, or from sequences."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        network: nn.Module = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
        if is_recurrent:
            network = nn.Sequential(nn.Unflatten(1, (6, 1)), nn.RNN(1, 8, batch_first=True))
        model = Ending(network, lambda found: found[0][:, -1, :1] if is_recurrent else found)

        def loss() -> Tensor:
            x = torch.randn(SAMPLES, 6)
            return F.mse_loss(model(x), target(x)[:, None])

        return model, loss

    return make


def signs(low: float) -> Loop:
    """Two classes by a binary cross entropy, of which one has this label."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = nn.Linear(4, 1)
        nn.init.normal_(model.weight, std=0.01)

        def loss() -> Tensor:
            x = 12 * torch.randn(24, 4)
            return F.binary_cross_entropy_with_logits(model(x)[:, 0], torch.where(x[:, 0] > 0, 1.0, low))

        return model, loss

    return make


def rebuilt_by(end: Callable[[Tensor], Tensor], *, low: float) -> Loop:
    """An autoencoder that ends with a function."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        layer = nn.Linear(4, 4)
        nn.init.eye_(layer.weight)
        model = Ending(layer, end)

        def loss() -> Tensor:
            x = torch.where(torch.rand(SAMPLES, 4) < 0.5, low, 1.0)
            return F.mse_loss(model(x), x)

        return model, loss

    return make


def rebuilt(low: float) -> Loop:
    """An autoencoder that ends with a sigmoid, of numbers that are `low` at least."""

    def make() -> tuple[nn.Module, Callable[[], Tensor]]:
        model = nn.Sequential(nn.Linear(8, 8), nn.Sigmoid())

        def loss() -> Tensor:
            x = low + (1 - low) * torch.rand(SAMPLES, 8)
            return F.mse_loss(model(x), x)

        return model, loss

    return make


ANSWERS: dict[str, tuple[Loop, str, str]] = {
    "attention without a mask": (language(lambda: Attention(mask=False)), "future-visible", "inner"),
    "torch's attention without a mask": (language(Fused), "future-visible", "inner"),
    "recurrence both ways": (language(lambda: Recurrent(both_ways=True)), "future-visible", "inner.rnn"),
    "a convolution both ways": (language(lambda: Convolution(ahead=1, behind=1)), "future-visible", "inner.conv"),
    "answers that are not shifted": (language(Attention, shift=0), "answers-in-inputs", ""),
    "answers that are not shifted, and an embedding that scales": (
        language(Attention, shift=0, embedding=Scaled),
        "answers-in-inputs",
        "",
    ),
    "answers that are shifted twice": (language(Attention, shift=2), "targets-shifted-twice", ""),
    "positions of the samples": (placed(samples_first=True, along=0), "positions-over-batch", ""),
    "learned positions of the samples": (
        placed(samples_first=True, along=0, is_learned=True),
        "positions-over-batch",
        "",
    ),
    "logarithms over the places": (labelled(1), "softmax-wrong-dimension", ""),
    "probabilities over the places": (labelled(1, logarithms=False), "softmax-wrong-dimension", ""),
    "attention over the queries": (language(lambda: Turned(torch.matmul, over=-2)), "softmax-wrong-dimension", "inner"),
    "attention over the queries, with dropout": (
        language(lambda: Turned(torch.matmul, over=2, p=0.2)),
        "softmax-wrong-dimension",
        "inner",
    ),
    "attention over the queries, in another dtype": (
        language(lambda: Turned(lambda weights, value: (weights.bfloat16() @ value.bfloat16()).float(), over=-2)),
        "softmax-wrong-dimension",
        "inner",
    ),
    "attention over the heads": (
        language(lambda: Turned(lambda weights, value: torch.einsum("bhqk,bhkd->bhqd", weights, value), over=1)),
        "softmax-wrong-dimension",
        "inner",
    ),
    "probabilities over a row of pixels": (coloured(3), "softmax-wrong-dimension", ""),
    "a softmax for several labels": (several(lambda x: x.softmax(1)), "softmax-before-loss", ""),
    "labels with little of the right class": (smoothed(0.9), "label-smoothing-extreme", ""),
    "a target among the inputs": (columns(lambda x: x[:, 2]), "answers-in-inputs", ""),
    "labels of minus one": (signs(-1.0), "targets-out-of-range", ""),
    "targets below zero for a function": (
        rebuilt_by(lambda x: torch.sigmoid(9 * x), low=-1.0),
        "targets-out-of-range",
        "",
    ),
    "targets below zero for several ReLUs": (rebuilt_by(torch.relu, low=-1.0), "targets-out-of-range", ""),
    "a decoder that is given the answers": (translation(given="the answers"), "answers-in-inputs", ""),
    "a decoder beside attention over another length": (beside(0), "answers-in-inputs", ""),
    "padding that counts": (padded(), "padding-in-loss", ""),
    "heads by a view": (language(lambda: Attention(heads=heads_by_view)), "view-for-transpose", "inner"),
    "patches by a view": (patched(lambda x: x.view(len(x), -1, 8)), "view-for-transpose", ""),
    "numbers that are seen ahead": (forecast(both_ways=True), "future-visible", "rnn"),
    "a spectrum by a view": (spectra(lambda h: h.view(len(h), 15, 8).permute(2, 0, 1)), "view-for-transpose", ""),
    "states by a view": (states(lambda h: h.view(SAMPLES, -1)), "view-for-transpose", ""),
    "one error for all targets": (numbers(huber), "targets-broadcast", ""),
    "values of actions for all": (values(broadcast=True), "targets-broadcast", ""),
    "small values of actions for all": (values(broadcast=True, scale=0.1), "targets-broadcast", ""),
    "a function that drops most": (
        classes(lambda: Dropping(lambda x: F.dropout(x, 0.9))),
        "dropout-extreme",
        "",
    ),
    "logits that are not scaled": (language(lambda: Attention(scale=12)), "attention-saturated", "inner"),
    "a ratio of a number to itself": (ratios(detach=False), "no-gradient", "policy"),
    "targets below zero for a sigmoid": (rebuilt(-0.6), "targets-out-of-range", ""),
    "one number over which is normalised": (
        classes(lambda: nn.Sequential(nn.Linear(4, 1), nn.LayerNorm(1), nn.Linear(1, 3))),
        "normalised-alone",
        "1",
    ),
    "the momentum of Keras": (
        classes(lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, momentum=0.99), nn.Linear(8, 3))),
        "norm-momentum",
        "1",
    ),
    "inputs of zeros": (classes(lambda: nn.Linear(4, 3), scale=0), "constant-input", ""),
}

SOUND: dict[str, Loop] = {
    "attention with a mask": language(Attention),
    "torch's attention with a flag": language(lambda: Fused(is_causal=True)),
    "torch's attention with a mask": language(
        lambda: Fused(attn_mask=torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril())
    ),
    "recurrence one way": language(lambda: Recurrent(both_ways=False)),
    "a convolution one way": language(lambda: Convolution(ahead=2, behind=0)),
    "a masked convolution": language(lambda: Convolution(ahead=1, behind=1, masked=True)),
    "targets that are handed to the model": language(Attention, hand_over=True),
    "a decoder beside attention over another length": beside(1),
    "embedded tokens that the model shifts": shifting("cat"),
    "embedded tokens that the model pads": shifting("pad"),
    "numbers that are not seen ahead": forecast(both_ways=False),
    "numbers without noise": forecast(both_ways=True, ahead=False),
    "a spectrum that is turned": spectra(lambda h: h.permute(2, 0, 1, 3).flatten(2)),
    "positions of the places": placed(samples_first=True, along=1),
    "positions of the places, which come first": placed(samples_first=False, along=0),
    "logarithms over the classes": labelled(2),
    "probabilities over the classes": labelled(2, logarithms=False),
    "attention over the keys": language(lambda: Turned(torch.matmul, over=-1, p=0.2)),
    "attention over the queries, turned": language(lambda: Turned(lambda weights, value: weights.mT @ value, over=-2)),
    "attention over the queries, turned by einsum": language(
        lambda: Turned(lambda weights, value: torch.einsum("bhkq,bhkd->bhqd", weights, value), over=-2, p=0.2)
    ),
    "attention normalised both ways": language(
        lambda: Turned(lambda weights, value: (weights / weights.sum(-1, keepdim=True)) @ value, over=-2)
    ),
    "keys over the places": language(OverPlaces),
    "keys over the places of a graph": language(Graph, shift=0),
    "attention over the keys, by a transform": language(
        lambda: Turned(lambda weights, value: torch.func.vmap(torch.matmul)(weights.mT, value), over=-2)
    ),
    "probabilities over the classes of pixels": coloured(1),
    "a sigmoid for several labels": several(torch.sigmoid),
    "a softmax for one label": several(lambda x: x.softmax(1), wanted=1),
    "labels that are smoothed a little": smoothed(0.1),
    "labels of another model": distilled,
    "a target that is near an input": columns(lambda x: x[:, 2] + 0.1 * x[:, 3]),
    "a target to remember": columns(lambda x: x[:, 0], is_recurrent=True),
    "labels of zero": signs(0.0),
    "targets of a function": rebuilt_by(torch.sigmoid, low=0.0),
    "targets of several ReLUs": rebuilt_by(torch.relu, low=0.0),
    "sorted tokens": sorting,
    "a translation": translation(given="those before"),
    "a copy": translation(given="a copy"),
    "answers that are handed over, the same tokens in another order": reversed_text,
    "an autoencoder": translation(given="nothing"),
    "padding that does not count": padded(ignore_index=PADDING),
    "relative positions behind a pad": language(lambda: Relative(lambda x: F.pad(x, (1, 0)))),
    "relative positions behind zeros": language(
        lambda: Relative(lambda x: torch.cat([x.new_zeros(*x.shape[:3], 1), x], -1))
    ),
    "patches by a transpose": patched(lambda x: x.flatten(2).mT),
    "states side by side": states(lambda h: torch.cat([h[0], h[1]], 1)),
    "one error for one target": numbers(lambda found, wanted: huber(found[:, 0], wanted)),
    "one target for all": numbers(
        lambda found, wanted: huber(found[:, 0], wanted),
        targets=lambda x: (4 * x.mean() + torch.randn(())).expand(24),
    ),
    "values of actions": values(broadcast=False),
    "small values of actions": values(broadcast=False, scale=0.1),
    "one small target for all": numbers(
        lambda found, wanted: huber(found[:, 0] / 9, wanted),
        targets=lambda x: (0.1 * torch.randn(())).expand(24),
    ),
    "a function that drops little": classes(lambda: Dropping(lambda x: F.dropout(x, 0.2))),
    "noise that hides most": classes(lambda: Dropping(hide_most)),
    "a ratio to an old number": ratios(detach=True),
    "weights that count nothing": ratios(detach=True, adds_unused=True),
    "targets of a sigmoid": rebuilt(0.0),
}


def told(loop: Loop, folder: Path, *, every: int = 1, log: bool = True) -> list[Finding]:
    """What is told of a training."""
    torch.manual_seed(0)
    model, loss_of = loop()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    steps = 42 if every == 1 else 9 * every
    with watch(model, log_freq=every, backend="record", logdir=str(folder), run="run", verbose=False) as watcher:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_of()
            assert loss is not None
            loss.backward()
            optimizer.step()
            if log:
                watcher.log({"loss": loss})
    return list(open_run(str(folder / "run")).model().findings())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "every"), matrix([*ANSWERS], [1, 7]))
def test_a_fault_between_the_modules_or_in_the_targets_is_told(name: str, every: int, tmp_path: Path) -> None:
    loop, kind, module = ANSWERS[name]
    found = [(one.kind, one.module) for one in told(loop, tmp_path, every=every) if one.severity != "info"]
    assert (kind, module) in found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "every"), matrix([*SOUND], [1, 7]))
def test_of_what_comes_close_to_it_nothing_is_told(name: str, every: int, tmp_path: Path) -> None:
    ours = {kind for _, kind, _ in ANSWERS.values()} | {"loss-diverging"}
    assert [one for one in told(SOUND[name], tmp_path, every=every) if one.kind in ours] == []


def optimizers(*, each: int, kind: type[torch.optim.Optimizer]) -> Callable[[nn.Module], Iterator[Any]]:
    """The optimizer of each step; a new one every so many steps."""

    def these(model: nn.Module) -> Iterator[torch.optim.Optimizer]:
        step = 0
        while True:
            if step % each == 0:
                optimizer = kind(model.parameters(), lr=1e-3)  # type: ignore[call-arg]
            step += 1
            yield optimizer

    return these


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of_step", "every", "is_told"),
    [
        pytest.param(optimizers(each=1, kind=torch.optim.Adam), 1, True, id="at each step"),
        pytest.param(optimizers(each=1, kind=torch.optim.Adam), 5, True, id="at each step, few recorded"),
        pytest.param(optimizers(each=5, kind=torch.optim.Adam), 5, False, id="at each recorded step"),
        pytest.param(optimizers(each=1, kind=torch.optim.SGD), 1, False, id="with nothing to forget"),
        pytest.param(optimizers(each=1000, kind=torch.optim.Adam), 1, False, id="once"),
    ],
)
def test_an_optimizer_that_is_made_anew_at_each_step_is_told(
    of_step: Callable[[nn.Module], Iterator[Any]], every: int, *, is_told: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    with watch(model, log_freq=every, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for optimizer, _ in zip(of_step(model), range(30), strict=False):
            optimizer.zero_grad()
            F.cross_entropy(model(torch.randn(8, 4)), torch.randint(3, (8,))).backward()
            optimizer.step()
    found = {one.kind for one in open_run(str(tmp_path / "run")).model().findings()}
    assert ("optimizer-recreated" in found) == is_told


@pytest.mark.parametrize(
    ("before", "after", "is_one"),
    [
        ((32, 10, 64), (32, 64, 10), True),
        ((8, 28, 28, 3), (8, 3, 28, 28), True),
        ((16, 32, 64), (16, 4, 32, 16), True),
        ((16, 4, 32, 16), (16, 32, 64), True),
        ((2, 32, 64), (32, 128), True),
        ((16, 32, 64), (16, 32, 4, 16), False),
        ((16, 32, 4, 16), (16, 32, 64), False),
        ((32, 10, 64), (320, 64), False),
        ((32, 1, 8, 8), (32, 64), False),
        ((32, 1, 64), (32, 64, 1), False),
        ((64, 128), (128, 64), False),
        ((8, 32, 7, 7), (8, 49, 32), True),
        ((8, 49, 32), (8, 32, 7, 7), True),
        ((8, 7, 6, 32), (8, 42, 32), False),
        ((8, 32, 7, 7), (8, 32, 49), False),
        ((8, 7, 6, 7), (8, 42, 7), False),
        ((8, 36, 6), (8, 6, 6, 6), False),
        ((2, 4, 10, 36), (2, 144, 10), True),
        ((2, 4, 4, 36), (2, 144, 4), False),
    ],
)
def test_a_view_that_looks_like_a_transpose_is_noted(
    before: tuple[int, ...], after: tuple[int, ...], *, is_one: bool
) -> None:
    assert swaps_sizes(before, after) == is_one
