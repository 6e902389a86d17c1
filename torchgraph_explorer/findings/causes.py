"""Which findings follow from others, and in which order all findings are listed.

Causes come before effects. In a training, that order is: inputs and initial weights, then the size of the updates,
then activations and gradients, then NaN and infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchgraph_explorer.finding import SEVERITIES, Finding
from torchgraph_explorer.findings.places import Places

_SETUP = (
    "zero-init",
    "bad-init-scale",
    "input-not-normalised",
    "no-zero-grad",
    "gradients-cleared",
    "weight-decay-dominates",
    "softmax-over-batch",
    "normalised-over-batch",
    "batch-as-sequence",
    "view-for-transpose",
    "constant-input",
    "normalised-alone",
    "optimizer-recreated",
    "updated-twice",
    "update-undone",
    "logits-before-nll",
    "targets-out-of-range",
    "targets-broadcast",
    "loss-of-mean",
    "targets-not-scaled",
    "dropout-on-output",
    "loss-negated",
    "loss-unbounded",
    "input-outlier",
    "one-class-batches",
    "single-class",
    "padding-mask-inverted",
    "betas-swapped",
    "attention-saturated",
    "softmax-wrong-dimension",
    "targets-shifted-twice",
    "label-smoothing-extreme",
    "class-weights-inverted",
    "class-left-out",
    "samples-left-out",
)
_LARGE = (*_SETUP, "update-too-large", "exploding-gradient", "exploding-activation", "attention-logits-growing")
_LEFT_OUT = ("no-gradient", "unused-module", "not-in-optimizer", "frozen-by-accident")
_SILENT = (
    *_SETUP,
    *_LEFT_OUT,
    "symmetric-units",
    "collapse",
    "update-too-small",
    "update-lost-to-rounding",
    "vanishing-gradient",
    "dead-units",
    "saturated-activation",
    "constant-output",
    "dropout-extreme",
    "softmax-before-loss",
    "activation-before-loss",
    "learning-rate-gone",
    "loss-scale-loop",
    "imbalanced-branches",
    "expert-imbalance",
    "clipping-always",
    "clipping-after-step",
    "normalisation-in-eval",
    "training-in-eval-mode",
    "batch-of-one",
)

FOLLOWS: dict[str, tuple[str, ...]] = {
    "symmetric-units": ("zero-init",),
    "collapse": (
        *_LARGE,
        "dead-units",
        "saturated-activation",
        "constant-output",
        "symmetric-units",
        "identical-modules",
    ),
    "update-too-large": (*_SETUP, "exploding-gradient", "imbalanced-branches", "loss-spike"),
    "exploding-gradient": (*_SETUP, "update-too-large", "imbalanced-branches"),
    "exploding-activation": (*_SETUP, "update-too-large", "exploding-gradient", "imbalanced-branches"),
    "overflow-ahead": _LARGE,
    "loss-scale-loop": (*_LARGE, "overflow-ahead"),
    "saturated-activation": _LARGE,
    "dead-units": _LARGE,
    "attention-logits-growing": (*_SETUP, "update-too-large", "exploding-gradient", "exploding-activation"),
    "clipping-always": ("bad-init-scale", "input-not-normalised", "no-zero-grad", "exploding-gradient"),
    "imbalanced-branches": (*_SETUP, "update-too-large", "exploding-gradient", "exploding-activation"),
    "expert-imbalance": (*_SETUP, "update-too-large", "exploding-gradient"),
    "vanishing-gradient": (
        *_SETUP,
        "exploding-gradient",
        "saturated-activation",
        "dead-units",
        "update-too-large",
        "dropout-extreme",
        "attention-logits-growing",
        "imbalanced-branches",
        "overflow-ahead",
    ),
    "unused-module": ("expert-imbalance",),
    "no-gradient": (
        "expert-imbalance",
        "zero-init",
        "normalised-alone",
        "constant-input",
        "dead-units",
        "constant-output",
    ),
    "constant-output": (*_LARGE, "dead-units", "saturated-activation"),
    "update-too-small": (
        "zero-init",
        "no-gradient",
        "bad-init-scale",
        "single-class",
        "gradients-cleared",
        "learning-rate-gone",
        "clipping-always",
        "frozen-by-accident",
        "not-in-optimizer",
        "weight-decay-dominates",
        "vanishing-gradient",
        "dead-units",
        "constant-output",
        "update-lost-to-rounding",
        "loss-scale-loop",
        "softmax-before-loss",
    ),
    "loss-not-falling": (*_LARGE, *_SILENT, "loss-spike", "overflow-ahead", "repeated-batch"),
    "loss-diverging": (*_LARGE, *_SILENT, "loss-spike", "overflow-ahead"),
    "loss-spike": (*_LARGE, "overflow-ahead"),
    "nan": (*_LARGE, "overflow-ahead", "loss-diverging", "loss-spike"),
}
"""The kinds that each kind can follow from."""

_OF_THE_MODEL = (
    "dropout-extreme",
    "norm-momentum",
    "future-visible",
    "answers-in-inputs",
    "softmax-before-loss",
    "activation-before-loss",
    "missing-nonlinearity",
    "teacher-trained",
    "identical-modules",
    "positions-over-batch",
    "state-detached",
)
"""Kinds whose reason is how the model is built."""

_PHASES = {
    **dict.fromkeys((*_SETUP, *_LEFT_OUT, *_OF_THE_MODEL), 0),
    **dict.fromkeys(("exploding-gradient", "vanishing-gradient", "clipping-always"), 2),
    **dict.fromkeys(("update-too-large", "update-too-small", "update-lost-to-rounding", "loss-scale-loop"), 3),
    "learning-rate-gone": 3,
    "nan": 4,
}
"""At which point of a step each kind arises.

0 is before the step, 1 in the forward pass (all kinds that are not listed), 2 in the backward pass, and 3 at the
update. If two findings begin at the same step, only the one with the lower or an equal number can be the cause. NaN
comes last, because the other rules look only at the steps before it.
"""

_OF_THE_WHOLE_RUN = frozenset({"loss-not-falling", "update-too-small", "unused-module", "no-gradient"})
"""Kinds that are judged over the whole run, and dated to its first step. Their cause may be dated to any step."""


def in_order(findings: Sequence[Finding], places: Places) -> tuple[Finding, ...]:
    """The findings in the order in which they are listed, with their causes.

    Root causes come first, each with what follows from it behind it. They are sorted by the worst severity among them
    and what follows, then by step and place.
    """

    def place(one: Finding) -> tuple[int, int, int]:
        return one.step, -SEVERITIES.index(one.severity), places.order(one.module, one.call)

    by_time = sorted(findings, key=place)
    roots: list[Finding] = []
    folded: list[tuple[Finding, Finding]] = []
    for one in by_time:
        root = _root(one, by_time, places)
        if root is None:
            roots.append(one)
        else:
            folded.append((one, root))
    worst = {id(one): one.severity for one in roots}
    for one, root in folded:
        worst[id(root)] = max(worst[id(root)], one.severity, key=SEVERITIES.index)
    ordered = sorted(roots, key=lambda one: (-SEVERITIES.index(worst[id(one)]), *place(one)))
    return tuple(
        told
        for root in ordered
        for told in (root, *(replace(one, causes=(root,)) for one, cause in folded if cause is root))
    )


def _root(one: Finding, among: Sequence[Finding], places: Places) -> Finding | None:
    """The first of the findings that `one` follows from, directly or through others; None if it is a root."""
    seen, here = {id(one)}, one
    while True:
        before = next((other for other in among if id(other) not in seen and _follows(here, other, places)), None)
        if before is None:
            return None if here is one else here
        seen.add(id(before))
        here = before


def _follows(one: Finding, other: Finding, places: Places) -> bool:
    if one.kind == other.kind:
        return _is_elsewhere(one, other, places)
    if other.severity == "info" or (one.kind not in _OF_THE_WHOLE_RUN and _time(other) > _time(one)):
        return False
    is_mutual = one.kind in FOLLOWS.get(other.kind, ())  # then the earlier one is the cause
    return other.kind in FOLLOWS.get(one.kind, ()) and not (is_mutual and _time(other) == _time(one))


def _time(one: Finding) -> tuple[int, int]:
    return one.step, _PHASES.get(one.kind, 1)


_SPREADING = ("dead-units", "saturated-activation", "exploding-activation", "overflow-ahead", "zero-init")
"""Kinds that spread from module to module with the data: a finding follows from one of its kind at an earlier module,
if that began no later."""

_TOGETHER = (
    *_LEFT_OUT,
    "attention-logits-growing",
    "attention-saturated",
    "batch-as-sequence",
    "dropout-extreme",
    "imbalanced-branches",
    "norm-momentum",
    "normalisation-in-eval",
    "normalised-alone",
    "softmax-over-batch",
    "softmax-wrong-dimension",
    "symmetric-units",
    "view-for-transpose",
)
"""Kinds that many modules have for the same reason. One finding stands for all: the first in time, and of several at
the same step, the first in the order of execution."""


def _is_elsewhere(one: Finding, other: Finding, places: Places) -> bool:
    """Whether `one` follows from `other`, a finding of the same kind at an earlier module."""
    if other.severity == "info" != one.severity:
        return False
    here, before = (places.order(each.module, each.call) for each in (one, other))
    if one.kind in _SPREADING:
        return other.step <= one.step and before < here
    return one.kind in _TOGETHER and (other.step, before) < (one.step, here)
