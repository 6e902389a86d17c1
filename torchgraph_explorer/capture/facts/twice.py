"""Computes whether a loss takes a model's outputs, which may be probabilities, for logits, and what its labels are.

No function waits for a GPU: the results are tensors.

Used within `capture`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.label_losses import TINY
from torchgraph_explorer.capture.facts.policies import weighed_logarithms

FAR = 1e9
"""A distance that stands for one that is not known."""

LEAST_COMPARED, MOST_COMPARED = 8, 1 << 13
"""Samples of an output of very many elements that are compared with a loss, and elements of a smaller one."""

MOST_FOCUS = 5
"""Largest exponent of a focal loss that is tried, from 0 on, which is a cross entropy."""


def applied_again(values: Tensor, gradient: Tensor) -> list[Tensor]:
    """How far the gradients are from those of a loss that applies a softmax or sigmoid: `twice` in `Operation`.

    Args:
        values: The model's output, `[samples, ...]`.
        gradient: The gradient of the loss at it, of the same shape.
    """
    values, gradient = first_samples(values, gradient)
    some = torch.full((), FAR, device=values.device)
    for one in with_classes_last(values, gradient):
        some = torch.minimum(some, _off_softmax(*one))
    return [some, *off_sigmoid(values, gradient)]


def first_samples(values: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Those of the first samples, with `MOST_COMPARED` elements, or of `LEAST_COMPARED` samples if that is more."""
    samples = max(LEAST_COMPARED, MOST_COMPARED * len(values) // max(values.numel(), 1))
    return values[:samples], gradient[:samples]


def with_classes_last(values: Tensor, gradient: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Both with the classes as the last dimension, which may be the second one, or the last of three."""
    found = [(values.movedim(1, -1), gradient.movedim(1, -1))] if values.dim() > 1 else []
    return [*found, (values, gradient)] if values.dim() == 3 else found


def _off_softmax(logits: Tensor, gradient: Tensor) -> Tensor:
    """How far the gradients are from `weight * (softmax - answer)`, with a weight for each place, over the largest.

    Such are the gradients of any loss of the probability of the right class, as a focal one, and of a policy's loss.
    `FAR` for fewer than three classes, as two gradients that sum to zero say nothing of the loss.
    """
    if logits.shape[-1] < 3:
        return torch.full((), FAR, device=logits.device)
    return weighed_logarithms(logits, gradient).off


def off_sigmoid(logits: Tensor, gradient: Tensor) -> list[Tensor]:
    """How far the gradients are from those of a focal loss of logits, with any weight for each of the two labels.

    Returns that distance for the exponent up to `MOST_FOCUS` that fits best, that exponent, and how many elements have
    the more frequent label. The label is 1 where the gradient is below zero.
    """
    is_one, is_zero = (gradient < 0).flatten(), (gradient > 0).flatten()
    logits, sizes = logits.flatten(), gradient.abs().flatten()
    wrong = torch.where(is_one, -logits, logits).sigmoid()  # the probability of the other label
    focus = torch.arange(MOST_FOCUS + 1, device=logits.device)[:, None]
    expected = wrong**focus * (wrong - focus * ((1 - wrong) * torch.log1p(-wrong)))
    ratio = sizes / expected.clamp(min=TINY)
    best = torch.maximum(_spread(ratio, is_one), _spread(ratio, is_zero)).min(0)
    return [best.values, best.indices, torch.maximum(is_one.sum(), is_zero.sum())]


def _spread(values: Tensor, among: Tensor) -> Tensor:
    """The largest less the smallest of each row's values set in `among`, over the largest; 0 if none is."""
    largest = torch.where(among, values, -torch.inf).amax(-1)
    smallest = torch.where(among, values, torch.inf).amin(-1)
    return torch.where(among.any(), (largest - smallest) / largest.clamp(min=TINY), 0.0)


def binary_labels(values: Tensor, gradient: Tensor) -> list[Tensor]:
    """The labels of a mean binary cross entropy of logits, and those of one of probabilities: `binary` in `Operation`.

    The arguments are those of `applied_again`.
    """
    found, pull = [], gradient * values.numel()
    for labels in (values.sigmoid() - pull, values - pull * values * (1 - values)):
        low, high = labels.min(), labels.max()
        found += [low, high, torch.minimum(labels - low, high - labels).max()]
    return found


def classes_without_answer(gradient: Tensor) -> list[Tensor]:
    """How many classes are the answer of no sample, and the sum of their numbers: `unseen` in `Operation`.

    Args:
        gradient: The gradient of a cross entropy at logits `[samples, classes]`. Samples without one have no answer.
    """
    lowest, answers = gradient.min(1)
    is_answer = torch.zeros_like(gradient, dtype=torch.bool).scatter_(1, answers[:, None], (lowest < 0)[:, None])
    is_seen = is_answer.any(0)
    numbers = torch.arange(gradient.shape[1], device=gradient.device)
    return [(~is_seen).sum(), (numbers * ~is_seen).sum()]
