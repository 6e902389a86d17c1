"""Computes whether a loss weighs the logarithms of probabilities that a softmax of a model's output gives.

Such are the gradients of a cross entropy, whose weights are positive, and of a policy's loss, whose weights are
advantages. The entropy of the probabilities may be a part of the loss.

No function waits for a GPU: the results are tensors.

Used within `capture`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.label_losses import TINY


class Weighed(NamedTuple):
    """What explains a gradient best.

    Attributes:
        off: The largest distance of the gradient from what is explained, over the largest gradient.
        weights: The weight of each place, `[...]`.
    """

    off: Tensor
    weights: Tensor


def weighed_logarithms(logits: Tensor, gradient: Tensor) -> Weighed:
    """The gradient as `weight * (softmax - answer)`, with a weight for each place, plus a multiple of the entropy's.

    The answer of a place, or its action, is where the gradient is largest in magnitude: no other element of `softmax -
    answer` is larger.

    Args:
        logits: `[..., classes]`.
        gradient: The gradient of the loss at them, of the same shape.
    """
    shares, logarithms = logits.softmax(-1), logits.log_softmax(-1)
    answers = gradient.abs().argmax(-1, keepdim=True)
    away = shares - torch.zeros_like(logits).scatter_(-1, answers, 1)
    entropy = -(shares * logarithms).sum(-1, keepdim=True)
    of_entropy = shares * (logarithms + entropy)
    rest, rest_of_entropy = (one - along(one, away) * away for one in (gradient, of_entropy))
    share = (rest * rest_of_entropy).sum() / rest_of_entropy.square().sum().clamp(min=TINY)
    largest = gradient.abs().max().clamp(min=TINY)
    off = (rest - share * rest_of_entropy).abs().max() / largest
    return Weighed(off, along(gradient - share * of_entropy, away).squeeze(-1))


def policy_weights(logits: Tensor, gradient: Tensor) -> list[Tensor]:
    """The weights of the samples of logits `[samples, classes]`: `policy` in `schema.Operation`."""
    off, weights = weighed_logarithms(logits, gradient)
    return [off, weights.min(), weights.max()]


def along(vectors: Tensor, direction: Tensor) -> Tensor:
    """By which multiple of `direction` each of the vectors comes closest to zero, `[..., 1]`."""
    length = direction.square().sum(-1, keepdim=True).clamp(min=TINY)
    return (vectors * direction).sum(-1, keepdim=True) / length
