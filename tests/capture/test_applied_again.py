"""Which focal loss gave the gradients of an output is found, however large the output is."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from torchgraph_explorer.capture.facts.twice import MOST_COMPARED, MOST_FOCUS, applied_again


@pytest.mark.parametrize("exponent", range(MOST_FOCUS + 1))
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param((12,), id="numbers"),
        pytest.param((12, 5), id="classes"),
        pytest.param((3, 2, 6, 6), id="pixels"),
        pytest.param((200, 300), id="more than is compared"),
    ],
)
def test_the_exponent_of_a_focal_loss_is_found(shape: tuple[int, ...], exponent: int) -> None:
    torch.manual_seed(0)
    logits = (2 * torch.rand(shape) - 1).requires_grad_()
    labels = (torch.rand(shape) < 0.3).float()
    cross_entropy = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    weights = torch.where(labels > 0, 0.7, 0.2)
    (weights * (1 - torch.exp(-cross_entropy)) ** exponent * cross_entropy).sum().backward()
    assert logits.grad is not None
    _, off, found, count = (float(one) for one in applied_again(logits.detach(), logits.grad))
    compared = labels[: max(8, MOST_COMPARED * len(labels) // labels.numel())]
    assert off < 1e-3
    assert found == exponent
    assert count == compared.numel() - int(compared.sum())


@pytest.mark.parametrize("shape", [pytest.param((16, 4), id="few"), pytest.param((300, 200), id="very many")])
def test_gradients_of_a_softmax_that_the_loss_applies_are_found(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    shares = torch.randn(shape).softmax(1).requires_grad_()
    F.cross_entropy(shares, torch.randint(shape[1], shape[:1])).backward()
    assert shares.grad is not None
    assert float(applied_again(shares.detach(), shares.grad)[0]) < 1e-4
    assert float(applied_again(shares.detach(), torch.randn(shape))[0]) > 0.1
