"""One rank of a distributed training, started by `test_distributed.py` through torchrun: `WAY,... FOLDER [die]`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tests.compatibility.walk import fingerprint
from tests.listening import Listening
from torchgraph_explorer import Keep, open_run, watch
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.training import flight_recorder
from torchgraph_explorer.training.watcher import Watcher

STEPS = 5
BATCHES = (4, 3)
"""Samples that each rank is given at a step."""

FLAGGED = Keep("*", "*:input", samples=None, when="flagged", before=1)
ASKED = {(0, 3): "odd", (1, 1): "of no account"}
"""Why a rank asks for the tensors of a step: what the first one asks for is kept by both."""

Truth = dict[str, "np.ndarray[Any, Any]"]
"""Tensors of one rank, saved by hand, by `<step>.<name>`."""


class Model(nn.Module):
    """With a skip, and a part that is left out by turns, for `find_unused_parameters`."""

    def __init__(self, *, unused: bool) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 6))
        self.b = nn.Linear(6, 6)
        self.head = nn.Linear(6, 2)
        self.unused, self.calls = unused, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        x = self.a(x)
        return self.head(x if self.unused and self.calls % 2 else x + self.b(x))


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
    "ddp_apart": (False, ddp),
    "fsdp": (False, fsdp),
}
"""By name: whether parts are left out, and what is made of the model."""


def train(way: str, folder: str, *, watched: bool, dies: bool = False) -> tuple[list[Any], dict[str, Any], Truth]:
    """The state at the end as fingerprints, what the watcher tells, and the truth about the tensors."""
    unused, wrap = WAYS[way]
    torch.manual_seed(3)
    plain = Model(unused=unused)
    model = wrap(plain)
    torch.manual_seed(10 + dist.get_rank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses, truth, told = [], Truth(), dict[str, Any]()
    watching = _watched(plain if way == "ddp_inner" else model, way, folder, told)
    with watching if watched else nullcontext() as watcher:
        for step in range(STEPS):
            if dies and dist.get_rank() == 1 and step == 2:
                assert watcher is not None
                _die(watcher)
            held_back = way == "ddp_no_sync" and step % 2 == 0
            with model.no_sync() if held_back else nullcontext():  # type: ignore[operator]
                losses.append(_step(model, plain, step, truth))
            if watcher is not None and (dist.get_rank(), step) in ASKED:
                watcher.keep(ASKED[dist.get_rank(), step])
            if not held_back:
                optimizer.step()
                optimizer.zero_grad()
    state = [*losses, *model.parameters(), torch.get_rng_state()]
    return [fingerprint(each) for each in state], told, truth


def _step(model: nn.Module, plain: nn.Module, step: int, truth: Truth) -> torch.Tensor:
    """One forward and backward pass; what is to be seen of it by hand goes into `truth`."""
    for name, parameter in plain.named_parameters():
        truth[f"{step}.value.{name}"] = _local(parameter)
    x = torch.randn(BATCHES[dist.get_rank()], 6)
    added: list[torch.Tensor] = []

    def take(_module: nn.Module, args: tuple[torch.Tensor, ...]) -> None:
        args[0].retain_grad()
        added.append(args[0])

    hook = plain.get_submodule("head").register_forward_pre_hook(take)
    y = model(x)
    hook.remove()
    y.retain_grad()
    loss = y.square().mean()
    loss.backward()
    truth[f"{step}.input"], truth[f"{step}.output"] = x.numpy(), _local(y)
    truth[f"{step}.norms"] = np.linalg.norm(_local(y.grad).astype(np.float64), axis=1)
    truth[f"{step}.skip"] = np.linalg.norm(_local(added[0].grad).astype(np.float64), axis=1)
    for name, parameter in plain.named_parameters():
        if parameter.grad is not None:
            truth[f"{step}.grad.{name}"] = _local(parameter.grad)
    return loss.detach()


def _local(tensor: Any) -> np.ndarray[Any, Any]:
    here = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return np.array(here.detach().numpy())


def _die(watcher: Watcher) -> None:
    """Be killed, once both ranks have recorded two steps."""
    end = time.monotonic() + 40
    while time.monotonic() < end and (watcher.run_dir is None or _recorded(watcher.run_dir) < 2):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)


def _recorded(run_dir: str) -> int:
    """Steps that both ranks have recorded."""
    try:
        return int((open_run(run_dir).model().ranks == 2).sum())
    except Exception:
        return 0


@contextmanager
def _watched(model: nn.Module, way: str, folder: str, told: dict[str, Any]) -> Iterator[Watcher]:
    heard, apart = Listening(), way == "ddp_apart"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with watch(
            model,
            backend=[heard, "standalone" if apart else "record"],
            ranks="all" if apart else "merged",
            log_freq=1,
            keep=FLAGGED if way == "ddp_static_graph" else Keep("*", "*:input", samples=None),
            sample_n=None,
            logdir=str(Path(folder, way)),
            port=0,
            block_at_exit=False,
        ) as watcher:
            yield watcher
    assert not (said := [str(each.message) for each in caught if issubclass(each.category, TorchgraphWarning)]), said
    told |= {
        "steps": [frame.step for frame in heard.frames],
        "modules": sorted({call.module for graph in heard.graphs for call in graph.calls}),
        "run_dir": watcher.run_dir,
        "name": watcher.name,
        "serves": watcher.url is not None,
    }


def main(ways: str, folder: str, *rest: str) -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    flight_recorder.LAST_SECONDS = 20.0  # the first rank may be slow on a machine that does much besides
    for way in ways.split(","):
        if "die" in rest:
            train(way, folder, watched=True, dies=True)
            continue
        plain, _, _ = train(way, folder, watched=False)
        watched, told, truth = train(way, folder, watched=True)
        place = Path(folder, f"{way}.{dist.get_rank()}")
        place.with_name(f"{place.name}.json").write_text(json.dumps({"identical": plain == watched, **told}))
        np.savez(place.with_name(f"{place.name}.npz"), allow_pickle=False, **truth)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
