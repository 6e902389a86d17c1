"""The latents of a variational autoencoder that say nothing of the sample."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.outputs import sample_size, trained_outputs
from torchgraph_explorer.findings.rules.rule import finding, held, named
from torchgraph_explorer.schema import Series

Floats = npt.NDArray[np.float64]

LITTLE = 0.1
"""Nats of divergence from the prior, of all latents of a sample together: they carry at most as much information."""

HELD = 0.5
"""Share of the recorded steps, up to the last one."""

LEAST_STEPS = 200
"""Steps of training. Many healthy ones come close to the prior in their first hundred, and leave it again."""

_MEAN = re.compile(r"^(.*_)?(mu|mean)(_.*)?$")
"""Names of the layer with the means. That of the logarithms of the variances is the same with `_SPREADS` instead."""

_SPREADS = ("logvar", "log_var", "logsigma", "log_sigma", "logstd", "log_std")


class _Latents(NamedTuple):
    """The outputs of the layers with means and with logarithms of variances, as columns."""

    mean: int
    spread: int


def posterior_collapse(evidence: Evidence) -> Iterator[Finding]:
    """Means near 0 and variances near 1 for all samples: a decoder that is given them is given noise.

    The divergence of a normal distribution from the standard one is half of the square of its mean, and, near it, a
    quarter of the square of the logarithm of its variance.
    """
    if not len(evidence) or int(evidence.steps[-1]) < LEAST_STEPS:
        return
    for one in _latents(evidence):
        nats = _divergence(evidence, one)
        rows = np.flatnonzero(np.isfinite(nats))
        kept = held(nats[rows] < LITTLE, share=HELD)
        if kept is not None and not _are_actions(evidence):
            yield _told(evidence, evidence.series[one.mean], rows[kept], nats=float(nats[rows[-1]]))


def _are_actions(evidence: Evidence) -> bool:
    """Whether what comes out has fewer elements a sample than what goes in: a value of actions, as of a policy's.

    What is decoded has as many. A loss that the model returns tells nothing.
    """
    outputs = [sample_size(one.info) for one in trained_outputs(evidence)]
    inputs = [
        evidence.places.tensor(evidence.series[one])
        for one in evidence.of_kind("value", "input")
        if not evidence.series[one].module
    ]
    given = [sample_size(one) for one in inputs if one is not None and "float" in one.dtype]
    return bool(outputs and given) and max(outputs) < min(given)


def _latents(evidence: Evidence) -> Iterator[_Latents]:
    """Those of layers beside each other whose outputs a module with weights takes together, by name or by use.

    A policy has a mean and a spread of its actions, too, but nothing in the network takes these.
    """
    named = {*_by_name(evidence)}
    yield from named
    taken = {evidence.series[one].module for pair in named for one in pair}
    for one in _by_use(evidence):
        if not {evidence.series[each].module for each in one} & taken:
            yield one


def _by_use(evidence: Evidence) -> Iterator[_Latents]:
    """Two layers that take the same, give as much, and whose outputs are the model's, too, for their divergence."""
    places = evidence.places
    outputs = [one for one in evidence.of_kind("value", "output") if evidence.series[one].module == ""]
    given: dict[frozenset[int], list[int]] = {}
    for number, call in enumerate(places.calls):
        column = evidence.find(call.module, 0, "output", "output")
        is_layer = places.is_leaf(number) and call.call == 0 and bool(places.modules[call.module].params)
        if column is not None and is_layer and any(_are_same(evidence, column, one) for one in outputs):
            given.setdefault(places.taken.get(number, frozenset()), []).append(column)
    for columns in given.values():
        first, *others = columns
        infos = [places.tensor(evidence.series[one]) for one in columns]
        if len(others) != 1 or infos[0] is None or infos[1] is None or infos[0].shape != infos[1].shape:
            continue
        names = [evidence.series[one].module for one in columns]
        if _are_decoded(evidence, names[0], names[1]):
            yield _Latents(first, others[0])


def _are_same(evidence: Evidence, first: int, second: int) -> bool:
    return all(
        np.array_equal(evidence.column(name, first), evidence.column(name, second), equal_nan=True)
        for name in ("mean", "std", "count")
    )


def _by_name(evidence: Evidence) -> Iterator[_Latents]:
    for name in evidence.places.called:
        parent, dot, last = name.rpartition(".")
        match = _MEAN.match(last)
        if not match:
            continue
        before, _, after = (part or "" for part in match.groups())
        for spread in _SPREADS:
            other = f"{parent}{dot}{before}{spread}{after}"
            found = [evidence.find(each, 0, "output", "output") for each in (name, other)]
            if found[0] is not None and found[1] is not None and _are_decoded(evidence, name, other):
                yield _Latents(found[0], found[1])


def _are_decoded(evidence: Evidence, mean: str, spread: str) -> bool:
    places = evidence.places
    wanted = {places.numbered(mean, 0), places.numbered(spread, 0)}
    return any(
        wanted <= {*before} and places.modules[places.calls[call].module].total_params
        for call, before in places.sources.items()
    )


def _divergence(evidence: Evidence, one: _Latents) -> Floats:
    """Nats for each sample, at each row."""
    info = evidence.places.tensor(evidence.series[one.mean])
    latents = sample_size(info) if info else 1
    found: Floats = latents * (evidence.rms[:, one.mean] ** 2 / 2 + evidence.rms[:, one.spread] ** 2 / 4)
    return found


def _told(evidence: Evidence, at: Series, rows: npt.NDArray[np.intp], *, nats: float) -> Finding:
    return finding(
        evidence,
        "posterior-collapse",
        "warning",
        at=at,
        rows=rows,
        numbers={"nats": nats, "steps": len(rows)},
        text=f"The latents of {named(at.module)} have mean 0 and variance 1 for nearly all samples: they carry at most "
        f"{nats:.2g} nats about a sample, and what decodes them is given noise.",
        advice="Give the divergence (KL) less weight, or let its weight rise from 0 over the first epochs. Sum both "
        "parts of the loss over one sample: an error that is averaged over pixels counts too little beside a "
        "divergence that is summed over latents.",
    )
