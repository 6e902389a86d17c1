"""Computes whether a loss is the negative of a mean or summed cross entropy of the model's outputs.

No function waits for a GPU: the results are tensors.

Used within `capture`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.label_losses import TINY
from torchgraph_explorer.capture.facts.twice import FAR, first_samples

NORMALISED = 1e-4
"""Largest logarithm of the sum of the probabilities whose logarithms an output may be: it is rounding."""


def signs(values: Tensor, gradient: Tensor) -> list[Tensor]:
    """Which weights places or elements have in a cross entropy, of classes and of two labels: `sign` in `Operation`.

    Args:
        values: The model's output, `[samples, ...]`.
        gradient: The gradient of the loss at it, of the same shape.
    """
    samples = len(values)
    values, gradient = first_samples(values, gradient)
    share = samples / len(values)
    far = torch.full((), FAR, device=values.device)
    layouts = [(values.movedim(1, -1), gradient.movedim(1, -1))] if values.dim() > 1 else []
    if values.dim() == 3:
        layouts.append((values, gradient))
    found = [_of_classes(*one, share) for one in layouts if one[0].shape[-1] > 2] or [torch.stack([far] * 4)]
    best = torch.stack(found)
    if any(one.shape[-1] == 2 for one, _ in layouts):
        values, gradient = (one.movedim(1, -1) if one.shape[1] == 2 else one for one in (values, gradient))
        values, gradient = values[..., 1] - values[..., 0], gradient[..., 1]
    return [*best[best[:, 0].argmin()].unbind(), *_of_labels(values, gradient, share)]


def _of_classes(logits: Tensor, gradient: Tensor, share: float) -> Tensor:
    """How far the gradients are from those of a cross entropy, its smallest and largest weight, and its places."""
    is_counted = (gradient != 0).any(-1)
    is_logarithm = (logits.logsumexp(-1).abs() < NORMALISED).all()  # whose cross entropy takes one of each place
    shares = torch.where(is_logarithm, 0.0, logits.softmax(-1))
    # The right answer has the most negative gradient, or the most positive one where the sign is wrong.
    of_loss, of_negative = (along(gradient, shares, at(-1)) for at in (gradient.argmin, gradient.argmax))
    is_loss = of_loss[0] <= of_negative[0]
    off, weights = (torch.where(is_loss, *both) for both in zip(of_loss, of_negative, strict=True))
    off = off.max() / gradient.abs().max().clamp(min=TINY)
    return torch.stack([off, *_ends(weights, is_counted), is_counted.sum() * share])


def along(gradient: Tensor, shares: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """What is left of the gradients at each place without a multiple of `shares - answer`, at most; and that multiple.

    Args:
        gradient: `[..., classes]`.
        shares: The probabilities of a softmax, of the same shape; zeros where gradients are those of logarithms.
        answers: The number of a class for each place, `[...]`.
    """
    away = shares - torch.zeros_like(shares).scatter_(-1, answers[..., None], 1)
    weights = (gradient * away).sum(-1) / away.square().sum(-1).clamp(min=TINY)
    return (gradient - weights[..., None] * away).abs().amax(-1), weights


def _of_labels(logits: Tensor, gradient: Tensor, share: float) -> list[Tensor]:
    """The smallest and largest weight in the negative of a binary cross entropy, its elements, the logits' deviation.

    The label is 1 where the gradient is above zero, as it is below zero for the loss itself.
    """
    is_counted = gradient != 0
    right = torch.where(gradient > 0, -logits, logits).sigmoid()
    weights = gradient.abs() / right.clamp(min=TINY)
    return [*_ends(weights, is_counted), is_counted.sum() * share, logits.std()]


def _ends(weights: Tensor, is_counted: Tensor) -> list[Tensor]:
    """The smallest and the largest weight of those that count."""
    return [torch.where(is_counted, weights, torch.inf).min(), torch.where(is_counted, weights, -torch.inf).max()]
