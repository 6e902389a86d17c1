"""Writes kept_page.bin and kept_page.json, which the Python and the TypeScript tests both read.

Run `python -m tests.contracts.kept_page` after a change. kept_page.bin is the data of an exported page with kept
tensors; kept_page.json says what the server answers to the same questions, and what `selection.selected` gives where
neighbours are merged. Numbers that JSON does not have are texts.
"""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.kept import KeptArray, together
from tests.record.examples import GRAPH, SERIES, SESSION, frame
from tests.server.asking import unpack
from tests.server.pages import read_page
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import KeptStep, NamedTensor, Record, Series, TensorEdge, TensorGraph
from torchgraph_explorer.server.export import export_page
from torchgraph_explorer.server.pack import pack
from torchgraph_explorer.server.selection import selected, spans_of, summary
from torchgraph_explorer.server.tensors import (
    PARTS,
    WHAT,
    WantedTensor,
    line_answer,
    tensor_answer,
    tensor_graph_answer,
)

FILE = Path(__file__).with_suffix(".bin")
CONTENT = FILE.with_suffix(".json")

Array = npt.NDArray[Any]
Key = tuple[str, int | None, str, str, str]

OUTPUT: Key = ("fc", 0, "output", "output", "value")
KEYS: dict[str, Key] = {
    "floats with NaN": OUTPUT,
    "their gradient": ("fc", 0, "output", "output", "grad_norm"),
    "a later call": ("fc", 1, "output", "output", "value"),
    "complex": ("", None, "attached", "wave", "value"),
    "integers beyond float64": ("", None, "attached", "ids", "value"),
    "booleans": ("", None, "attached", "mask", "value"),
    "a scalar": ("", None, "attached", "loss", "value"),
    "an empty one": ("", None, "attached", "nothing", "value"),
}
STEPS = (0, 10, 20)
GRAPH_OF_TENSORS = TensorGraph(
    (NamedTensor("fc", 0, "output", "output", "intermediate"), NamedTensor("", None, "attached", "loss", "loss")),
    (TensorEdge(0, 1, True),),
)


def values_of(name: str, step: int) -> Array:
    """What is kept of a tensor at a step."""
    rng = np.random.default_rng((len(name), step))
    floats = rng.normal(size=(2, 3, 4)).astype(np.float32)
    if name == "floats with NaN":
        floats[0, 0] = (np.nan, np.inf, -np.inf, 0)
        return floats[:, : 2 + step // 10]  # it grows
    if name == "complex":
        return (floats[0] + 1j * floats[1]).astype(np.complex64)
    others: dict[str, Array] = {
        "integers beyond float64": np.array([2**53 + 1, -3, step], np.int64),
        "booleans": np.array([True, False, step > 0]),
        "a scalar": np.array(0.5 + step, np.float64),
        "an empty one": np.zeros((0, 3), np.float32),
    }
    return others.get(name, floats)


def kept_array(name: str, step: int) -> KeptArray:
    values, key = values_of(name, step), KEYS[name]
    kept = np.frombuffer(values.tobytes(), np.uint8)
    if key[0] == "":
        return KeptArray(key, str(values.dtype), values.shape, None, (), kept, None)
    statistics = np.arange(3 * values[0].size, dtype=np.float32)
    shape = (6, *values.shape[1:])
    return KeptArray(key, "float32", shape, 0, (1, 4), kept, statistics, categories=("cat", "dog"))


def write_kept_run(run_dir: Path) -> None:
    """A run with one of everything; one step lacks the first tensor, and one was asked for."""
    writer = RecordWriter(run_dir)
    records: list[Record] = [SESSION, GRAPH, SERIES, *map(frame, STEPS)]
    for record in records:
        writer.write(record)
    for step in STEPS:
        arrays = together(*(kept_array(name, step) for name in KEYS if step != 20 or name != "a later call"))
        reasons = ("loss above 3",) if step == 10 else ()
        writer.keep(KeptStep(step, 1_000.0 + step, 8.0, arrays, "odd", reasons, graph=GRAPH_OF_TENSORS), 1 << 30)
    writer.close()


def questions() -> list[dict[str, Any]]:
    """What the viewer may ask."""
    of = {name: dict(zip(("module", "call", "role", "path", "kind"), key, strict=True)) for name, key in KEYS.items()}
    whole = [
        {**of[name], "step": step, "at": ""}
        for name, step in product(KEYS, STEPS)
        if (name, step) != ("a later call", 20)
    ]
    first = of["floats with NaN"]
    more = [
        *({**first, "step": 10, "what": what, "at": ""} for what in WHAT[1:]),
        *({**of["complex"], "step": 0, "part": part, "at": "1:,2"} for part in PARTS),
        {**first, "step": 20, "at": "1,:,1:3"},
        {**first, "step": 20, "at": ":,2,0"},
    ]
    lines = [
        {**first, "step": 10, "over": over, "index": index}
        for over, index in product(("steps", "calls"), (None, "1,2,3"))
    ]
    lines += [{**first, "step": 10, "over": over, "index": None, "by": "category"} for over in ("steps", "calls")]
    asked = [*({"route": "tensor", **one} for one in (*whole, *more)), *({"route": "line", **one} for one in lines)]
    return [{"what": "values", "part": "abs", **one} for one in asked]


def answer_of(model: ModelRecord, asked: dict[str, Any]) -> dict[str, Any]:
    """What the server answers."""
    series = Series(-1, *(asked[name] for name in ("module", "call", "role", "path", "kind")))
    wanted = WantedTensor(series, asked["step"], what=asked["what"], part=asked["part"])
    if asked["route"] == "line":
        how = {name: asked[name] for name in ("index", "over", "by") if name in asked}
        found = line_answer(model, wanted, from_step=0, **how)
    else:
        found = tensor_answer(model, wanted, at=asked["at"], shrink=())
    meta, arrays = unpack(found)
    return {**meta, "arrays": {name: plain(values) for name, values in arrays.items()}}


def plain(values: Array) -> list[float | str]:
    """The numbers, flat."""
    return [one if math.isfinite(one) else str(one) for one in values.reshape(-1).astype(np.float64).tolist()]


def merged_cases() -> list[dict[str, Any]]:
    """Selections of more elements than may be sent."""
    values = np.random.default_rng(3).normal(size=(4, 9, 11)).astype(np.float32)
    values[0, 0, :3] = values[1, 4] = (np.nan,)
    values[2, 8, 10] = np.inf
    cases = []
    for at, shrink, most in ((":,:,:", (1, 2), 100), ("1,2:9,:", (1, 2), 20), (":,:,:", (0, 1, 2), 7)):
        found = selected(values, spans_of(at, values.shape), shrink=shrink, most=most)
        arrays = {name: plain(array) for name, array in found.arrays.items()}
        cases.append({"at": at, "shrink": shrink, "most": most, "factors": found.factors, "arrays": arrays})
    return [{"shape": values.shape, "values": plain(values), "summary": summary(values), "cases": cases}]


def files() -> tuple[bytes, str]:
    """The contents of the two files. What another Graphviz, release or rule would change is left out."""
    with TemporaryDirectory() as folder:
        write_kept_run(Path(folder, "page"))
        run = open_run(Path(folder, "page"))
        model = run.model()
        page = read_page(export_page(run, tensors=1, steps=1, series=0))
        with np.errstate(all="ignore"):
            answers = [{"asked": asked, "answer": answer_of(model, asked)} for asked in questions()]
        content = {
            "answers": answers,
            "graph": tensor_graph_answer(model, step=10, rank=None),
            "merged": merged_cases(),
        }
    one = {**page.model, "drawings": [], "findings": {**page.model["findings"], "findings": []}}
    meta = json.loads(json.dumps({**page.meta, "version": "", "explanations": [], "models": [one]}, sort_keys=True))
    return pack(meta, page.arrays), json.dumps(content, allow_nan=False) + "\n"


if __name__ == "__main__":
    binary, text = files()
    FILE.write_bytes(binary)
    CONTENT.write_text(text, encoding="utf-8")
