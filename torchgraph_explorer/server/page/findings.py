"""What findings name, so that a page has it: their first steps, and their tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.server.page.choice import Tensor

MOST_FIRST = 20
"""Findings whose steps and tensors come before others: the first root causes in the list."""

Json = dict[str, Any]


def first_frames(model: ModelRecord, judged: Json) -> list[int]:
    """The frames at which root causes were seen first; `judged` is the answer of `api/findings`.

    A rule of the user's own may name a step after the last recorded one, which has no frame.
    """
    frames = [int(np.searchsorted(model.steps, one["step"])) for one in _roots(judged)]
    return [frame for frame in frames if frame < len(model)]


def named_tensors(judged: Json) -> set[Tensor]:
    """The tensors of root causes."""
    return {(one["module"], one["call"], one["path"]) for one in _roots(judged) if one["path"] is not None}


def _roots(judged: Json) -> Iterator[Json]:
    yield from [one for one in judged["findings"] if not one["causes"]][:MOST_FIRST]
