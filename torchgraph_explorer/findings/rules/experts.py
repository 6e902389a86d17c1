"""Experts of which a few get nearly everything."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.schema import Module

LEAST_EXPERTS = 3

OFTEN = 0.5
"""Share of the recorded steps at which their shares have to differ."""

IN_USE = 0.4
"""Experts in effective use, as a share of all: the exponential of the entropy of their shares."""


def expert_imbalance(evidence: Evidence) -> Iterator[Finding]:
    """Of several modules of the same kind that are given different samples, a few get nearly all."""
    groups = _groups(evidence)
    inputs = _inputs(evidence) if groups else {}
    for parent, experts in groups.items():
        taken = np.stack([_taken(evidence, inputs.get(one.name, [])) for one in experts], axis=1)
        total = taken.sum(axis=1)
        rows = np.flatnonzero(total > 0)
        if len(rows) < 2 or not _are_routed(evidence, taken[rows]):
            continue
        since = next((at for at in (0, len(rows) // 4, len(rows) // 2) if _used(taken[rows[at:]]) < IN_USE), None)
        if since is None:
            continue
        late = rows[since:]
        shares = taken[late].sum(axis=0) / total[late].sum()
        most = experts[int(shares.argmax())]
        yield finding(
            evidence,
            "expert-imbalance",
            "warning",
            at=parent,
            rows=late,
            numbers={
                "experts": len(experts),
                "in_use": _used(taken[late]) * len(experts),
                "largest_share": shares.max(),
                "smallest": shares.min(),
            },
            text=f"{named(most.name)} gets {shares.max():.0%} of what all {len(experts)} modules of its kind get. "
            f"{int((shares < 0.01).sum())} of them get less than 1%.",
            advice="Add a loss that balances the load, noise to the router's logits, or a capacity of each expert; "
            "lower the router's learning rate.",
        )


def _used(taken: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> float:
    """The share of the experts in effective use."""
    shares = taken.sum(axis=0) / taken.sum()
    some = shares[shares > 0]
    return float(np.exp(-(some * np.log(some)).sum())) / len(shares)


def _groups(evidence: Evidence) -> dict[str, list[Module]]:
    """Modules of one class with the same parameters in one list, or dictionary, of modules, by its name."""
    places = evidence.places
    groups: dict[tuple[object, ...], list[Module]] = {}
    for one in places.modules.values():
        parent, _, last = one.name.rpartition(".")
        if one.total_params and (last.isdecimal() or places.class_of(parent) == "ModuleDict"):
            groups.setdefault((parent, one.class_path, one.total_params), []).append(one)
    return {
        str(key[0]): members
        for key, members in groups.items()
        if len(members) >= LEAST_EXPERTS and any(one.name in places.called for one in members)
    }


def _inputs(evidence: Evidence) -> dict[str, list[int]]:
    """The columns of what each module is given first, in all its calls."""
    found: dict[str, list[int]] = {}
    for column in evidence.of_kind("value", "input"):
        if (one := evidence.series[column]).path == "input[0]":
            found.setdefault(one.module, []).append(column)
    return found


def _taken(evidence: Evidence, columns: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How many elements are in these columns at each step, all together."""
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = np.nansum(
        evidence.matrix("count")[:, columns].astype(np.float64), axis=1
    )
    return found


def _are_routed(evidence: Evidence, taken: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> bool:
    """Whether they share out the samples: each one's share varies or is nothing, and what all get together does not.

    The shares of layers that see an image at different sizes stay the same.
    """
    total = taken.sum(axis=1)
    shares = taken / total[:, None]
    differ = (shares.max(axis=1) > shares.min(axis=1)).mean() > OFTEN
    varies = bool((np.ptp(shares, axis=0) > 0).any() or (taken == 0).any())
    return bool(differ and varies and total.max() < 2 * np.median(total))
