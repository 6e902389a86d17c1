"""Computes whether a loss is the negative of a mean or summed cross entropy of the model's outputs.

No function waits for a GPU: the results are tensors.

Used within `capture`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.label_losses import TINY
from torchgraph_explorer.capture.facts.policies import along
from torchgraph_explorer.capture.facts.twice import FAR, first_samples, with_classes_last

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
    layouts = with_classes_last(values, gradient)
    found = [_of_classes(*one, share) for one in layouts if one[0].shape[-1] > 2] or [torch.stack([far] * 4)]
    best = torch.stack(found)
    best = best.index_select(0, best[:, 0].argmin().reshape(1))  # a number as an index would be waited for
    for of_two, pull in layouts[::-1]:
        if of_two.shape[-1] == 2:
            values, gradient = of_two[..., 1] - of_two[..., 0], pull[..., 1]
    return [*best[0].unbind(), *_of_labels(values, gradient, share)]


def _of_classes(logits: Tensor, gradient: Tensor, share: float) -> Tensor:
    """How far the gradients are from those of a cross entropy, its smallest and largest weight, and its places."""
    is_counted = (gradient != 0).any(-1)
    is_logarithm = (logits.logsumexp(-1).abs() < NORMALISED).all()  # whose cross entropy takes one of each place
    shares = torch.where(is_logarithm, 0.0, logits.softmax(-1))
    # The right answer has the most negative gradient, or the most positive one where the sign is wrong.
    of_loss, of_negative = (without_answer(gradient, shares, at(-1)) for at in (gradient.argmin, gradient.argmax))
    is_loss = of_loss[0] <= of_negative[0]
    off, weights = (torch.where(is_loss, *both) for both in zip(of_loss, of_negative, strict=True))
    off = off.max() / gradient.abs().max().clamp(min=TINY)
    return torch.stack([off, *_ends(weights, is_counted), is_counted.sum() * share])


def without_answer(gradient: Tensor, shares: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """What is left of the gradients at each place without a multiple of `shares - answer`, at most; and that multiple.

    Args:
        gradient: `[..., classes]`.
        shares: The probabilities of a softmax, of the same shape; zeros where gradients are those of logarithms.
        answers: The number of a class for each place, `[...]`.
    """
    away = shares - torch.zeros_like(shares).scatter_(-1, answers[..., None], 1)
    weights = along(gradient, away)
    return (gradient - weights * away).abs().amax(-1), weights.squeeze(-1)


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
