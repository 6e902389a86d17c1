"""A stage of a pipeline, as torch's pipelining runs it, alone in a process group of one rank."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch import nn

from tests.listening import Listening
from torchgraph_explorer import watch

pytestmark = pytest.mark.slow

MICRO_BATCHES = 2


@pytest.fixture(autouse=True)
def ranks() -> Iterator[None]:
    dist.init_process_group("gloo", store=torch._C._distributed_c10d.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_pass_in_which_a_pipeline_finds_out_shapes_is_not_recorded() -> None:
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    model, heard = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)), Listening()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    stage = PipelineStage(model, 0, 1, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, MICRO_BATCHES, loss_fn=nn.functional.mse_loss)
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        for _ in range(2):
            optimizer.zero_grad()
            schedule.step(torch.randn(4, 4), target=torch.randn(4, 2))
            optimizer.step()
    assert watcher.step == 2
    assert [_calls(heard, frame) for frame in range(2)] == [[*range(MICRO_BATCHES)]] * 2


def _calls(heard: Listening, frame: int) -> list[int | None]:
    """The numbers of the recorded calls of the first layer, in order."""
    outputs = [key for key in heard.recorded(frame) if key[0] == "0" and key[2] == "output" and key[4] == "value"]
    return sorted(key[1] for key in outputs)  # type: ignore[type-var]
