"""The cost of other packages and of ours, with everything logged at every step.

Run it with `python -m benchmarks peers`; it needs the network. Each peer gets an environment of its own from PyPI that
shares what it can with this one: torch above all. Measured as in `benchmarks.overhead`, except that most of them cannot
be taken off a model again, so that two equal models take turns: one watched and one not.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from benchmarks.children import ROOT, Clock, NotMeasured, ask, done
from benchmarks.models import SUBJECTS
from benchmarks.tables import Cell, Options, Table, main, spread
from benchmarks.ways import WAYS

MODELS = ("deep", "resnet18", "transformer")
STEPS = 20
"""Steps of a training whose memory is measured."""

WITHOUT_AVX512 = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL"}
"""For numpy: its histograms use a sort with AVX-512, which is ten times slower on an AMD Zen 4."""

DOT = """\
#!{python}
import os, sys
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
import pygraphviz
sys.stdout.buffer.write(pygraphviz.AGraph(sys.stdin.read()).draw(format=sys.argv[1][2:], prog="dot"))
"""
"""Stands in for the program `dot`, which TorchExplorer calls once, with the Graphviz that comes with pygraphviz."""


@dataclass(frozen=True)
class Peer:
    """A way to watch, with our package or another one.

    Attributes:
        way: Its name in `benchmarks.ways`.
        needs: What to install; nothing if it runs in this environment.
        takes: What it looks at.
        suffix: What is added to its name in the table.
        settings: Environment variables.
    """

    way: str
    needs: tuple[str, ...]
    takes: str
    suffix: str = ""
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)


OURS = Peer("record", (), "parameters, inputs, outputs, and their gradients")
TORCHEXPLORER = Peer("TorchExplorer", ("torchexplorer==1.1.2",), OURS.takes)
PEERS = (
    Peer("torchlens", ("torchlens==2.36.1", "tensorboard"), "parameters, their gradients, outputs"),
    Peer("wandb.watch", ("wandb",), "parameters, their gradients"),
    Peer("trainscope", ("trainscope==1.8.1",), "parameters, their gradients, outputs"),
    Peer("add_histogram", ("tensorboard",), "parameters, their gradients"),
    Peer("add_histogram", ("tensorboard",), "the same", ", numpy without AVX-512", WITHOUT_AVX512),
    TORCHEXPLORER,
)


@dataclass(frozen=True)
class Costs:
    """The cost of a way to watch for one model: cells of the tables."""

    time: Cell
    wall: Cell
    memory: Cell
    disk: Cell


def tables(options: Options) -> Iterator[Table]:
    """Processor time, wall time, memory and disk."""
    found: dict[Peer, list[Costs]] = {}
    reasons: list[str] = []
    for peer in (OURS, *PEERS):
        try:
            found[peer] = measured(peer, reasons, repeats=4 if options.full else 2)
        except NotMeasured as reason:
            reasons.append(f"{peer.way} cannot be installed: {reason}.")
    names = [SUBJECTS[model]().name for model in MODELS]
    yield Table(
        "Everything logged at every step: processor time",
        ("", "looks at", *names),
        [[peer.way + peer.suffix, peer.takes, *(one.time for one in costs)] for peer, costs in found.items()],
        " ".join(["Ratios to the plain step: median and quartiles.", *reasons]),
    )
    threads = torch.get_num_threads()
    yield Table(
        f"Everything logged at every step: wall time with torch's default of {threads} thread{'s' * (threads > 1)}",
        ("", *names),
        [[peer.way + peer.suffix, *(one.wall for one in costs)] for peer, costs in found.items()],
        "Ratios to the plain step. What other threads and processes still have to do when a block ends is not in it.",
    )
    yield Table(
        "Everything logged at every step: memory and disk",
        ("", *(f"{name}, MB more" for name in names), *(f"{name}, kB a step" for name in names)),
        [
            [peer.way + peer.suffix, *(one.memory for one in costs), *(one.disk for one in costs)]
            for peer, costs in found.items()
        ],
        f"What {STEPS} steps add to the peak of the process that trains, and leave on the disk for each step; for "
        f"wandb.watch, beyond what a W&B run does in which nothing is watched.",
    )


def measured(peer: Peer, reasons: list[str], *, repeats: int) -> list[Costs]:
    """The cost for each model. If one cannot be measured, the reason is added to `reasons`.

    Raises:
        NotMeasured: It cannot be installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        python = str(environment(peer, Path(folder, "environment"))) if peer.needs else sys.executable
        found = []
        for model in MODELS:
            try:
                found.append(costs(peer, model, python=python, repeats=repeats))
            except NotMeasured as reason:
                reasons.append(f"{peer.way} on {SUBJECTS[model]().name}: {reason}.")
                found.append(Costs(*["failed"] * 4))
        return found


def costs(peer: Peer, model: str, *, python: str, repeats: int) -> Costs:
    """The cost for one model.

    Raises:
        NotMeasured: It fails.
    """
    asked = "logged ratios", peer.way, model
    nothing = "nothing in wandb" if WAYS[peer.way].in_wandb else "nothing"
    clocks: tuple[Clock, ...] = "processor", "wall"
    time, wall = (
        spread(ask(*asked, count=repeats, python=python, settings=peer.settings, clock=clock).told["logged"])
        for clock in clocks
    )
    plain = ask("memory", nothing, model, count=STEPS, python=python)
    watched = ask("memory", peer.way, model, count=STEPS, python=python, settings=peer.settings)
    more = float(watched.told["peak"] - plain.told["peak"])
    return Costs(time, wall, more, (watched.bytes - plain.bytes) / 1e3 / STEPS)


def environment(peer: Peer, folder: Path) -> Path:
    """The interpreter of a new environment with the peer and the packages of this environment.

    Raises:
        NotMeasured: It cannot be installed.
    """
    folder.mkdir()
    done([sys.executable, "-m", "venv", str(folder)], cwd=folder)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "shared.pth").write_text(f"{Path(torch.__file__).parents[1]}\n", encoding="utf-8")
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done([*install, "--constraint", str(ROOT / "constraints" / "dev.txt"), *peer.needs], cwd=folder)
    dot = folder / "bin" / "dot"
    dot.write_text(DOT.format(python=python), encoding="utf-8")
    dot.chmod(0o755)
    return python


if __name__ == "__main__":
    main(tables, __doc__)
