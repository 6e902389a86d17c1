"""Masks of padding the wrong way round: what is padded is attended to, and what is not is hidden."""

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
"""Of sequences of tokens: their sizes, how many places there are at each step, and how many of them are padded."""

HIDDEN = "key_padding_mask"
"""How arguments of torch's attention are named that say which keys are hidden."""

AS_MANY = 1e-5
"""How near the number of keys with some weight comes to that of the padding, both as a share of the sequence: it is the
same where all weights were looked at."""

LEAST_TOKENS = 3
"""Rows of an embedding of tokens: one of two is of flags, which may well be 0 where there is no padding."""


def padding_mask_inverted(evidence: Evidence) -> Iterator[Finding]:
    """As many places are hidden as have a token, and as many are seen as are padded with zeros, at each step."""
    paddings = [(shape, *_padding(evidence, column)) for column, shape in _tokens(evidence)]
    found = next(chain(_by_argument(evidence, paddings), _by_weights(evidence, paddings)), None)
    if found is not None:
        yield found


def _by_argument(evidence: Evidence, paddings: list[_Padding]) -> Iterator[Finding]:
    """Torch's attention is handed a mask: of `True`, or of minus infinity, where keys are hidden."""
    for column in evidence.of_kind("value", "input"):
        one, info = evidence.series[column], evidence.places.tensor(evidence.series[column])
        if HIDDEN not in one.path or info is None:
            continue
        hidden = _hidden(evidence, column, is_flag=info.dtype == "bool")
        of = [(places, padded) for shape, places, padded in paddings if shape == info.shape]
        rows = np.flatnonzero(np.isfinite(sum((places for places, _ in of), hidden)))
        is_right = any((hidden == padded)[rows].all() for _, padded in of)
        for places, padded in of:
            is_told = len(rows) >= LEAST_ROWS and len(np.unique(padded[rows])) > 1 and not is_right
            if is_told and (hidden == places - padded)[rows].all():
                yield _told(evidence, one, rows, share=float(np.mean(padded[rows] / places[rows])))


def _hidden(evidence: Evidence, column: int, *, is_flag: bool) -> Floats:
    """How many keys a mask hides at each step; NaN where only a sample of it was measured."""
    count, sampled, zeros, never = (
        evidence.column(name, column).astype(np.float64) for name in ("count", "sampled", "zeros", "negative_infinity")
    )
    is_whole = count == sampled + never  # only finite elements are sampled
    return np.where(is_whole, count - zeros if is_flag else never, np.nan)


def _tokens(evidence: Evidence) -> Iterator[tuple[int, tuple[int | None, ...]]]:
    """The columns of inputs of embeddings, of sequences of tokens, and their sizes."""
    sizes = {one.module.name: one.info.shape[0] or 0 for one in evidence.places.weights() if one.info.shape}
    for column in evidence.of_kind("value", "input"):
        one, info = evidence.series[column], evidence.places.tensor(evidence.series[column])
        is_embedding = "Embedding" in evidence.places.class_of(one.module) and sizes.get(one.module, 0) >= LEAST_TOKENS
        if is_embedding and info is not None and len(info.shape) == 2 and "int" in info.dtype:
            yield column, info.shape


def _padding(evidence: Evidence, column: int) -> tuple[Floats, Floats]:
    """How many places there are at each step, and how many of them have the token 0; NaN where that is not known."""
    count, sampled, zeros = (evidence.column(name, column).astype(np.float64) for name in ("count", "sampled", "zeros"))
    return np.where(count == sampled, count, np.nan), zeros


def _by_weights(evidence: Evidence, paddings: list[_Padding]) -> Iterator[Finding]:
    """A softmax between the modules gives weight to as many keys as are padded, and also to later ones."""
    seen = [(row, one) for row, one in operations(evidence, "attention") if np.isfinite(one.numbers).all()]
    for module in dict.fromkeys(one.module for _, one in seen):
        of = [(row, one) for row, one in seen if one.module == module]
        rows = np.array([row for row, _ in of])
        keys, later = (np.array([one.numbers[at] for _, one in of]) for at in (2, 0))
        length = float(of[0][1].before[1])
        shares = [(padded / places)[rows] for shape, places, padded in paddings if shape[1] in {None, int(length)}]
        is_right = any(_are_as_many(keys, length * (1 - share)).any() for share in shares)
        for share in shares:
            is_some = (share > 0).all() and (share < 1).all() and (later > 0).all()
            if is_some and not is_right and _are_as_many(keys, length * share).all():
                yield _told(evidence, module, rows, share=float(share.mean()))


def _are_as_many(keys: Floats, expected: Floats) -> Flags:
    found: Flags = np.abs(keys - expected) < AS_MANY * expected
    return found


def _told(evidence: Evidence, at: Series | str, rows: npt.NDArray[np.intp], *, share: float) -> Finding:
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
