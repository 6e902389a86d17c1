"""Finds experts of which a few get nearly all samples.

The evidence is how many elements the modules of a list are given at each step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.schema import Module

LEAST_EXPERTS = 3
"""Fewest modules of a kind that are looked at."""

OFTEN = 0.5
"""Least share of the recorded steps at which experts get different numbers of elements."""

IN_USE = 0.4
"""Least share of the experts that is in effective use where the load is balanced. Their effective number is the
exponential of the entropy of their shares of the elements."""


def expert_imbalance(evidence: Evidence) -> Iterator[Finding]:
    """Of several modules of the same kind that are given different samples, a few get nearly all."""
    groups = _groups(evidence)
    inputs = _inputs(evidence) if groups else {}
    for parent, experts in groups.items():
        taken = np.stack([_taken(evidence, inputs.get(expert.name, [])) for expert in experts], axis=1)
        total = taken.sum(axis=1)
        rows = np.flatnonzero(total > 0)
        if len(rows) < 2 or not _are_routed(taken[rows]) or _are_in_turn(taken[rows]):
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
    """The effective number of experts over all of them, by how many elements each takes, `[steps, experts]`."""
    shares = taken.sum(axis=0) / taken.sum()
    positive = shares[shares > 0]
    return float(np.exp(-(positive * np.log(positive)).sum())) / len(shares)


def _groups(evidence: Evidence) -> dict[str, list[Module]]:
    """Modules that may be experts, by the name of the list or dictionary of modules that they are in.

    Those of a group have the same class and number of parameters, and at least one of them is called.
    """
    places = evidence.places
    groups: dict[tuple[object, ...], list[Module]] = {}
    for module in places.modules.values():
        parent, _, last = module.name.rpartition(".")
        if module.total_params and (last.isdecimal() or places.class_of(parent) == "ModuleDict"):
            groups.setdefault((parent, module.class_path, module.total_params), []).append(module)
    return {
        str(key[0]): members
        for key, members in groups.items()
        if len(members) >= LEAST_EXPERTS and any(module.name in places.called for module in members)
    }


def _inputs(evidence: Evidence) -> dict[str, list[int]]:
    """The columns of the first input of each module in all its calls, by the module's name."""
    found: dict[str, list[int]] = {}
    for column in evidence.of_kind("value", "input"):
        if (series := evidence.series[column]).path == "input[0]":
            found.setdefault(series.module, []).append(column)
    return found


def _taken(evidence: Evidence, columns: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How many elements these columns have together, `[steps]`."""
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = np.nansum(
        evidence.matrix("count")[:, columns].astype(np.float64), axis=1
    )
    return found


def _are_routed(taken: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> bool:
    """Whether a router deals samples to modules that take so many elements, `[steps, experts]`.

    Then the modules' shares differ and vary from step to step, or one gets nothing, while their sum stays about the
    same. The shares of layers that see an image at different sizes differ, too, but stay the same.
    """
    total = taken.sum(axis=1)
    shares = taken / total[:, None]
    differ = (shares.max(axis=1) > shares.min(axis=1)).mean() > OFTEN
    varies = bool((np.ptp(shares, axis=0) > 0).any() or (taken == 0).any())
    return bool(differ and varies and total.max() < 2 * np.median(total))


def _are_in_turn(taken: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> bool:
    """Whether modules that take so many elements, `[steps, experts]`, get the whole batch of a step or nothing of it.

    As heads of several tasks do, or parts of a network of which some are drawn at each step. It is not always the same
    ones that get it. Which steps are recorded decides how often each is seen.
    """
    get_it = taken > 0
    are_whole = ((taken == taken.max(axis=1, keepdims=True)) | ~get_it).all()
    return bool(are_whole and (get_it != get_it[0]).any())
