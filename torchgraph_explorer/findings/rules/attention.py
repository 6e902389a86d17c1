"""Finds attention whose logits grow until its softmax picks a single key.

Fused attention shows no logits, so their scale is estimated from those of the recorded queries and keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, held, named
from torchgraph_explorer.schema import Series

Floats = npt.NDArray[np.float64]

LARGE = 10.0
"""Least root mean square of large logits, as it would be if queries and keys were independent of each other."""

GROWN = 5.0
"""Least ratio of large logits to those of the first recorded steps."""

HELD = 0.1
"""Least share of the recorded steps, up to the last one, at which the logits are large."""

# Names of modules that make the queries; that normalise queries or keys; and that make queries and keys together.
_QUERY = re.compile(r"^(q|wq|query|queries|to_q|q_proj|q_lin|q_linear|query_proj|linear_q|w_q|fc_q)$")
_NORMALISED = re.compile(r"^((q|k|query|key|qk)_?(layer)?_?norm|norm_?(q|k|query|key))$")
_BOTH = re.compile(r"^(qkv|qk|c_attn|query_key_value|to_qkv|to_qk|in_proj|qkv_proj|wqkv|w_qkv|attn_qkv)$")


def attention_logits_growing(evidence: Evidence) -> Iterator[Finding]:
    """The logits of an attention, estimated as root mean square of queries times that of keys, are large and grew."""
    for at, module, logits in _logits(evidence):
        rows = np.flatnonzero(np.isfinite(logits))
        if len(rows) < LEAST_ROWS:
            continue
        early = float(np.median(logits[rows[: max(LEAST_ROWS, len(rows) // 10)]]))
        kept = held(logits[rows] > max(LARGE, GROWN * early), evidence.steps[rows], share=HELD)
        if kept is None:
            continue
        most = float(logits[rows[kept]].max())
        found = finding(
            evidence,
            "attention-logits-growing",
            "warning",
            at=at if module == at.module else module,
            rows=rows[kept],
            numbers={"logits": most, "early_logits": early},
            text=f"The logits of the attention in {named(module)} have grown from {early:.3g} to {most:.3g}, as "
            "estimated from the scale of its queries and keys. A softmax of such logits picks one key and passes "
            "hardly any gradient.",
            advice="Normalise queries and keys (QK-norm), lower the learning rate, warm it up, or clip the gradient.",
        )
        yield replace(found, call=_call_of(evidence, at, module))


def _call_of(evidence: Evidence, at: Series, module: str) -> int | None:
    """The call of `module` that the call of the series `at` happened in; the call of `at` if the graph lacks it."""
    places = evidence.places
    number = places.numbered(at.module, at.call)
    around = (places.calls[outer] for outer in places.ancestors(number)) if number is not None else ()
    return next((call.call for call in around if call.module == module), at.call)


def _logits(evidence: Evidence) -> Iterator[tuple[Series, str, Floats]]:
    """Each attention as a series of its queries, its module, and the root mean square of its logits, `[steps]`.

    Those that normalise queries or keys are left out: their logits are bounded. Queries and keys may be made by one
    layer, by two, or by the `in_proj_weight` of a `MultiheadAttention`.
    """
    names = (name.rpartition(".") for name in evidence.places.modules)
    bounded = {parent for parent, _, last in names if _NORMALISED.match(last.lower())}
    for column in evidence.of_kind("value", "output"):
        series = evidence.series[column]
        parent, _, last = series.module.rpartition(".")
        if parent in bounded:
            continue
        if series.path == "output" and _BOTH.match(last.lower()):
            yield series, parent, evidence.rms[:, column] ** 2
        elif series.path == "output" and _QUERY.match(last.lower()):
            key = _key_of(evidence, series, last)
            if key is not None:
                yield series, parent, evidence.rms[:, column] * evidence.rms[:, key]
    for column in evidence.of_kind("value", "param"):
        series = evidence.series[column]
        taken = evidence.find(series.module, 0, "input", "input[0]")
        info = evidence.places.tensor(series)
        if series.path == "in_proj_weight" and taken is not None and info is not None and info.shape[-1]:
            scale = evidence.rms[:, column] * np.sqrt(info.shape[-1]) * evidence.rms[:, taken]
            yield series, series.module, scale**2


def _key_of(evidence: Evidence, query: Series, last: str) -> int | None:
    """The column of the keys that belong to a `query` series of the layer `last`: the same name with `k` for `q`."""
    for letter, other in (("query", "key"), ("queries", "keys"), ("q", "k")):
        if letter in last:
            name = last.replace(letter, other)
            return evidence.find(query.module.removesuffix(last) + name, query.call, "output", query.path)
    return None
