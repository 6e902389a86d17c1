"""The blocks of code and the commands of a page of documentation, and what a reader has when it begins."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

BEFORE = """
import warnings
import torch
from torch import nn
from torchgraph_explorer import TorchgraphWarning, watch
from torchgraph_explorer.demo import DigitsNet

def train(model, steps=1):
    for _ in range(steps):
        model(torch.rand(2, 1, 8, 8)).sum().backward()

warnings.simplefilter("error", TorchgraphWarning)
model, current_epoch = DigitsNet(), 0.0
with watch(model, backend="record", logdir="runs", run="2026-11-21_08-43-04", verbose=False) as watcher:
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(51):
        optimizer.zero_grad()
        model(torch.rand(2, 1, 8, 8)).square().mean().backward()
        optimizer.step()
    watcher.log({"loss": 0.5})
del optimizer
"""
"""What the examples take for granted: a model, its training, and a run that was recorded."""

GIVEN = {
    "a model that two optimizers update": """
from torchgraph_explorer import open_run
both = nn.ModuleDict({"actor": nn.Linear(2, 2), "critic": nn.Linear(2, 1)})
optimizers = {name: torch.optim.Adam(part.parameters()) for name, part in both.items()}
with watch(both, log_freq=1, backend="record", logdir="runs", run="both", verbose=False):
    for name in ("actor", "critic") * 3:
        inputs = torch.rand(4, 2)
        both["critic"](both["actor"](inputs) if name == "actor" else inputs).sum().backward()
        optimizers[name].step()
        optimizers[name].zero_grad()
model = open_run("runs/both").model()
[series] = model.find("critic", role="output", kind="value")
""",
    "three runs with a logged loss": """
for seed in range(3):
    model = DigitsNet()
    with watch(model, backend="record", logdir="runs", run=f"seed-{seed}", verbose=False) as watcher:
        train(model, steps=2)
        watcher.log({"loss": seed})
""",
    "a LightningModule": """
import lightning

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def training_step(self, batch, _index):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

module, data = Module(), torch.utils.data.DataLoader(torch.rand(8, 2), batch_size=4)
""",
    "a model and data for the Trainer": """
from transformers import BertConfig, BertForSequenceClassification, TrainingArguments
small = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
model = BertForSequenceClassification(small)
data = [{"input_ids": torch.randint(1, 9, (4,)), "labels": torch.tensor(at % 2)} for at in range(8)]
arguments = TrainingArguments(output_dir="trainer", max_steps=2, report_to="none", save_strategy="no", use_cpu=True)
""",
    "a Keras model": """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
images, labels = torch.rand(8, 4).numpy(), torch.randint(3, (8,)).numpy()
""",
    "a model with the layers of a large one": """
from collections import OrderedDict
layers = nn.Sequential(*(nn.Linear(2, 2) for _ in range(32)))
body = nn.Sequential(OrderedDict(embed_tokens=nn.Linear(2, 2), layers=layers))
model = nn.Sequential(OrderedDict(model=body, lm_head=nn.Linear(2, 2)))
""",
    "a model with adapters": """
from collections import OrderedDict
model = nn.Sequential(OrderedDict(lora_A=nn.Linear(8, 2), lora_B=nn.Linear(2, 8)))
""",
    "a model with a layer4": """
from collections import OrderedDict
model = nn.Sequential(OrderedDict(layer3=nn.Linear(2, 2), layer4=nn.Linear(2, 2)))
""",
}
"""What a block takes for granted besides, by what the line before it says: `<!-- given: NAME -->`."""

BLOCK = re.compile(r"^```(?P<language>\S*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
REMARK = re.compile(r"<!-- (given|not run): (.+) -->$")
FILE = re.compile(r"# (\w+\.py)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        language: As it is written behind the fence.
        given: The key of `GIVEN` that the line before names, or nothing.
        not_run: Why it is not run, as the line before says, or nothing.
        file: The name that its first line gives it, if it is to be saved, or nothing.
    """

    language: str
    code: str
    given: str = ""
    not_run: str = ""
    file: str = ""


def blocks(page: Path) -> Iterator[Block]:
    """All blocks of `page`, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        line_before = text[: match.start()].rstrip("\n").rpartition("\n")[2]
        remark, file = REMARK.match(line_before), FILE.match(match["code"])
        said = {} if remark is None else {remark[1].replace(" ", "_"): remark[2]}
        yield Block(match["language"], match["code"], **said, file="" if file is None else file[1])


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def python_blocks(page: Path) -> list[Block]:
    """The Python code that is to be run."""
    return [block for block in blocks(page) if block.language == "python" and not block.not_run]


def script_of(page: Path) -> str:
    """The whole Python code of `page`, with what it takes for granted."""
    return "\n".join([BEFORE, *(GIVEN.get(block.given, "") + block.code for block in python_blocks(page))])


def outputs(page: Path) -> list[str]:
    """What `page` says that its Python code prints: a block without a language, right behind one."""
    return [
        block.code for before, block in pairwise(blocks(page)) if block.language == "" and before in python_blocks(page)
    ]


def commands(page: Path) -> list[list[str]]:
    """The words of each command that `page` has in a block."""
    lines = "".join(block.code for block in blocks(page) if block.language == "sh").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]
