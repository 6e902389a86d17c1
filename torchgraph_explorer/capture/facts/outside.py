"""Computes whether a loss takes for logits what an activation behind the model's output gives.

Such an activation is not the model's, or not seen: the training loop applies it, or the model does so in its own loss.
If `a = f(z)` and the gradient at the output `z` is known, so is the one at `a`, without anything but `z`.

No function waits for a GPU: the results are tensors.

Used within `capture`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.label_losses import TINY
from torchgraph_explorer.capture.facts.negated import without_answer
from torchgraph_explorer.capture.facts.policies import along
from torchgraph_explorer.capture.facts.twice import FAR, first_samples, off_sigmoid, with_classes_last

MOST_ELEMENTS, LEAST_PLACES = 1 << 11, 8
"""Elements of an output that are looked at, and places of one with very many classes."""

LEAST_SLOPE = 1e-2
"""Least slope of a sigmoid or tanh where it is looked at: where it is flatter, its gradients are rounded."""


def behind_activations(values: Tensor, gradient: Tensor) -> list[Tensor]:
    """How far the gradients are from those of a loss of logits behind each activation: `outside` in `Operation`.

    Args:
        values: The model's output, `[samples, ...]`.
        gradient: The gradient of the loss at it, of the same shape.
    """
    values, gradient = first_samples(values, gradient)
    far = torch.full((), FAR, device=values.device)
    of_classes = [_over_classes(*one) for one in with_classes_last(values, gradient) if one[0].shape[-1] > 2]
    values, gradient = (_some_places(one.reshape(-1, 1)) for one in (values, gradient))
    shares = values.sigmoid()
    slopes = shares * (1 - shares)
    off, focus, count = off_sigmoid(shares, torch.where(slopes > LEAST_SLOPE, gradient / slopes, 0.0))
    return [
        *(torch.stack(of_classes).amin(0).unbind() if of_classes else [far] * 6),
        off_sigmoid(values, gradient)[0],
        off,
        focus,
        count,
        shares.std(),
    ]


def of_two_classes(values: Tensor, gradient: Tensor) -> list[Tensor]:
    """How far the gradients are from those of a softmax's loss of two classes: `two` in `Operation`.

    A softmax of two classes is a sigmoid of their difference.

    Args:
        values: The model's output, `[samples, ..., classes]`. Its second dimension has two classes, or else its last.
        gradient: The gradient of the loss at it, of the same shape.
    """
    values, gradient = (one.movedim(1, -1) if one.shape[1] == 2 else one for one in first_samples(values, gradient))
    sums = gradient.sum(-1).abs().max() / gradient.abs().max().clamp(min=TINY)
    difference = values[..., 1] - values[..., 0]
    shares, others = difference.sigmoid(), (-difference).sigmoid()
    pull = torch.where(shares < others, gradient[..., 1], -gradient[..., 0])  # of the rarer one, which is less rounded
    found = [sums]
    for logits, slopes in ((difference, 1), (shares - others, 2 * shares * others)):
        found += [*off_sigmoid(logits, pull / slopes), logits.std()]
    return found


def _over_classes(values: Tensor, gradient: Tensor) -> Tensor:
    """How far the gradients are from those of a softmax's loss of the output itself, and behind four activations.

    Behind a softmax, a second number is that distance over the standard deviation of its probabilities. All are `FAR`
    where there is no gradient.
    """
    values, gradient = _some_places(values), _some_places(gradient)
    shares, logistic, squashed = values.softmax(-1), values.sigmoid(), values.tanh()
    pull = gradient / shares.clamp(min=TINY)  # up to a summand for each place: a softmax has no gradient for it
    behind = _off(shares, pull - pull.mean(-1, keepdim=True))
    found = torch.stack(
        [
            _off(values, gradient),
            behind,
            behind / shares.std().clamp(min=TINY),
            _off_behind(logistic, gradient, slopes=logistic * (1 - logistic)),
            _off_behind(squashed, gradient, slopes=1 - squashed.square()),
            _off_behind_relu(values, gradient),
        ]
    )
    return torch.where((gradient != 0).any(), found, FAR)


def _some_places(tensor: Tensor) -> Tensor:
    """Places `[n, classes]` from all over `[..., classes]`, with `MOST_ELEMENTS`, or `LEAST_PLACES` if that is more."""
    places = tensor.reshape(-1, tensor.shape[-1])
    most = max(LEAST_PLACES, MOST_ELEMENTS // tensor.shape[-1])
    return places[:: -(-len(places) // most)]


def _off(logits: Tensor, gradient: Tensor) -> Tensor:
    """How far the gradients are from `weight * (softmax - answer)`, with a weight for each place, over the largest."""
    left, _ = without_answer(gradient, logits.softmax(-1), gradient.abs().argmax(-1))
    return left.max() / gradient.abs().max().clamp(min=TINY)


def _off_behind(logits: Tensor, gradient: Tensor, *, slopes: Tensor) -> Tensor:
    """As `_off`, of what an activation with these slopes gives, at the places where it is flat for no class."""
    is_seen = (slopes > LEAST_SLOPE).all(-1, keepdim=True)
    pull = torch.where(is_seen, gradient / slopes, 0.0)
    return torch.where((pull != 0).any(), _off(logits, pull), FAR)


def _off_behind_relu(values: Tensor, gradient: Tensor) -> Tensor:
    """As `_off`, behind a ReLU: nothing comes back to what is below zero, as that of the answer may be."""
    is_on = values > 0
    shares = values.relu().softmax(-1) * is_on
    answers = gradient.abs().argmax(-1, keepdim=True)
    seen = shares - torch.zeros_like(shares).scatter_(-1, answers, 1)
    left = [gradient - along(gradient, one) * one for one in (shares, seen * is_on)]
    off = torch.minimum(*(one.abs().amax(-1) for one in left))
    return off.max() / gradient.abs().max().clamp(min=TINY)
