"""Computes what gradients at logits tell of the loss: how it weighs classes and places, and over what its softmax goes.

No function waits for a GPU: the results are tensors.

Used within `capture`.
"""

from __future__ import annotations

import torch
from torch import Tensor

TINY = 1e-30
"""What is divided by in place of zero."""


def class_weights(logits: Tensor, gradient: Tensor) -> list[Tensor]:
    """How the class weights of a cross entropy stand to the numbers of answers: `weights` in `schema.Operation`.

    The gradient of such a loss at a sample is the softmax less the answer, times the weight of the answer's class. A
    single logit is taken for that of the second of two classes.

    Args:
        logits: `[samples, classes]` or `[samples]`.
        gradient: The gradient of the loss at them, of the same shape.
    """
    if logits.dim() == 1 or logits.shape[1] == 1:
        logits, gradient = logits.reshape(-1, 1), gradient.reshape(-1, 1)
        logits, gradient = torch.cat([0 * logits, logits], 1), torch.cat([-gradient, gradient], 1)
    lowest, answers = gradient.min(1)
    shares, is_answer = logits.softmax(1), _one_hot(answers, logits)
    weights = lowest / ((shares * is_answer).sum(1) - 1).clamp(max=-1e-6)
    off = (weights[:, None] * (shares - is_answer) - gradient).abs().max() / gradient.abs().max().clamp(min=TINY)
    is_answer = is_answer * (lowest < 0)[:, None]
    often = is_answer.sum(0)
    of_class = (is_answer * weights[:, None]).sum(0) / often.clamp(min=1)
    within = ((weights - of_class[answers]).abs() * (lowest < 0)).max() / weights.abs().max().clamp(min=TINY)
    is_seen = often > 0
    most, least = of_class.masked_fill(~is_seen, 0).argmax(), of_class.masked_fill(~is_seen, torch.inf).argmin()
    ends = torch.stack([most, least])
    heavy, light = of_class.gather(0, ends).unbind()
    common, rare = often.gather(0, ends).unbind()
    return [
        torch.maximum(off, within),
        heavy / light.clamp(min=TINY),
        common / rare.clamp(min=1),
        _correlation(of_class.clamp(min=TINY).log(), often.clamp(min=1).log(), is_seen.float()),
        (gradient == 0).all(1).float().mean(),
        often[0],
        often[-1],
        is_seen.sum(),
        often.argmax(),
        often.max() / often.sum().clamp(min=1),
    ]


def off_over_samples(logits: Tensor, gradient: Tensor) -> Tensor:
    """The largest distance of a gradient from that of a cross entropy whose softmax goes over the samples.

    It is a share of the largest gradient: where all samples have equal logits and one answer, gradients of zeros are
    expected, and small ones of another loss are near these. The loss may be a mean over the samples, or a sum: the
    smaller distance counts. Both tensors are of the shape `[samples, classes]`.
    """
    answers = _one_hot(gradient.argmin(1), logits)
    expected = logits.softmax(0) * answers.sum(0) - answers
    scaled = [gradient * times for times in (1, len(logits))]
    return torch.minimum(*((expected - one).abs().max() / one.abs().max().clamp(min=TINY) for one in scaled))


def as_divergence(logits: Tensor, gradient: Tensor) -> list[Tensor]:
    """The loss and the smallest target, if the loss is `kl_div(softmax(logits), targets)`, for each reduction.

    See `divergence` in `schema.Operation`.
    """
    shares, found = logits.softmax(1), []
    for times in (1, len(logits), logits.numel()):
        pull = gradient * times / shares.clamp(min=TINY)
        targets = (1 + pull.sum(1, keepdim=True)) / logits.shape[1] - pull
        entropy = torch.xlogy(targets.clamp(min=0), targets.clamp(min=0))
        found += [(entropy - targets * shares).sum() / times, targets.min()]
    return found


def hidden_places(tokens: Tensor, is_right: Tensor) -> list[Tensor]:
    """How many of the places that the loss leaves out have the same token, as masked ones: `hidden` in `Operation`.

    Args:
        tokens: `[samples, length]`.
        is_right: Which places have an answer, so that the loss counts them, `[samples, length]`.
    """
    is_out = ~is_right
    others = -1 - torch.arange(tokens.numel(), device=tokens.device).reshape(tokens.shape)
    usual = torch.where(is_out, tokens.long(), others).flatten().mode().values
    is_usual = tokens == usual
    is_between = (is_right.int().flip(1).cumsum(1).flip(1) > 0) & (is_right.int().cumsum(1) > 0)
    out = is_out.sum().clamp(min=1)
    return [
        is_out.float().mean(),
        (is_out & is_usual).sum() / out,
        (is_right & is_usual).sum() / is_usual.sum().clamp(min=1),
        (is_out & is_between).sum() / out,
    ]


def trailing_places(tokens: Tensor, answers: Tensor, is_right: Tensor) -> list[Tensor]:
    """How many answers are the class that ends sequences, as padding does: `trailing` in `schema.Operation`.

    Args:
        tokens: The tokens that the model was given, `[samples, length]`.
        answers: The right answer at each place, `[samples, length]`.
        is_right: Which places have an answer, `[samples, length]`.
    """
    is_last = (answers == answers[:, -1].mode().values) & is_right
    is_trailing = is_last.int().flip(1).cumprod(1).flip(1) > 0
    is_behind, lengths = is_trailing[:, 1:] & is_trailing[:, :-1], is_trailing.sum(1)
    is_given = is_behind & (tokens[:, 1:] == tokens[:, -1].mode().values)
    return [
        is_behind.sum() / is_right.sum().clamp(min=1),
        (is_last & ~is_trailing).sum() / is_right.sum().clamp(min=1),
        is_given.sum() / is_behind.sum().clamp(min=1),
        lengths.max() - lengths.min(),
    ]


def ends_of_padding(tokens: Tensor, answers: Tensor, is_right: Tensor) -> list[Tensor]:
    """How many answers are where one token ends sequences, as padding does: `ends` in `schema.Operation`.

    The arguments are those of `trailing_places`.
    """
    is_last = tokens == tokens[:, -1].mode().values
    is_trailing = is_last.int().flip(1).cumprod(1).flip(1) > 0
    lengths, behind = is_trailing.sum(1), answers[:, 1:]
    is_behind = is_trailing[:, 1:] & is_trailing[:, :-1] & is_right[:, 1:]
    others = -1 - torch.arange(behind.numel(), device=behind.device).reshape(behind.shape)
    usual = torch.where(is_behind, behind, others).flatten().mode().values
    return [
        is_behind.sum() / is_right.sum().clamp(min=1),
        (is_last & ~is_trailing).sum() / (~is_trailing).sum().clamp(min=1),
        (is_behind & (behind == usual)).sum() / is_behind.sum().clamp(min=1),
        lengths.max() - lengths.min(),
    ]


def _one_hot(answers: Tensor, logits: Tensor) -> Tensor:
    return torch.zeros_like(logits).scatter_(1, answers[:, None], 1)


def _correlation(first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    weight = weight / weight.sum().clamp(min=1)
    x, y = (one - (weight * one).sum() for one in (first, second))
    both, of_x, of_y = ((weight * one).sum() for one in (x * y, x * x, y * y))
    return torch.where(of_x * of_y > 0, both / (of_x * of_y).sqrt(), 0.0)
