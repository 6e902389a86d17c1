"""One rank of a distributed training, started by `test_distributed.py` through torchrun: `WAY FOLDER [die]`."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tests.compatibility.walk import fingerprint
from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.errors import TorchgraphWarning

STEPS = 5


class Model(nn.Module):
    """With a part that is left out by turns, for `find_unused_parameters`."""

    def __init__(self, *, unused: bool) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 6))
        self.b = nn.Linear(6, 6)
        self.head = nn.Linear(6, 2)
        self.unused, self.calls = unused, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        x = self.a(x)
        return self.head(x if self.unused and self.calls % 2 else self.b(x))


def ddp(model: nn.Module, **options: Any) -> nn.Module:
    return DistributedDataParallel(model, **options)


def fsdp(model: Any) -> nn.Module:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for part in (model.a, model.b, model):
        fully_shard(part, mesh=mesh)
    return model


WAYS: dict[str, tuple[bool, Callable[[nn.Module], nn.Module]]] = {
    "ddp": (False, ddp),
    "ddp_inner": (False, ddp),
    "ddp_no_sync": (False, ddp),
    "ddp_static_graph": (False, lambda model: ddp(model, static_graph=True)),
    "ddp_unused": (True, lambda model: ddp(model, find_unused_parameters=True)),
    "fsdp": (False, fsdp),
}
"""By name: whether parts are left out, and what is made of the model."""


def train(way: str, *, watched: bool, dies: bool) -> tuple[list[Any], Listening]:
    unused, wrap = WAYS[way]
    torch.manual_seed(3)
    plain = Model(unused=unused)
    model = wrap(plain)
    torch.manual_seed(10 + dist.get_rank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    heard, losses = Listening(), []
    with _watched(plain if way == "ddp_inner" else model, heard) if watched else nullcontext():
        for step in range(STEPS):
            if dies and dist.get_rank() == 1 and step == 2:
                os._exit(9)
            held_back = way == "ddp_no_sync" and step % 2 == 0
            with model.no_sync() if held_back else nullcontext():  # type: ignore[operator]
                loss = model(torch.randn(4, 6)).square().mean()
                loss.backward()
            if not held_back:
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.detach())
    state = [*losses, *model.parameters(), torch.get_rng_state()]
    return [fingerprint(each) for each in state], heard


@contextmanager
def _watched(model: nn.Module, heard: Listening) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with watch(model, backend=heard, log_freq=1, sample_n=None, verbose=False):
            yield
    assert not (said := [str(each.message) for each in caught if issubclass(each.category, TorchgraphWarning)]), said


def main(way: str, folder: str, *rest: str) -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=15))
    if "die" in rest:
        train(way, watched=True, dies=True)
        return
    plain, _ = train(way, watched=False, dies=False)
    watched, heard = train(way, watched=True, dies=False)
    series = heard.recorded()
    told = {
        "identical": plain == watched,
        "steps": [frame.step for frame in heard.frames],
        "modules": sorted({call.module for graph in heard.graphs for call in graph.calls}),
        "gradients": sorted(f"{key[0]}.{key[3]}" for key in series if key[4] == "grad"),
        "gradient of the head": heard.row(("head", None, "param", "weight", "grad"))[0]["l2_norm"],
    }
    Path(folder, f"{dist.get_rank()}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
