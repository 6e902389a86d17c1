"""Architectures of `transformers`, small and with random weights: are they trained as unwatched, and what is found?

Run it with `python -m benchmarks.architectures`, which takes every 20th; `--full` takes all, for about an hour.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from benchmarks.tables import Cell, Options, Table, main
from torchgraph_explorer import open_run, watch

Batch: TypeAlias = "dict[str, Tensor]"
"""The keyword arguments of a model, with `labels`."""

STEPS = 60
LOGGED_EVERY = 2
EVERY = 20
"""Without `--full`, one of so many architectures is trained."""

MOST_PARAMETERS = 15_000_000
"""Larger ones, of which the small settings do not reach all sizes, take too long."""

MOST_SECONDS = 0.5
"""Of processor time a step. Slower ones are left out, too."""

BATCH, LENGTH, VOCABULARY, CLASSES, MASK = 16, 32, 128, 10, 3

SIZES = (
    dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "embedding_size", "image_size"), 32)
    | dict.fromkeys(("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff"), 64)
    | dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"), 2)
    | dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"), 4)
    | dict.fromkeys(("decoder_attention_heads", "num_experts", "num_local_experts", "n_routed_experts"), 4)
    | {"decoder_layers": 2, "num_key_value_heads": 2, "d_kv": 8, "head_dim": 8, "patch_size": 8}
    | {"moe_intermediate_size": 32, "max_position_embeddings": 64, "vocab_size": VOCABULARY, "num_channels": 3}
    | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
)
"""Settings that are whole numbers, by the names that they have in most configurations."""


@dataclass(frozen=True, slots=True)
class Task:
    """What architectures are trained for.

    Attributes:
        name: How the table calls it.
        models: The class of the model for each class of configurations.
        batch: Makes a batch for a model of this configuration.
        settings: Settings besides `SIZES`.
    """

    name: str
    models: Mapping[Any, Any]
    batch: Callable[[PretrainedConfig, torch.Generator], Batch]
    settings: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Trained:
    """What came of one architecture.

    Attributes:
        name: Its name.
        is_same: The watched training gave the same losses and the same parameters and buffers; None if another
            unwatched one did not, either.
        told: Its warnings and errors, by kind.
    """

    name: str
    is_same: bool | None
    told: Counter[str]


def tables(options: Options) -> Iterator[Table]:
    """For each task, how many architectures could be trained, and what came of them."""
    rows: list[list[Cell]] = []
    notes = []
    for task in tasks():
        trained = [*train_all(task, every=1 if options.full else EVERY)]
        warned = [one for one in trained if one.told]
        counts = len(trained), sum(one.is_same is True for one in trained), len(warned)
        rows.append([task.name, *map(str, counts)])
        notes += [f"{one.name} ({', '.join(sorted(one.told))})" for one in warned]
        notes += [f"{one.name} is not the same" for one in trained if one.is_same is False]
        notes += [f"{one.name} differs when it is trained twice unwatched" for one in trained if one.is_same is None]
    yield Table(
        title="Architectures of transformers, with small settings and random weights",
        columns=("task", "trained", "bit for bit as unwatched", "with a warning"),
        rows=rows,
        note=f"{STEPS} steps of AdamW, of which every {LOGGED_EVERY}nd is recorded. Python's own files and "
        f"scikit-learn's digits are learned. {'; '.join(notes)}",
    )


def tasks() -> tuple[Task, ...]:
    """All tasks."""
    text, images = _text(), _digits()

    def pieces(generator: torch.Generator) -> Tensor:
        begins = torch.randint(0, len(text) - LENGTH - 1, (BATCH,), generator=generator)
        return torch.stack([text[begin : begin + LENGTH] for begin in begins])

    def continued(_: PretrainedConfig, generator: torch.Generator) -> Batch:
        tokens = pieces(generator)
        return {"input_ids": tokens, "labels": tokens}

    def masked(_: PretrainedConfig, generator: torch.Generator) -> Batch:
        tokens = pieces(generator)
        is_masked = torch.rand(tokens.shape, generator=generator) < 0.15
        return {"input_ids": tokens.masked_fill(is_masked, MASK), "labels": tokens.masked_fill(~is_masked, -100)}

    def reversed_text(_: PretrainedConfig, generator: torch.Generator) -> Batch:
        tokens = pieces(generator)
        return {"input_ids": tokens, "labels": tokens.flip(1)}

    def judged(_: PretrainedConfig, generator: torch.Generator) -> Batch:
        tokens = pieces(generator)
        return {"input_ids": tokens, "labels": ((tokens == ord("e")).sum(1) > 2).long()}

    def drawn(config: PretrainedConfig, generator: torch.Generator) -> Batch:
        at = torch.randint(0, len(images[0]), (2 * BATCH,), generator=generator)
        size = getattr(config, "image_size", 32)
        shown = nn.functional.interpolate(images[0][at], size=size if isinstance(size, int) else size[0])
        channels = getattr(config, "num_channels", 3)
        return {"pixel_values": shown.expand(-1, channels, -1, -1).clone(), "labels": images[1][at]}

    auto = modeling_auto
    return (
        Task("continuing text", auto.MODEL_FOR_CAUSAL_LM_MAPPING, continued),
        Task("filling in text", auto.MODEL_FOR_MASKED_LM_MAPPING, masked),
        Task("reversing text", auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, reversed_text),
        Task("classifying text", auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING, judged, {"num_labels": 2}),
        Task("classifying digits", auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING, drawn, {"num_labels": CLASSES}),
    )


def train_all(task: Task, *, every: int) -> Iterator[Trained]:
    """Train those that can be made small, and learn from such a batch."""
    names = [name for name in sorted(CONFIG_MAPPING.keys()) if CONFIG_MAPPING[name] in task.models]
    for name in names[::every]:
        try:
            model = model_of(task, name)
            is_fit = model is not None and is_quick(model, task)
            unwatched = losses_of(deepcopy(model), task) if model is not None and is_fit else None
        except Exception:  # it needs other settings, other inputs, or a library
            continue
        if model is not None and unwatched is not None:
            is_same, told = watched(deepcopy(model), unwatched, task)
            is_known = is_same or are_equal(unwatched, losses_of(model, task))
            yield Trained(name, is_same if is_known else None, told)


def model_of(task: Task, name: str) -> nn.Module | None:
    """The architecture, small; None if it is still large."""
    settings = CONFIG_MAPPING[name]
    config = settings()
    shrink(config, {**SIZES, **task.settings})
    made = task.models[settings]
    torch.manual_seed(0)
    model: nn.Module = (made[0] if isinstance(made, (tuple, list)) else made)(config)
    return model.train() if sum(one.numel() for one in model.parameters()) <= MOST_PARAMETERS else None


def shrink(config: PretrainedConfig, sizes: Mapping[str, int], *, depth: int = 0) -> None:
    """Set the sizes of a configuration and of those within it."""
    for name, size in sizes.items():
        before = getattr(config, name, None)
        if (isinstance(before, int) and not isinstance(before, bool)) or name == "num_labels":
            with contextlib.suppress(Exception):
                setattr(config, name, size)
    for inner in [*vars(config).values()] if depth < 2 else ():
        if isinstance(inner, PretrainedConfig):
            shrink(inner, sizes, depth=depth + 1)


def is_quick(model: nn.Module, task: Task) -> bool:
    """Whether a step takes no more than `MOST_SECONDS`."""
    began, steps = time.thread_time(), 3
    losses_of(deepcopy(model), task, steps=steps)
    return time.thread_time() - began <= steps * MOST_SECONDS


def losses_of(
    model: nn.Module, task: Task, *, steps: int = STEPS, log: Callable[[float], object] | None = None
) -> list[Tensor]:
    """Train it, with the same batches and random numbers each time; returns losses, parameters and buffers."""
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)  # some models draw from it
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(**task.batch(model.config, generator)).loss  # type: ignore[arg-type]
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
        if log is not None:
            log(float(loss))
    return [*losses, *model.state_dict().values()]


def watched(model: nn.Module, unwatched: list[Tensor], task: Task) -> tuple[bool, Counter[str]]:
    """Train it as before, and watch it; returns whether all is the same, and the kinds of its warnings and errors."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        with watch(model, logdir=folder, log_freq=LOGGED_EVERY, backend="record", verbose=False) as watcher:
            found = losses_of(model, task, log=lambda loss: watcher.log({"loss": loss}))
        findings = open_run(str(watcher.run_dir)).model().findings()
    return are_equal(unwatched, found), Counter(one.kind for one in findings if one.severity != "info")


def are_equal(some: list[Tensor], others: list[Tensor]) -> bool:
    """Whether all tensors are the same to the last bit."""
    return all(torch.equal(one, other) for one, other in zip(some, others, strict=True))


def _text() -> Tensor:
    """The bytes of some of Python's own files."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:60]
    return torch.tensor(list(b"".join(file.read_bytes() for file in files))).clamp(max=VOCABULARY - 1)


def _digits() -> tuple[Tensor, Tensor]:
    """Scikit-learn's digits, `[n, 1, 8, 8]`, and which ones they are."""
    images, digits = load_digits(return_X_y=True)
    return torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16 - 0.3, torch.tensor(digits)


if __name__ == "__main__":
    main(tables, __doc__)
