"""What is normalised over the samples, where over classes or features was meant, is told; its twins are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchgraph_explorer import open_run, watch

pytestmark = pytest.mark.slow

KINDS = {"softmax-over-batch", "normalised-over-batch"}
CLASSES, FEATURES = 5, 12


class Ending(nn.Module):
    """A network whose outputs go through a function."""

    def __init__(self, outputs: int, end: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.body, self.end = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, outputs)), end

    def forward(self, samples: Tensor) -> Tensor:
        return self.end(self.body(samples))


def told(folder: Path, model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], size: int = 32) -> list[str]:
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, log_freq=1, backend="record", logdir=folder, run="run", verbose=False):
        for _ in range(12):
            samples = torch.randn(size, 8)
            optimizer.zero_grad()
            loss(model(samples), samples[:, :CLASSES].argmax(1)).backward()
            optimizer.step()
    return [one.kind for one in open_run(folder / "run").model().findings() if one.kind in KINDS]


@pytest.mark.parametrize(
    ("dim", "size", "expected"),
    [
        pytest.param(0, 32, ["softmax-over-batch"], id="over the samples"),
        pytest.param(1, 32, [], id="over the classes"),
        pytest.param(0, CLASSES, [], id="over as many samples as classes"),
    ],
)
def test_logarithms_of_a_softmax_over_the_batch_are_told(
    dim: int, size: int, expected: list[str], tmp_path: Path
) -> None:
    model = Ending(CLASSES, lambda outputs: F.log_softmax(outputs, dim))
    assert told(tmp_path, model, F.nll_loss, size) == expected


def test_logits_below_zero_are_no_logarithms_of_a_softmax_over_the_batch(tmp_path: Path) -> None:
    """Their mean is that of logarithms over the batch; their gradient is that of a cross entropy."""
    model = Ending(CLASSES, lambda outputs: 0.1 * torch.tanh(outputs) - torch.log(torch.tensor(32.0)))
    assert told(tmp_path, model, F.cross_entropy) == []


def contrast(vectors: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy((vectors @ vectors.T - 9 * torch.eye(len(vectors)))[:, :CLASSES], labels)


def standardised(outputs: Tensor) -> Tensor:
    return (outputs - outputs.mean(0)) / outputs.std(0, unbiased=False) / len(outputs) ** 0.5


@pytest.mark.parametrize(
    ("end", "size", "expected"),
    [
        pytest.param(lambda outputs: F.normalize(outputs, dim=0), 32, ["normalised-over-batch"], id="over the samples"),
        pytest.param(lambda outputs: F.normalize(outputs, dim=1), 32, [], id="over the features"),
        pytest.param(lambda outputs: F.normalize(outputs, dim=1), FEATURES, [], id="over as many features as samples"),
        pytest.param(standardised, 32, [], id="standardised over the samples"),
        pytest.param(lambda outputs: outputs, 32, [], id="as they are"),
    ],
)
def test_vectors_that_are_normalised_over_the_batch_are_told(
    end: Callable[[Tensor], Tensor], size: int, expected: list[str], tmp_path: Path
) -> None:
    assert told(tmp_path, Ending(FEATURES, end), contrast, size) == expected


class Pooled(nn.Module):
    """Parts of each sample are weighed, and added up."""

    def __init__(self, dim: int, *, together: bool = False) -> None:
        super().__init__()
        self.score, self.head, self.dim, self.together = nn.Linear(3, 1), nn.Linear(3, CLASSES), dim, together

    def forward(self, samples: Tensor) -> Tensor:
        parts = torch.stack([samples, samples**2, samples.sin()], 2)
        weights = self.score(parts).squeeze(2).softmax(self.dim)
        pooled = torch.einsum("np,npf->nf", weights, parts)
        result: Tensor = self.head(pooled)
        return result.mean(0, keepdim=True) if self.together else result


class Mixture(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gate, self.dim = nn.Linear(8, 3), dim
        self.experts = nn.ModuleList(nn.Linear(8, CLASSES) for _ in range(3))

    def forward(self, samples: Tensor) -> Tensor:
        shares = self.gate(samples).softmax(self.dim)
        return torch.stack([expert(samples) * shares[:, [at]] for at, expert in enumerate(self.experts)]).sum(0)


def entropy_of_first(found: Tensor, classes: Tensor) -> Tensor:
    return F.cross_entropy(found, classes[: len(found)])


@pytest.mark.parametrize(
    ("model", "size", "expected"),
    [
        pytest.param(lambda: Pooled(0), 32, ["softmax-over-batch"], id="attention"),
        pytest.param(lambda: Mixture(0), 32, ["softmax-over-batch"], id="experts"),
        pytest.param(lambda: Pooled(1), 32, [], id="attention over the parts"),
        pytest.param(lambda: Mixture(1), 32, [], id="a gate over the experts"),
        pytest.param(lambda: Pooled(0, together=True), 32, [], id="one answer for a bag of all"),
        pytest.param(lambda: Pooled(0), 8, [], id="as many samples as parts"),
    ],
)
def test_a_softmax_by_a_function_over_the_batch_is_told(
    model: Callable[[], nn.Module], size: int, expected: list[str], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    assert told(tmp_path, model(), entropy_of_first, size) == expected


def test_a_softmax_over_all_nodes_of_one_graph_is_not_told(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, nodes = Pooled(0), torch.randn(32, 8)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="run", verbose=False):
        for _ in range(12):
            optimizer.zero_grad()
            F.cross_entropy(model(nodes), nodes[:, :CLASSES].argmax(1)).backward()
            optimizer.step()
    assert "softmax-over-batch" not in [one.kind for one in open_run(tmp_path / "run").model().findings()]


class LengthFirst(nn.Module):
    """Attention `[queries, keys, samples, heads]` of `[length, samples, features]`, with as many samples as heads."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.embed, self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(4))
        self.softmax, self.last = nn.Softmax(dim), nn.Linear(8, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        query, key, value = (one(self.embed(tokens)).unflatten(2, (4, 2)) for one in (self.query, self.key, self.value))
        weights = self.softmax(torch.einsum("ibhd,jbhd->ijbh", query, key))
        result: Tensor = self.last(torch.einsum("ijbh,jbhd->ibhd", weights, value).flatten(2))
        return result


def test_attention_over_keys_of_as_many_samples_as_heads_is_not_told(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = LengthFirst(1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="run", verbose=False):
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(16, 4, 8)).square().mean().backward()
            optimizer.step()
    assert "softmax-over-batch" not in [one.kind for one in open_run(tmp_path / "run").model().findings()]
