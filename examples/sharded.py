"""A sharded training in the manner of torchtitan: a model without memory is sharded first and gets its values then.

FSDP2 on each block, or the MLPs split between ranks with `--tensor-parallel 2`, recomputed activations, blocks compiled
one by one with `--compile aot_eager` or `inductor` (torch 2.13 cannot compile blocks that are split), and one norm over
all ranks. The lines marked with an arrow add this package. Run it with `torchrun --nproc-per-node 2 -m
examples.sharded`, or with `python -m examples.sharded` for one process; then `torchgraph serve runs`.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from examples.loops.char_gpt import GPT, batch, text
from torchgraph_explorer import watch


@dataclass(frozen=True)
class Config:
    """What the command line says.

    Attributes:
        tensor_parallel: How many ranks share one copy of each MLP.
        compile: The backend that compiles each block; none if empty.
        updates: How long to train.
    """

    tensor_parallel: int = 1
    compile: str = ""
    updates: int = 6


def config() -> Config:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tensor-parallel", type=int, default=1, metavar="RANKS")
    parser.add_argument("--compile", default="", metavar="BACKEND")
    parser.add_argument("--updates", type=int, default=6)
    return Config(**vars(parser.parse_args()))


def main(asked: Config) -> None:
    """Train on the processor."""
    if "RANK" not in os.environ:
        os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    dist.init_process_group("gloo")
    try:
        train(asked)
    finally:
        dist.destroy_process_group()


def sharded_model(asked: Config) -> GPT:
    """A GPT whose values are made after each rank knows which part is its own."""
    shape = (dist.get_world_size() // asked.tensor_parallel, asked.tensor_parallel)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("data", "tensor"))
    with torch.device("meta"):
        model = GPT(vocabulary=128)
    for name, block in list(model.blocks.named_children()):
        if asked.tensor_parallel > 1:
            plan = {"mlp.0": ColwiseParallel(), "mlp.2": RowwiseParallel()}
            parallelize_module(block, mesh["tensor"], plan)
        wrapped = checkpoint_wrapper(block)
        if asked.compile:
            wrapped.compile(backend=asked.compile)
        model.blocks.register_module(name, wrapped)
        fully_shard(wrapped, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    model.to_empty(device="cpu")
    with_values(model, mesh)
    return model


def with_values(model: GPT, mesh: DeviceMesh) -> None:
    """Draw the parameters anew, and let ranks that share a copy train with the same batches."""
    torch.manual_seed(mesh["data"].get_local_rank())
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding | nn.LayerNorm):
            module.reset_parameters()


def clip(parameters: list[nn.Parameter], *, largest: float) -> Tensor:
    """Scale the gradients down to one norm of all ranks, whichever of them each parameter is divided among."""
    gradients: list[Any] = [each.grad for each in parameters if each.grad is not None]
    norm = torch.stack([gradient.norm().full_tensor() for gradient in gradients]).norm()
    for gradient in gradients:
        gradient.mul_((largest / (norm + 1e-6)).clamp(max=1.0).item())
    return norm


def train(asked: Config) -> None:
    """Shard the model and train it."""
    model, characters = sharded_model(asked), text()
    watcher = watch(model, log_freq=3, backend="record")  # <--
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=False)
    for _ in range(asked.updates):
        _, loss = model(*batch(characters))
        loss.backward()
        norm = clip(list(model.parameters()), largest=1.0)
        watcher.log({"loss": loss, "gradient norm": norm})  # <--
        optimizer.step()
        optimizer.zero_grad()
    watcher.close()  # <--


if __name__ == "__main__":
    main(config())
