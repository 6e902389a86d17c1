"""The runs that the browser tests look at, recorded by the real `watch()`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.kept import KeptArray, together
from tests.listening import Listening
from tests.models import CompiledEntries
from tests.record.examples import GRAPH, SERIES, SESSION, frame, logged, write
from torchgraph_explorer import Keep, Watcher, attach, watch
from torchgraph_explorer.demo import DigitsNet, load_digits
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import (
    Frame,
    KeptStep,
    NamedTensor,
    Record,
    Role,
    TensorEdge,
    TensorGraph,
    TensorKind,
)

STEPS = 40
"""Of the digits run; its `epoch` grows by a tenth a step."""

BROKEN_STEPS = (20, 21, 22)
"""Steps of the digits run at which the classifier's output is partly NaN."""

SCALAR_STEPS = 40
MANY_VALUES = 100_000
LONG_STEPS, STRETCH = 1000, 10
MANY_CALLS = 400
BATCH_SIZE = 32


class Glitching(nn.Linear):
    """A linear layer with NaN among its results at `BROKEN_STEPS`."""

    passes = 0

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        if self.passes in BROKEN_STEPS:
            y = torch.where(torch.arange(y.shape[1]) == 3, torch.nan, y)
        self.passes += 1
        return y


class Deep(nn.Module):
    """One level holds very many calls, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Linear(4, 4) if i % 2 == 0 else nn.Tanh() for i in range(MANY_CALLS)]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x))


def watching(model: nn.Module, logdir: Path, run: str, **options: Any) -> Watcher:
    """Records every step of `model` into the run, and nothing else."""
    return watch(model, log_freq=1, backend="record", logdir=logdir, run=run, verbose=False, **options)


def train(model: nn.Module, batches: Iterable[tuple[Any, ...]], loss_of: Callable[..., Tensor]) -> None:
    """Steps with Adam; one whose loss is not finite has no gradients left, and changes nothing."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for inputs, *targets in batches:
        optimizer.zero_grad()
        loss = loss_of(model(inputs), *targets)
        loss.backward()
        if not loss.isfinite():
            optimizer.zero_grad()
        optimizer.step()


def record_digits(logdir: Path, run: str = "digits", steps: int = STEPS) -> None:
    """The demo's network on its digits, with NaN for a while in its last module."""
    torch.manual_seed(0)
    model = DigitsNet()
    model.classifier = Glitching(64, 10)
    digits = load_digits()
    chosen = (torch.randint(len(digits), (BATCH_SIZE,)) for _ in range(steps))
    with watching(model, logdir, run, time_log=("epoch", lambda _, step: step / 10)):
        train(model, ((digits[at].images, digits[at].labels) for at in chosen), functional.cross_entropy)


def record_scalars(logdir: Path, run: str = "scalars") -> None:
    """A linear layer over `SCALAR_STEPS` steps, every second one logged, whose loop logs scalars and notes.

    The loss is 1 / (step + 1), but NaN at steps 5 and 6, and 1000 at step 25. There are 100 tokens in each of the first
    20 steps, and 900 in the others. The accuracy also has values with the label `eval`, at each tenth step.
    """
    torch.manual_seed(0)
    model, tokens = nn.Sequential(nn.Linear(4, 2)), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, log_freq=2, backend="record", logdir=logdir, run=run, verbose=False) as watcher:
        for step in range(SCALAR_STEPS):
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()
            tokens += 100 if step < 20 else 900
            loss = {5: float("nan"), 6: float("nan"), 25: 1000.0}.get(step, 1 / (step + 1))
            watcher.log({"train/loss": loss, "train/acc": step / 10, "tokens": tokens})
            if step % 10 == 9:
                watcher.log({"train/acc": step / 20}, label="eval")
            if step == 12:
                watcher.note("switched to the big batch")


def record_many_values(logdir: Path, run: str = "values") -> None:
    """A run without frames and with very many values of a scalar, all 1 but a single 500."""
    values = [1.0] * MANY_VALUES
    values[77_777] = 500.0
    write(logdir / run, logged([*range(MANY_VALUES)], loss=values))


def record_many_calls(logdir: Path, run: str = "many") -> None:
    """A model one level of which has `MANY_CALLS` calls."""
    torch.manual_seed(0)
    model = Deep()
    with watching(model, logdir, run):
        train(model, [(torch.randn(8, 4),)] * 2, mean_square)


class Conditioned(nn.Module):
    """A block that also gets the embedding of the timestep."""

    def __init__(self) -> None:
        super().__init__()
        self.main, self.condition = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        """A residual block."""
        return x + torch.tanh(self.main(x) + self.condition(embedding))


class Denoiser(nn.Module):
    """A chain of equal blocks, all of which get one embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.time_emb = nn.Linear(1, 8)
        self.blocks = nn.ModuleList(Conditioned() for _ in range(8))
        self.a_head_whose_name_is_longer_than_any_node_of_the_graph_is_wide = nn.Linear(8, 1)

    def forward(self, sample: Tensor, timestep: Tensor) -> Tensor:
        """The blocks one after the other."""
        embedding = self.time_emb(timestep)
        for block in self.blocks:
            sample = block(sample, embedding)
        result: Tensor = self.a_head_whose_name_is_longer_than_any_node_of_the_graph_is_wide(sample)
        return result


def record_denoiser(logdir: Path, run: str = "denoiser") -> None:
    """One tensor that goes to all of eight equal blocks; the arguments are given in another order."""
    model = Denoiser()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(model, logdir, run):
        for _ in range(3):
            optimizer.zero_grad()
            model(timestep=torch.rand(4, 1), sample=torch.rand(4, 8)).square().mean().backward()
            optimizer.step()


def record_long(logdir: Path, run: str = "long") -> None:
    """Six layers over `LONG_STEPS` steps: each has eight series. Of `STRETCH` all are recorded like the first."""
    torch.manual_seed(0)
    model, heard = nn.Sequential(*(nn.Linear(6, 6) for _ in range(6))), Listening()
    with watch(model, log_freq=1, backend=heard, verbose=False):
        train(model, ((torch.randn(16, 6),) for _ in range(LONG_STEPS // STRETCH)), mean_square)
    records: list[Record] = []
    for record in heard.records[1:]:
        if isinstance(record, Frame):
            records += [replace(record, step=record.step * STRETCH + at) for at in range(STRETCH)]
        else:
            records.append(record)
    write(logdir / run, *records, session=heard.session)


def record_pair(logdir: Path, run: str = "pair") -> None:
    """Two models in one run, one of which has parts that no gradient reaches."""
    torch.manual_seed(0)
    gates, linear = CompiledEntries(), nn.Sequential(nn.Linear(4, 3))
    with watching(gates, logdir, run, name="gates"), watching(linear, logdir, run, name="linear"):
        train(gates, [(torch.randn(8, 5),)] * 3, mean_square)
        train(linear, [(torch.randn(8, 4),)] * 2, mean_square)


def mean_square(output: Tensor) -> Tensor:
    """A loss that needs no target."""
    return output.square().mean()


ROUNDS = 10
"""Of the GAN: each is an update of its discriminator, and then one of its generator."""

MICRO_BATCHES = 9
"""Of each update of the accumulating model."""

SKIPPED_UPDATES = (3, 4)
"""Updates of the accumulating model that its gradient scaler skips."""


class Adversaries(nn.Module):
    """A GAN in one module."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
        self.discriminator = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(), nn.Linear(16, 1))


def record_gan(logdir: Path, run: str = "gan", *, mean: float = 0.0) -> None:
    """Two optimizers of one class take turns; the generator's is the first by name. `mean` is that of what it gets."""
    torch.manual_seed(0)
    model = Adversaries()
    halves = (model.generator, model.discriminator)
    generator, discriminator = (torch.optim.Adam(half.parameters(), lr=2e-3) for half in halves)
    with watching(model, logdir, run):
        for _ in range(ROUNDS):
            fake = model.generator(mean + torch.randn(BATCH_SIZE, 4)).detach()
            told_apart = (
                model.discriminator(fake).square() + (model.discriminator(torch.rand(BATCH_SIZE, 8)) - 1).square()
            )
            discriminator.zero_grad()
            told_apart.mean().backward()
            discriminator.step()
            generator.zero_grad()
            (model.discriminator(model.generator(mean + torch.randn(BATCH_SIZE, 4))) - 1).square().mean().backward()
            generator.step()


def record_accumulating(logdir: Path, run: str = "accumulating", steps: int = 8) -> None:
    """Nine micro-batches an update, some of which a gradient scaler skips."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cpu")
    with watching(model, logdir, run):
        for step in range(steps):
            optimizer.zero_grad()
            for _ in range(MICRO_BATCHES):
                loss = model(torch.randn(BATCH_SIZE, 4)).square().mean()
                scaler.scale(loss * (torch.inf if step in SKIPPED_UPDATES else 1.0)).backward()
            scaler.step(optimizer)
            scaler.update()


TURNS, BAD_TURN = 40, 30
"""Calls of the recurrent model's cell, and the one that has NaN at the last step."""


class Cell(nn.Module):
    """A recurrent cell, which may go wrong in one call."""

    def __init__(self) -> None:
        super().__init__()
        self.gates, self.norm = nn.Linear(8, 4), nn.LayerNorm(4)
        self.bad_turn: int | None = None

    def forward(self, x: Tensor, h: Tensor, turn: int) -> Tensor:
        bad = torch.nan if turn == self.bad_turn else 0.0
        return self.norm(self.gates(torch.cat([x, h], 1)).tanh()) + bad


class Recurrent(nn.Module):
    """Calls a cell and a head in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = Cell(), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        h, outputs = torch.zeros(len(x), 4), []
        for turn in range(TURNS):
            h = self.cell(x[:, turn], h, turn)
            outputs.append(self.head(h))
        return torch.stack(outputs)


def record_loop(logdir: Path, run: str = "loop") -> None:
    """A cell in a loop, one of whose calls has NaN at the last of three steps."""
    torch.manual_seed(0)
    model = Recurrent()
    with watching(model, logdir, run):
        train(model, batches_for(model), mean_square)


def batches_for(model: Recurrent) -> Iterator[tuple[Tensor]]:
    """Three; at the last one, a call goes wrong."""
    for step in range(3):
        model.cell.bad_turn = BAD_TURN if step == 2 else None
        yield (torch.randn(8, TURNS, 4),)


BROKEN_RUN_STEPS = 40
"""Of the broken run."""

DEAD_FROM, NAN_FROM = 12, 34
"""Steps of the broken run from which on a ReLU is dead, and the weights of its head are not finite."""


class Block(nn.Module):
    """A linear layer and a ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.act = nn.Linear(16, 16), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.fc(x)) + x


class Broken(nn.Module):
    """A network with faults of many kinds: see the findings of the run."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.squash = nn.Linear(8, 16), nn.Tanh()
        self.body = nn.Sequential(Block(), Block())
        self.drop = nn.Dropout(0.95)
        self.spare = nn.Linear(16, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.body(self.squash(self.stem(x)))))


def record_broken(logdir: Path, run: str = "broken") -> None:
    """Inputs of hundreds saturate a tanh, a ReLU dies, updates are too large, and one module is never called."""
    torch.manual_seed(0)
    model = Broken()
    optimizer = torch.optim.SGD(model.parameters(), lr=8.0)
    with watching(model, logdir, run, optimizer=optimizer) as watcher:
        for step in range(BROKEN_RUN_STEPS):
            if step == DEAD_FROM:
                model.get_parameter("body.1.fc.bias").data.fill_(-1000.0)
            if step == NAN_FROM:
                model.head.weight.data[0, 0] = torch.nan
            optimizer.zero_grad()
            loss = mean_square(model(300 + 50 * torch.randn(BATCH_SIZE, 8)) - 1)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            watcher.log({"loss": loss.item()})


KEPT_STEPS = 12
"""Of the run with kept tensors, every second one of which keeps."""

KEPT_BATCH = 16


class Curious(nn.Module):
    """Has tensors of all sorts: images, feature maps, tokens, a mask, integers, a scalar, an empty one and NaN."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3, padding=1)
        self.embed = nn.Embedding(20, 12)
        self.cell = nn.Linear(12, 12)
        self.head = nn.Linear(12 + 6, 10)

    def forward(self, images: Tensor, tokens: Tensor) -> Tensor:
        features = self.conv(images).relu()
        words = self.embed(tokens)
        state = words.mean(1)
        for _ in range(3):
            state = self.cell(state).tanh()
        attach(tokens, self, "tokens")
        attach(tokens > 9, self, "mask")
        attach(features.square().mean(), self, "energy")
        attach(features[:, :0], self, "empty")
        attach(features[:, 0] / 0 * 0, self, "broken")
        attach(features, self, "features")
        return self.head(torch.cat([state, features.mean((2, 3))], 1))


def record_kept(logdir: Path, run: str = "kept") -> None:
    """A run that keeps tensors of many shapes whole, at every second of its steps."""
    torch.manual_seed(0)
    model, digits = Curious(), load_digits()
    chosen = [torch.randint(len(digits), (KEPT_BATCH,)) for _ in range(KEPT_STEPS)]
    keep = Keep("*", "*:input", "*:param", samples=4, log_freq=2)
    with watching(model, logdir, run, keep=keep):
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        for at in chosen:
            optimizer.zero_grad()
            tokens = digits[at].images.flatten(1)[:, ::4].mul(10).long().clamp(0, 19)
            functional.cross_entropy(model(digits[at].images, tokens), digits[at].labels).backward()
            optimizer.step()


def record_short(logdir: Path, run: str = "short", *, steps: int = 2) -> None:
    """A run of few steps that keeps the output of module `0.a`. Each sample is of a category of its own."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Sequential(OrderedDict(a=nn.Linear(4, 4))))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watching(model, logdir, run, keep=Keep("0.a:output")) as watcher:
        for _ in range(steps):
            optimizer.zero_grad()
            watcher.samples(["cat", "dog", "owl"])
            model(torch.randn(3, 4)).square().mean().backward()
            optimizer.step()


def record_long_names(logdir: Path, run: str = "long-names") -> None:
    """Modules with names of a hundred letters, which differ at the end only."""
    model = nn.Sequential()
    for number in range(2):
        model.add_module(f"{'WWMm_' * 20}{number}", nn.Sequential(nn.Linear(2, 2)))
    with watching(model, logdir, run, keep=Keep("*", "*:input")):
        model(torch.ones(3, 2)).sum().backward()


def record_many_kept(logdir: Path, run: str = "many-kept") -> None:
    """A run that keeps the outputs of `MANY_CALLS` modules."""
    torch.manual_seed(0)
    model = Deep()
    with watching(model, logdir, run, keep=Keep("layers.*", samples=2)):
        train(model, [(torch.randn(8, 4),)] * 2, mean_square)


def _role(kind: TensorKind) -> Role:
    return "param" if kind == "parameter" else "attached"


def record_dependent(logdir: Path, run: str = "dependent") -> None:
    """A run with a dependency graph: `x` and `weight` lead to `hidden`, and that to `loss`; nothing uses `spare`.

    Its steps 0 and 10 have the label `train`, step 20, where `spare` is not kept, has `eval`. The two samples of `loss`
    are a cat and a dog.
    """
    names: dict[str, TensorKind] = {
        "x": "input",
        "weight": "parameter",
        "spare": "parameter",
        "hidden": "intermediate",
        "loss": "loss",
    }
    tensors = {
        name: NamedTensor("spare" if name == "spare" else "", None, _role(kind), name, kind)
        for name, kind in names.items()
    }
    edges = TensorEdge(0, 3, False), TensorEdge(1, 3, True), TensorEdge(3, 4, True)
    graph = TensorGraph(tuple(tensors.values()), edges)
    writer = RecordWriter(logdir / run)
    records: list[Record] = [SESSION, GRAPH, SERIES, *(frame(step) for step in (0, 10, 20))]
    for record in records:
        writer.write(record)
    for step in (0, 10, 20):
        losses = np.array([step, 2.5], np.float32)
        arrays = [
            KeptArray(
                key=tensors["loss"].key,
                dtype="float32",
                shape=(4,),
                batch_dim=0,
                samples=(0, 3),
                values=np.frombuffer(losses.tobytes(), np.uint8),
                statistics=np.array([1, 2, 3], np.float32),
                categories=("cat", "dog"),
                kind="loss",
            ),
            *(
                KeptArray(
                    tensors[name].key, "float32", (2, 3), None, (), np.zeros(24, np.uint8), None, kind=names[name]
                )
                for name in ("hidden", "weight", "spare")
                if (name, step) != ("spare", 20)
            ),
        ]
        reasons = ("loss above 3",) if step == 10 else ()
        label = "eval" if step == 20 else "train"
        writer.keep(KeptStep(step, 1_000.0 + step, None, together(*arrays), label, reasons, graph), 1 << 30)
    writer.close()


class Trunk(nn.Module):
    """A layer, an activation and a head, the layer under a name of choice."""

    def __init__(self, layer: str, classes: int) -> None:
        super().__init__()
        self.layer = layer
        self.add_module(layer, nn.Linear(4, 8))
        self.act = nn.ReLU()
        self.head = nn.Linear(8, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.act(self.get_submodule(self.layer)(x)))


SWEEP_STEPS = 16


def record_sweep(logdir: Path, run: str = "sweep") -> None:
    """Four runs of a model: `base`; `again`, which is equal; `sparse`, every fifth step; `other`, with other names."""
    for name, layer, classes, every in (
        ("base", "trunk", 3, 1),
        ("again", "trunk", 3, 1),
        ("sparse", "trunk", 3, 5),
        ("other", "stem", 2, 1),
    ):
        torch.manual_seed(0)
        model = Trunk(layer, classes)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2 if name == "sparse" else 0.1)
        options: dict[str, Any] = {"backend": "record", "logdir": logdir / run, "run": f"net_{name}", "verbose": False}
        clock = ("epoch", lambda _, step: step / 4)
        with watch(model, log_freq=every, time_log=clock, name="net", **options) as watcher:
            for step in range(SWEEP_STEPS):
                optimizer.zero_grad()
                loss = model(torch.linspace(-1, 1, 32).reshape(8, 4) + step / 10).square().mean()
                loss.backward()
                optimizer.step()
                watcher.log({"loss": loss.item(), "tokens": (step + 1) * (20 if name == "sparse" else 10)})
