"""The last batch that a training has kept whole, as arguments of the model."""

from __future__ import annotations

import re
from ast import literal_eval
from typing import Any

import torch
from torch import Tensor, nn

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.exploring.inputs import Arguments
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.tensors.reading import KeptInfo
from torchgraph_explorer.schema import TensorInfo

ADVICE = (
    "Pass a batch: watcher.explore(inputs). To use the last one that was kept, watch with "
    "keep=Keep(':input'), and call explore after a step that was kept."
)
_PARTS = re.compile(r"\[(\d+|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\]")


def last_kept_batch(record: ModelRecord, model: nn.Module) -> Arguments:
    """What `model` was given in the last step whose inputs were kept, of the samples that were.

    Raises:
        OptionError: There is no such step, or not all arguments of it are known.
    """
    for step in reversed(record.kept.steps.tolist()):
        tensors = {one.series.path: one for one in record.kept_at(step).tensors if _is_input(one)}
        if tensors:
            return _arguments(record, model, step, tensors)
    raise OptionError(f"No batch of the model was kept yet. {ADVICE}")


def _is_input(one: KeptInfo) -> bool:
    return one.series.module == "" and one.series.role == "input" and one.series.call == 0


def _arguments(record: ModelRecord, model: nn.Module, step: int, tensors: dict[str, KeptInfo]) -> Arguments:  # noqa: PLR0917  # all of one thing
    missing = [info.path for info in _inputs(record, step) if info.path not in tensors]
    if missing:
        raise OptionError(f"Of the batch of step {step}, {', '.join(missing)} was not kept. {ADVICE}")
    if len({one.samples for one in tensors.values() if one.batch_dim is not None}) > 1:
        raise OptionError(
            f"Of the batch of step {step}, other samples were kept of one input than of another. {ADVICE}"
        )
    device = next((one.device for one in model.parameters()), torch.device("cpu"))
    positional: dict[Any, Any] = {}
    named: dict[Any, Any] = {}
    for path, one in tensors.items():
        place = [_key(part) for part in _PARTS.findall(path)]
        if f"input{''.join(f'[{key!r}]' for key in place)}" != path or not place:
            raise OptionError(f"{path} of the batch of step {step} cannot be put together again. {ADVICE}")
        _put(positional if isinstance(place[0], int) else named, place, _tensor(record, one, step).to(device))
    args = _listed(positional) or []
    if not isinstance(args, list):
        raise OptionError(f"Not all arguments of the batch of step {step} are tensors. {ADVICE}")
    return Arguments(tuple(args), {name: _listed(one) for name, one in named.items()})


def _inputs(record: ModelRecord, step: int) -> tuple[TensorInfo, ...]:
    """The tensors that the model was given, as its graph has them; none if that is not known."""
    known = dict(zip(record.steps.tolist(), record.graph_ids.tolist(), strict=True))
    graphs = [graph for graph in record.graphs if graph.id == known.get(step)]
    return next((call.inputs for graph in graphs for call in graph.calls if (call.module, call.call) == ("", 0)), ())


def _tensor(record: ModelRecord, one: KeptInfo, step: int) -> Tensor:
    values = torch.from_numpy(record.tensor(one.series, step).values.copy())
    return values.to(getattr(torch, one.dtype))


def _key(part: str) -> int | str:
    found: int | str = literal_eval(part)
    return found


def _put(into: dict[Any, Any], place: list[int | str], tensor: Tensor) -> None:
    for key in place[:-1]:
        into = into.setdefault(key, {})
    into[place[-1]] = tensor


def _listed(value: Any) -> Any:
    """Lists in place of what has numbers for keys."""
    if not isinstance(value, dict):
        return value
    inner = {key: _listed(one) for key, one in value.items()}
    return [*inner.values()] if set(inner) == {*range(len(inner))} and inner else inner
