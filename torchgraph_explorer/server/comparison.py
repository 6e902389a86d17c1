"""`api/compare`: how two models differ. See http_api.md.

A comparison takes seconds for long runs, and up to about 500 MB of memory. So one is made at a time, and the last ones
are kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, TypeAlias

from torchgraph_explorer.comparison.matching import parse_rules
from torchgraph_explorer.comparison.models import Comparison
from torchgraph_explorer.comparison.report import as_json
from torchgraph_explorer.record.model_record import ModelRecord

MOST_KEPT = 16
"""Answers that are kept."""

MOST_LISTED = 512
"""The most entries of a list that are sent. Of the series, those that differ most are."""

MOST_RENAMES = 10_000
"""Characters of a rename map."""

Key: TypeAlias = "tuple[object, ...]"
Json = dict[str, Any]


class Comparisons:
    """The comparisons of a server. For many threads."""

    def __init__(self) -> None:
        """Begin with no comparison made."""
        self._lock = threading.Lock()
        self._answers: OrderedDict[Key, Json] = OrderedDict()

    def answer(self, key: Key, models: tuple[ModelRecord, ModelRecord], *, renames: str) -> Json:
        """How `models` differ, under `renames`. `key` changes with everything that the models hold.

        Raises:
            OptionError: `renames` is no rename map.
            RecordError: A run is gone.
        """
        rules = parse_rules(renames[:MOST_RENAMES])
        key = (*key, *((len(model), model.logged.blocks) for model in models), tuple(rules.items()))
        with self._lock:
            if key not in self._answers:
                found = Comparison(*models, rename=rules)
                self._answers[key] = as_json(found, most=MOST_LISTED, with_findings=False)
            self._answers.move_to_end(key)
            while len(self._answers) > MOST_KEPT:
                self._answers.popitem(last=False)
            return self._answers[key]
