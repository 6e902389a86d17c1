"""Finds masks of padding that are the wrong way round: padding is attended to, and tokens are hidden.

The evidence is that an attention hides as many places as have a token, and sees as many as are padded, at each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import operations
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Flags, finding, named
from torchgraph_explorer.schema import Series

Floats = npt.NDArray[np.float64]

_Padding: TypeAlias = "tuple[tuple[int | None, ...], Floats, Floats]"
"""The sizes of an input of tokens; how many places it has at each step; and how many of them are padded, `[steps]`."""

HIDDEN = "key_padding_mask"
"""Part of the names of arguments of torch's attention that say which keys are hidden."""

AS_MANY = 1e-5
"""Largest relative difference, which is rounding, between the number of keys with some weight and that of padded
places, where all weights were looked at."""

LEAST_TOKENS = 3
"""Fewest rows of an embedding of tokens. One of two rows is of flags, which may well be 0 where there is no padding."""


def padding_mask_inverted(evidence: Evidence) -> Iterator[Finding]:
    """An attention hides as many places as have a token, and sees as many as are padded with zeros, at each step."""
    paddings = [(shape, *_padding(evidence, column)) for column, shape in _tokens(evidence)]
    found = next(chain(_by_argument(evidence, paddings), _by_weights(evidence, paddings)), None)
    if found is not None:
        yield found


def _by_argument(evidence: Evidence, paddings: list[_Padding]) -> Iterator[Finding]:
    """Report a `key_padding_mask` that a module is handed, with `True` or minus infinity where keys are hidden.

    The number of padded places has to vary from step to step.
    """
    for column in evidence.of_kind("value", "input"):
        mask, info = evidence.series[column], evidence.places.tensor(evidence.series[column])
        if HIDDEN not in mask.path or info is None:
            continue
        hidden = _hidden(evidence, column, is_flag=info.dtype == "bool")
        candidates = [(places, padded) for shape, places, padded in paddings if shape == info.shape]
        rows = np.flatnonzero(np.isfinite(sum((places for places, _ in candidates), hidden)))
        is_right = any((hidden == padded)[rows].all() for _, padded in candidates)
        for places, padded in candidates:
            is_known = len(rows) >= LEAST_ROWS and len(np.unique(padded[rows])) > 1
            if is_known and not is_right and (hidden == places - padded)[rows].all():
                yield _report(evidence, mask, rows, share=float(np.mean(padded[rows] / places[rows])))


def _hidden(evidence: Evidence, column: int, *, is_flag: bool) -> Floats:
    """How many keys a mask hides, `[steps]`; NaN where not all of its elements were measured.

    A mask of flags hides a key where it is `True`, another one where it is minus infinity.
    """
    count, sampled, zeros, never = (
        evidence.column(name, column).astype(np.float64) for name in ("count", "sampled", "zeros", "negative_infinity")
    )
    is_whole = count == sampled + never  # only finite elements are sampled
    return np.where(is_whole, count - zeros if is_flag else never, np.nan)


def _tokens(evidence: Evidence) -> Iterator[tuple[int, tuple[int | None, ...]]]:
    """The columns of inputs `[samples, length]` of embeddings of tokens, with their shapes."""
    rows = {weight.module.name: weight.info.shape[0] or 0 for weight in evidence.places.weights() if weight.info.shape}
    for column in evidence.of_kind("value", "input"):
        module, info = evidence.series[column].module, evidence.places.tensor(evidence.series[column])
        is_embedding = "Embedding" in evidence.places.class_of(module) and rows.get(module, 0) >= LEAST_TOKENS
        if is_embedding and info is not None and len(info.shape) == 2 and "int" in info.dtype:
            yield column, info.shape


def _padding(evidence: Evidence, column: int) -> tuple[Floats, Floats]:
    """How many places tokens have at each step, and how many of them have the token 0; NaN where it is not known."""
    count, sampled, zeros = (evidence.column(name, column).astype(np.float64) for name in ("count", "sampled", "zeros"))
    return np.where(count == sampled, count, np.nan), zeros


def _by_weights(evidence: Evidence, paddings: list[_Padding]) -> Iterator[Finding]:
    """Report an attention between the modules that gives weight to as many keys as are padded, also to later ones."""
    seen = [(row, found) for row, found in operations(evidence, "attention") if np.isfinite(found.numbers[::2]).all()]
    for module in dict.fromkeys(found.module for _, found in seen):
        attentions = [(row, found) for row, found in seen if found.module == module]
        rows = np.array([row for row, _ in attentions])
        keys, later = (np.array([found.numbers[at] for _, found in attentions]) for at in (2, 0))
        length = float(attentions[0][1].before[1])
        shares = [(padded / places)[rows] for shape, places, padded in paddings if shape[1] in {None, int(length)}]
        is_right = any(_are_as_many(keys, length * (1 - share)).any() for share in shares)
        for share in shares:
            is_some = (share > 0).all() and (share < 1).all() and (later > 0).all()
            if is_some and not is_right and _are_as_many(keys, length * share).all():
                yield _report(evidence, module, rows, share=float(share.mean()))


def _are_as_many(keys: Floats, expected: Floats) -> Flags:
    """At which steps the number of keys is the expected one, up to rounding."""
    found: Flags = np.abs(keys - expected) < AS_MANY * expected
    return found


def _report(evidence: Evidence, at: Series | str, rows: npt.NDArray[np.intp], *, share: float) -> Finding:
    """The finding at a mask or a module, where this share of the places is padded."""
    module = at if isinstance(at, str) else at.module
    return finding(
        evidence,
        "padding-mask-inverted",
        "warning",
        at=at,
        rows=rows,
        numbers={"padded": share},
        text=f"The attention of {named(module)} sees as many places as are padded with 0, which are {share:.0%} of "
        "all, and hides as many as have a token: the padding mask is the wrong way round.",
        advice="`key_padding_mask` has to be `True` where there is padding: `tokens == 0`, or `~mask` if the mask is 1 "
        "where there are tokens. With `masked_fill`, fill where there is padding.",
    )
