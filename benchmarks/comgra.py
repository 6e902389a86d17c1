"""Named tensors kept by us and by Comgra: processor time and bytes.

Run it with `python -m benchmarks comgra`; it needs the network. Comgra gets an environment of its own from PyPI that
shares torch with this one.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.children import NotMeasured, done, left
from benchmarks.keeping import BATCH, LAYERS, WIDTH
from benchmarks.peers import Peer, environment
from benchmarks.tables import Cell, Options, Table, main, spread

COMGRA = Peer("comgra", ("comgra==0.11.5",), "named tensors")
FEW = 5
"""Samples of the batch."""


def tables(options: Options) -> Iterator[Table]:
    """The same named tensors."""
    with tempfile.TemporaryDirectory() as folder:
        rows: list[Sequence[Cell]] = []
        reason = ""
        try:
            pythons = {"torchgraph": sys.executable, "comgra": str(environment(COMGRA, Path(folder, "environment")))}
            for samples in (FEW, BATCH):
                for keeper, python in pythons.items():
                    steps = 200 if keeper == "torchgraph" else (12 if samples == FEW else 4) * (1 + options.full)
                    rows.append(measured(keeper, samples, steps, python=python))
        except NotMeasured as fault:
            reason = f" Not measured: {fault}."
        yield Table(
            f"Input, target, loss and the outputs of {LAYERS} layers kept at every step, with their gradients: "
            f"MLP of {LAYERS} × {WIDTH}, batch of {BATCH}",
            ("", "samples", "plain step, ms", "kept step, ms", "ratio", "kB a kept step", "bytes a number"),
            rows,
            "Processor time of all threads, median and quartiles; plain and kept steps take turns in one process. What "
            "is written at the end is shared out among the steps. Both keep the samples and the mean, the standard "
            "deviation and the largest magnitude over the batch. Comgra also keeps statistics of the parameters, which "
            "it cannot leave out." + reason,
        )


def measured(keeper: str, samples: int, steps: int, *, python: str) -> Sequence[Cell]:
    """A row of the table.

    Raises:
        NotMeasured: It failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "benchmarks.keeping", keeper, str(samples), str(steps)]
        told: dict[str, Any] = json.loads(done(command, cwd=Path(folder)).splitlines()[-1])
        size = left(Path(folder)) / told["steps"]
    kept = np.array(told["kept"]) + told["rest"] / told["steps"]
    ratios = (kept / np.array(told["plain"])).tolist()
    return [
        keeper,
        samples,
        spread(told["plain"]) / 1e-3,
        spread(kept.tolist()) / 1e-3,
        spread(ratios),
        size / 1e3,
        size / numbers(samples),
    ]


def numbers(samples: int) -> int:
    """Numbers that are kept of a step: values and gradients of the layers, values of input and target, and the loss."""
    return (2 * LAYERS + 2) * (samples + 3) * WIDTH + 2


if __name__ == "__main__":
    main(tables, __doc__)
