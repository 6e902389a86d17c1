"""Features between modules are compared with numpy, each once, and in later steps only where it may tell something."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from torchgraph_explorer import watch

Numbers = tuple[float, ...]


class Standardising(nn.Module):
    """Standardises over the samples, in place or not."""

    def __init__(self, *, in_place: bool) -> None:
        super().__init__()
        self.in_place = in_place

    def forward(self, values: Tensor) -> Tensor:
        if self.in_place:
            with torch.no_grad():
                values.sub_(values.mean(0)).div_(values.std(0))
            return values
        return (values - values.mean(0)) / values.std(0)


def found(model: nn.Module, shape: tuple[int, int], steps: int = 3) -> list[dict[tuple[str, float], Numbers]]:
    """What is found in each step, by module and whether it is an output."""
    heard, optimizer = Listening(), torch.optim.SGD(model.parameters(), 1e-3)
    with watch(model, log_freq=1, backend=heard, verbose=False):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(*shape)).square().mean().backward()
            optimizer.step()
    frames = [one.training for one in heard.frames if one.training is not None]
    return [
        {(each.module, each.numbers[0]): each.numbers[1:] for each in one.operations if each.kind == "standardised"}
        for one in frames
    ]


def expected(values: npt.NDArray[np.float32]) -> Numbers:
    means, deviations = values.astype(np.float64).mean(0), values.astype(np.float64).std(0, ddof=1)
    varied = deviations > 0.1 * deviations.max()
    farthest, least = np.abs(means[varied]).max(), deviations[varied].min()
    return farthest / deviations.max(), 1 - least / deviations.max(), varied.mean()


@pytest.mark.parametrize(
    "shape",
    [pytest.param((8, 4), id="fewest"), pytest.param((128, 512), id="most"), pytest.param((300, 7), id="many samples")],
)
def test_means_and_deviations_over_the_samples_are_those_of_numpy(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    model, seen = nn.Sequential(nn.Linear(shape[1], shape[1])), list[npt.NDArray[np.float32]]()
    model[0].register_forward_hook(lambda _module, _inputs, output: seen.append(output.detach().numpy().copy()))
    first = found(model, shape)[0]
    np.testing.assert_allclose(first["0", 1.0], expected(seen[0]), rtol=1e-4, atol=1e-6)
    assert first["0", 1.0] == first["", 1.0]


def test_a_tensor_that_was_written_to_between_two_modules_is_computed_again() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), Standardising(in_place=True), nn.Linear(6, 6))
    first = found(model, (16, 6))[0]
    assert max(first["0", 1.0][:2]) > 0.1
    assert max(first["1", 1.0][:2]) < 1e-5
    assert first["1", 1.0] == first["2", 0.0]


def test_later_steps_look_only_where_features_were_standardised_in_the_first() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), Standardising(in_place=False), nn.Linear(6, 6))
    first, *later = found(model, (16, 6))
    assert first.keys() > {("1", 1.0), ("2", 0.0)}
    assert [one.keys() for one in later] == [{("1", 1.0), ("2", 0.0)}] * 2
