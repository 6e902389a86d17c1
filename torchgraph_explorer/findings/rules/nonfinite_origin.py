"""Tells where NaN or infinity came from, by what the live training saw of it in a step that was not recorded.

By the next recorded step, an update has mostly carried it to all parameters, so the record alone cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import named, quoted
from torchgraph_explorer.schema import NotFinite, NotFiniteOrigin, Role, Series


def record_each(before: int) -> str:
    """The advice to record every step, as soon as the training comes to `before`, the last one that was finite."""
    schedule = f"lambda step: step >= {before}" if before > 0 else "1"
    return f"Train again with `log_freq={schedule}`: that records each step, and shows the module."


def with_origin(evidence: Evidence, recorded: Finding, seen: NotFinite, *, before: int) -> Finding:
    """The finding of a recorded step, moved to where `seen`, of a step before it, says that NaN or infinity began.

    `before` is the last recorded step that was finite, or -1. The finding is returned as it is if nobody looked for the
    origin then, or if all parameters already were not finite.
    """
    origin = seen.origin
    if origin is None:
        return recorded
    if origin.kind == "input":
        return _at(recorded, origin, _first_of(evidence, "input", origin.names), **_of_input(origin, seen.step))
    if origin.kind == "gradient":
        return _in_backward(evidence, recorded, origin, step=seen.step, before=before)
    if origin.count == 0:
        return _at(recorded, origin, _first_of(evidence, "output", ()), **_of_forward(seen.step, before=before))
    if origin.count == origin.total > 1 or not origin.names:  # an earlier update has carried it to all of them
        return recorded
    return _in_parameter(evidence, recorded, origin, step=seen.step)


def _at(recorded: Finding, origin: NotFiniteOrigin, at: Series | None, *, text: str, advice: str) -> Finding:
    """The finding `recorded`, at another series if that is known, with a new text and advice."""
    moved = recorded if at is None else replace(recorded, module=at.module, call=at.call, path=at.path)
    numbers = {**recorded.evidence, "not_finite_then": float(origin.count), "looked_at_then": float(origin.total)}
    return replace(moved, text=text, advice=advice, evidence=numbers)


def _of_input(origin: NotFiniteOrigin, step: int) -> dict[str, str]:
    """Text and advice for NaN or infinity that came in with the data."""
    names = f"`{quoted(origin.names[0])}`" if origin.names else "An input"
    return {
        "text": f"{names} of the model was not finite at step {step}: NaN or infinity came in with the data.",
        "advice": "Check the data for missing values, and what the training loop computes before it calls the model.",
    }


def _of_forward(step: int, *, before: int) -> dict[str, str]:
    """Text and advice for NaN or infinity that the forward pass made."""
    return {
        "text": f"At step {step}, the inputs of the model and all its parameters were finite, and its output was not: "
        "the forward pass made NaN or infinity.",
        "advice": "Look for a logarithm or root of zero or less, a division by zero, an exponential of large values, "
        f"or a value beyond the range of the dtype. {record_each(before)}",
    }


def _in_parameter(evidence: Evidence, recorded: Finding, origin: NotFiniteOrigin, *, step: int) -> Finding:
    """The finding at the first parameter, in the order of execution, of those that were not finite."""
    name = min(origin.names, key=lambda name: evidence.places.order(_owner(name)))
    what = f"the parameter `{quoted(_last(name))}` of {named(_owner(name))} was not finite"
    others = f", and neither were {origin.count - 1} others" if origin.count > 1 else ""
    return _at(
        recorded,
        origin,
        _parameter(evidence, name),
        text=f"At step {step}, before its update, {what}{others}; {_rest(origin.total - origin.count)}.",
        advice="An update made it so, or other code that writes to it. Look at its gradients and updates in the steps "
        "before, at the state and epsilon of the optimizer, and at what else writes to it.",
    )


def _in_backward(evidence: Evidence, recorded: Finding, origin: NotFiniteOrigin, *, step: int, before: int) -> Finding:
    """The finding at the last parameter, in the order of execution, of those whose gradients were not finite.

    If all of them were not, the loss made them so, and the finding is at the model's output.
    """
    advice = (
        "Look for a root, norm, or logarithm at zero, whose derivative is infinite, in the loss too: add a small "
        f"constant inside it. `torch.autograd.set_detect_anomaly(True)` names the operation. {record_each(before)}"
    )
    if not origin.names or origin.count == origin.total:
        text = f"The gradients of all parameters were not finite at step {step}. They came so from the loss."
        return _at(recorded, origin, _first_of(evidence, "output", ()), text=text, advice=advice)
    name = max(origin.names, key=lambda name: evidence.places.order(_owner(name)))
    return _at(
        recorded,
        origin,
        _parameter(evidence, name),
        text=f"At step {step}, the gradients of {origin.count} of {origin.total} parameters were not finite, up to "
        f"that of `{quoted(_last(name))}` of {named(_owner(name))} in the order of execution: the backward pass made "
        "NaN or infinity there, or in what is computed right after it.",
        advice=advice,
    )


def _first_of(evidence: Evidence, role: Role, paths: Sequence[str]) -> Series | None:
    """The series of an input or output of the model: that of the first of these paths, or else the first one."""
    found = [one for one in evidence.series if (one.module, one.role, one.kind) == ("", role, "value")]
    return next((one for one in found if one.path in paths[:1]), found[0] if found else None)


def _parameter(evidence: Evidence, name: str) -> Series | None:
    """The series of the values of a parameter with this qualified name; None if it was not recorded."""
    key = _owner(name), "param", _last(name), "value"
    return next((one for one in evidence.series if (one.module, one.role, one.path, one.kind) == key), None)


def _rest(count: int) -> str:
    """The clause that so many other parameters were finite."""
    return {0: "the model has no other parameter", 1: "the other parameter was finite"}.get(
        count, f"the other {count} parameters were finite"
    )


def _owner(name: str) -> str:
    """The module of a parameter with this qualified name."""
    return name.rpartition(".")[0]


def _last(name: str) -> str:
    """The name of a parameter in its module."""
    return name.rpartition(".")[2]
