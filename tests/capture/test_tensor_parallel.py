"""Modules that are given and return distributed tensors, as tensor parallelism makes them, on a mesh of one rank.

What makes them is imported by the tests: the import takes a second, also where other tests are collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

from tests.listening import Key, Listening, edges_by_name
from torchgraph_explorer import watch
from torchgraph_explorer.capture.no_dispatch import plain

pytestmark = pytest.mark.slow

Plan = tuple[Callable[[], nn.Module], Any]
"""What makes the second module, and how each is divided."""


def column_by_row() -> Plan:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    return nn.Tanh, {"0": ColwiseParallel(), "2": RowwiseParallel()}


def distributed_tensors_between_modules() -> Plan:
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    return lambda: nn.Linear(6, 6), {
        "0": ColwiseParallel(use_local_output=False),
        "1": RowwiseParallel(output_layouts=Replicate(), use_local_output=False),
        "2": RowwiseParallel(input_layouts=Replicate()),
    }


@pytest.fixture(autouse=True)
def ranks() -> Iterator[None]:
    dist.init_process_group("gloo", store=torch._C._distributed_c10d.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def trained(make: Callable[[], nn.Module], plan: Any = None) -> tuple[Listening, list[float], list[Any]]:
    """The record, the losses and the weights."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 6), make(), nn.Linear(6, 4), nn.Linear(4, 1))
    if plan is not None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import parallelize_module

        parallelize_module(model, init_device_mesh("cpu", (1,)), plan)
    listening, losses = Listening(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    with watch(model, backend=listening, log_freq=1, verbose=False):
        for _ in range(2):
            optimizer.zero_grad()
            loss = model(torch.randn(5, 3)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return listening, losses, [plain(each).tolist() for each in model.parameters()]


def rows(listening: Listening) -> dict[Key, dict[str, float]]:
    return {key: listening.row(key)[0] for key in listening.recorded()}


@pytest.mark.parametrize("made", [column_by_row, distributed_tensors_between_modules])
def test_a_tensor_parallel_model_is_recorded_as_the_same_model_without_it(made: Callable[[], Plan]) -> None:
    make, plan = made()
    whole, *trained_whole = trained(make)
    divided, *trained_divided = trained(make, plan)
    assert trained_divided == trained_whole
    recorded = rows(divided)  # and the edge between two modules on its own: `DTensor` makes a node there
    assert {key: recorded[key] for key in rows(whole)} == rows(whole)
    assert edges_by_name(divided.graphs[0]) == edges_by_name(whole.graphs[0])
