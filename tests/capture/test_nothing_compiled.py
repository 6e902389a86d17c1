"""Models of which torch compiles nothing, although they are given to `torch.compile`."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.errors import TorchgraphWarning


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(x)[0])


@pytest.mark.slow  # imports dynamo
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inline_says_that_torch_may_compile_nothing_in_the_model() -> None:
    torch.compiler.reset()
    model, heard = Recurrent(), Listening()
    compiled = torch.compile(model, backend="eager", dynamic=True)
    watcher = watch(model, backend=heard, log_freq=1, compiled="inline", verbose=False)

    def train() -> None:
        for _ in range(4):
            compiled(torch.randn(2, 5, 3)).square().mean().backward()

    with pytest.warns(TorchgraphWarning, match=r"or torch compiles nothing in it \(as an nn.GRU with dynamic=True\)"):
        train()
    watcher.close()
    assert watcher.step == 4
