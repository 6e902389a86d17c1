"""Finds latents of a variational autoencoder that say nothing of the sample.

The evidence is the root mean squares of their means and of the logarithms of their variances, which bound their
divergence from the prior.
"""

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
"""Least divergence from the prior, in nats, of all latents of a sample together that are in use. The divergence is the
most information about the sample that they can carry."""

HELD = 0.5
"""Least share of the recorded steps, up to the last one, at which the divergence is smaller than that."""

LEAST_STEPS = 200
"""Fewest steps of training. Many healthy models come close to the prior in their first hundred, and leave it again."""

_MEAN = re.compile(r"^(.*_)?(mu|mean)(_.*)?$")
"""Names of layers that give means. The layer beside one that gives spreads has the same name with one of `_SPREADS`."""

_SPREADS = (
    *("logvar", "log_var", "logv", "lv", "ln_var", "lnvar", "logsigma", "log_sigma", "logstd", "log_std"),
    *("var", "sigma"),
)
"""What the names of layers that give logarithms of variances or standard deviations have in place of `mu` or `mean`.
Many give a logarithm the name of a variance. Where such outputs are 0 for all samples, they tell nothing, whatever they
are."""


class _Latents(NamedTuple):
    """The columns of the outputs of a layer of means and of one of logarithms of variances, for the same latents."""

    mean: int
    spread: int


def posterior_collapse(evidence: Evidence) -> Iterator[Finding]:
    """The latents have means near 0 and variances near 1 for all samples, so the decoder is given noise."""
    if not len(evidence) or int(evidence.steps[-1]) < LEAST_STEPS:
        return
    for latents in _latents(evidence):
        nats = _divergence(evidence, latents)
        rows = np.flatnonzero(np.isfinite(nats))
        kept = held(nats[rows] < LITTLE, evidence.steps[rows], share=HELD)
        if kept is not None and not _are_actions(evidence):
            yield _report(evidence, evidence.series[latents.mean], rows[kept], nats=float(nats[rows[-1]]))


def _are_actions(evidence: Evidence) -> bool:
    """Whether the model gives fewer elements for each sample than it is given: then the latents may be actions.

    A decoder gives as many elements as its sample has. Where no output is known, as for a model that returns its loss,
    they are taken for latents.
    """
    outputs = [sample_size(output.info) for output in trained_outputs(evidence)]
    inputs = [
        evidence.places.tensor(evidence.series[column])
        for column in evidence.of_kind("value", "input")
        if not evidence.series[column].module
    ]
    given = [sample_size(info) for info in inputs if info is not None and "float" in info.dtype]
    return bool(outputs and given) and max(outputs) < min(given)


def _latents(evidence: Evidence) -> Iterator[_Latents]:
    """The latents of the model: by the names of the layers that give them, then by what is done with their outputs.

    A module with weights has to take both outputs. A policy has a mean and a spread of its actions, too, but nothing in
    the network takes these.
    """
    by_name = dict.fromkeys(_by_name(evidence))
    yield from by_name
    reported = {evidence.series[column].module for latents in by_name for column in latents}
    for latents in _by_use(evidence):
        if not {evidence.series[column].module for column in latents} & reported:
            yield latents


def _by_use(evidence: Evidence) -> Iterator[_Latents]:
    """Outputs of two layers that take the same tensors and give equal shapes, which the model also returns.

    The training loop needs them for the divergence.
    """
    places = evidence.places
    outputs = [column for column in evidence.of_kind("value", "output") if evidence.series[column].module == ""]
    given: dict[frozenset[int], list[int]] = {}
    for number, call in enumerate(places.calls):
        column = evidence.find(call.module, 0, "output", "output")
        is_layer = places.is_leaf(number) and call.call == 0 and bool(places.modules[call.module].params)
        if column is not None and is_layer and any(_are_same(evidence, column, output) for output in outputs):
            given.setdefault(places.taken.get(number, frozenset()), []).append(column)
    for columns in given.values():
        first, *others = columns
        infos = [places.tensor(evidence.series[column]) for column in columns]
        if len(others) != 1 or infos[0] is None or infos[1] is None or infos[0].shape != infos[1].shape:
            continue
        modules = [evidence.series[column].module for column in columns]
        if _are_decoded(evidence, modules[0], modules[1]):
            yield _Latents(first, others[0])


def _are_same(evidence: Evidence, first: int, second: int) -> bool:
    """Whether two series have equal statistics at all steps, so that they are taken for one tensor."""
    return all(
        np.array_equal(evidence.column(name, first), evidence.column(name, second), equal_nan=True)
        for name in ("mean", "std", "count")
    )


def _by_name(evidence: Evidence) -> Iterator[_Latents]:
    """Outputs of pairs of modules whose names are those of means and spreads, such as `fc_mu` and `fc_logvar`."""
    for name, other in named_latents(evidence).items():
        means, spreads = (evidence.find(module, 0, "output", "output") for module in (name, other))
        if means is not None and spreads is not None and _are_decoded(evidence, name, other):
            yield _Latents(means, spreads)


def named_latents(evidence: Evidence) -> dict[str, str]:
    """The modules that give means, by their names, and the ones beside them that give spreads."""
    found = {}
    for name in evidence.places.called:
        parent, dot, last = name.rpartition(".")
        match = _MEAN.match(last)
        before, _, after = (part or "" for part in match.groups()) if match else ("", "", "")
        others = [f"{parent}{dot}{before}{spread}{after}" for spread in _SPREADS] if match else []
        other = next((one for one in others if one in evidence.places.called), None)
        if other is not None:
            found[name] = other
    return found


def _are_decoded(evidence: Evidence, mean: str, spread: str) -> bool:
    """Whether a module with parameters takes the outputs of both modules."""
    places = evidence.places
    wanted = {places.numbered(mean, 0), places.numbered(spread, 0)}
    return any(
        wanted <= {*before} and places.modules[places.calls[call].module].total_params
        for call, before in places.sources.items()
    )


def _divergence(evidence: Evidence, latents: _Latents) -> Floats:
    """The divergence of the latents of a sample from the prior, in nats, in the mean over the samples, `[steps]`.

    That of a normal distribution from the standard one is half of the square of its mean and, for variances near 1, a
    quarter of the square of the logarithm of its variance.
    """
    info = evidence.places.tensor(evidence.series[latents.mean])
    size = sample_size(info) if info else 1
    found: Floats = size * (evidence.rms[:, latents.mean] ** 2 / 2 + evidence.rms[:, latents.spread] ** 2 / 4)
    return found


def _report(evidence: Evidence, at: Series, rows: npt.NDArray[np.intp], *, nats: float) -> Finding:
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
