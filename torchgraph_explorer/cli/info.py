"""`torchgraph info`."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import TYPE_CHECKING, Any

from torchgraph_explorer.cli.options import given, open_given
from torchgraph_explorer.cli.printing import shown
from torchgraph_explorer.errors import RecordError, TorchgraphWarning

if TYPE_CHECKING:
    from torchgraph_explorer.record.model_record import ModelRecord
    from torchgraph_explorer.record.run_record import RunRecord
    from torchgraph_explorer.record.tensors.reading import Kept


def add_command(commands: Any) -> None:
    """Register the command."""
    description = "Print what a run contains."
    parser = commands.add_parser("info", help=description, description=description)
    parser.add_argument(
        "run", type=given, metavar="RUN", help="folder or URL of a run, or a folder with exactly one run"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(act=_info)


def _info(options: argparse.Namespace) -> None:

    warnings.simplefilter("ignore", TorchgraphWarning)  # the warnings are part of the output
    facts = run_facts(open_given(options.run))
    print(json.dumps(facts, indent=2) if options.json else _as_text(facts))


def run_facts(run: RunRecord) -> dict[str, Any]:
    """What `torchgraph info` prints about a run, as plain values."""
    return {
        "run": run.name,
        "path": run.path,
        "bytes": run.bytes,
        "first_write": run.first_write,
        "last_write": run.last_write,
        "models": [_model_facts(run.model(name)) for name in run.models],
        "warnings": list(run.warnings),
    }


def _model_facts(model: ModelRecord) -> dict[str, Any]:
    steps, known = model.steps, [graph for graph in model.graph_ids.tolist() if graph >= 0]
    graph = model.graphs[known[-1]] if known else model.graphs[-1] if model.graphs else None
    kept, refusal = _kept(model)
    return {
        "model": model.name,
        "class_name": model.session.class_name,
        "steps": len(steps),
        "first_step": int(steps[0]) if len(steps) else None,
        "last_step": int(steps[-1]) if len(steps) else None,
        "series": len(model.series),
        "calls": len(graph.calls) if graph else 0,
        "edges": len(graph.edges) if graph else 0,
        "graphs": len(model.graphs),
        "sessions": len(model.sessions),
        "kept_steps": len(kept.steps) if kept else 0,
        "kept_tensors": len(kept.series) if kept else 0,
        "finished": model.finished is not None,
        "stopped": model.has_stopped,
        "notes": [*model.notes, *(model.finished.notes if model.finished else ()), *refusal],
    }


def _kept(model: ModelRecord) -> tuple[Kept | None, tuple[str, ...]]:
    """What was kept of a model, or why that cannot be read."""
    try:
        return model.kept, ()
    except RecordError as refusal:
        return None, (f"what was kept of tensors cannot be read: {refusal}",)


def _as_text(facts: dict[str, Any]) -> str:
    lines = [
        f"run          {facts['run']}",
        f"path         {facts['path']}",
        f"size         {facts['bytes']:,} bytes",
        f"first write  {_moment(facts['first_write'])}",
        f"last write   {_moment(facts['last_write'])}",
    ]
    for model in facts["models"]:
        span = f" ({model['first_step']} to {model['last_step']})" if model["steps"] else ""
        lines += [
            "",
            f"model        {model['model']} (class {model['class_name']})",
            f"steps        {model['steps']:,}{span}",
            f"series       {model['series']:,}",
            f"calls        {model['calls']:,}",
            f"edges        {model['edges']:,}",
            f"graphs       {model['graphs']:,}",
            *_kept_lines(model),
            f"state        {_state(model)}",
            *(f"note         {note}" for note in model["notes"]),
        ]
    lines += [f"warning      {warning}" for warning in facts["warnings"]]
    return "\n".join(map(shown, lines))


def _state(model: dict[str, Any]) -> str:
    if model["finished"]:
        return "finished"
    return "ended without closing: its process is gone" if model["stopped"] else "open, or ended without closing"


def _kept_lines(model: dict[str, Any]) -> list[str]:
    steps, tensors = model["kept_steps"], model["kept_tensors"]
    return [f"kept whole   {tensors:,} tensors at {steps:,} steps"] if steps else []


def _moment(seconds: float) -> str:
    if not seconds:
        return "not yet"
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):  # a year that cannot be formatted
        return f"{seconds:g} seconds after 1970"
