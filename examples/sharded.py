"""A sharded training in the manner of torchtitan: FSDP2 on each block, recomputed activations, one norm over all ranks.

The lines marked with an arrow add this package. Run it with `torchrun --nproc-per-node 2 -m examples.sharded`, or
with `python -m examples.sharded` for one process; then `torchgraph serve runs`.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from examples.loops.char_gpt import GPT, batch, text
from torchgraph_explorer import watch

UPDATES = 6


def main() -> tuple[nn.Module, int]:
    """Train on the processor; returns the model and the number of updates."""
    if "RANK" not in os.environ:
        os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    dist.init_process_group("gloo")
    try:
        return train(), UPDATES
    finally:
        dist.destroy_process_group()


def train() -> nn.Module:
    """Shard the model and train it."""
    model, characters = GPT(vocabulary=128), text()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for name, block in list(model.blocks.named_children()):
        model.blocks.register_module(name, checkpoint_wrapper(block))
        fully_shard(model.blocks.get_submodule(name), mesh=mesh)
    fully_shard(model, mesh=mesh)
    watcher = watch(model, log_freq=3, backend="record")  # <--
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=False)
    for _ in range(UPDATES):
        _, loss = model(*batch(characters))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
        watcher.log({"loss": loss})  # <--
        optimizer.step()
        optimizer.zero_grad()
    watcher.close()  # <--
    assert norm is not None
    return model


if __name__ == "__main__":
    main()
