"""The words for what is recorded, as types."""

from __future__ import annotations

from typing import Literal, TypeAlias

Role: TypeAlias = Literal["input", "output", "param", "attached", "edge"]
"""What a tensor is to a call."""

Kind: TypeAlias = Literal["value", "grad_norm", "grad", "optimizer_grad", "update", "update_ratio", "time", "memory"]
"""Which numbers a series has of its tensor or call."""

COSTS: frozenset[Kind] = frozenset(("time", "memory"))
"""Kinds of what calls cost rather than of what tensors hold: they differ between equal runs."""

SeriesKey: TypeAlias = "tuple[str, int | None, Role, str, Kind]"
"""Module, call, role, path and kind of a series, which identify it across sessions."""

Shape: TypeAlias = "tuple[int | None, ...]"
"""Sizes of a tensor; None for a dimension that varied between calls."""

NodeKind: TypeAlias = Literal["input", "output", "call", "attached"]
"""What a node of the module graph stands for."""

TensorKind: TypeAlias = Literal["input", "parameter", "intermediate", "target", "loss"]
"""What a named tensor is to the training."""

StepEnd: TypeAlias = Literal["update", "skipped", "pass", "mark", "unfinished"]
"""What ended a step; see `StepFacts.end`."""

OriginKind: TypeAlias = Literal["input", "parameter", "gradient"]
"""Where NaN or infinity was first seen; see `NotFiniteOrigin.kind`."""

OperationKind: TypeAlias = Literal[
    "view",
    "attention",
    "softmax",
    "single",
    "dropout",
    "position",
    "crosswise",
    "shift",
    "normalised",
    "labels",
    "several",
    "second",
    "copied",
    "ahead",
    "shared",
    "cancelling",
    "flat",
    "over",
    "divergence",
    "weights",
    "hidden",
    "trailing",
    "ends",
    "across",
    "twice",
    "outside",
    "two",
    "sign",
    "binary",
    "unseen",
    "clamp",
    "direction",
    "cleared",
    "late",
    "policy",
    "standardised",
    "part",
    "made",
]
"""What an operation tells of the model; see `Operation`."""
