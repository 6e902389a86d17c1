"""A process of `benchmarks.comgra`: trains a network whose named tensors are kept, and prints what a step costs.

`python -m benchmarks.keeping KEEPER SAMPLES STEPS` prints JSON: seconds of processor time, of all threads, of steps
that keep nothing and of steps that keep tensors, made in turn. What is kept is left in the folder it runs in.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

LAYERS, WIDTH, BATCH = 10, 128, 64
UNMEASURED = 2
"""Steps at the beginning, of which one may be traced."""

Keep = Callable[[str, Tensor], None]


class Net(nn.Module):
    """An MLP that says what its layers return."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))

    def forward(self, x: Tensor, keep: Keep) -> Tensor:
        """Call `keep` with the names of tensors."""
        for number, layer in enumerate(self.layers):
            x = layer(x)
            keep(f"layer {number}", x)
            x = x.relu()
        return x


def nothing(_name: str, _tensor: Tensor) -> None:
    """Keep nothing."""


def loss_of(model: Net, keep: Keep) -> Tensor:
    """A forward pass whose input, layers and loss are named."""
    x, target = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)
    keep("input", x)
    keep("target", target)
    return (model(x, keep) - target).square().mean()


class Ours:
    """`watch(keep=...)` of a model that is not called in the other steps."""

    def __init__(self, model: Net, samples: int) -> None:
        from torchgraph_explorer import Keep, watch

        patterns = ("layers.*:output", "input", "target", "loss")
        keep = Keep(*patterns, samples=samples, megabytes=1e5)
        self._watcher = watch(
            model,
            log_freq=1,
            backend="record",
            logdir="kept",
            run="run",
            keep=keep,
            log=("io", "io_grad"),
            verbose=False,
        )

    @contextmanager
    def step(self, _number: int) -> Iterator[Keep]:
        """Names tensors of one step."""
        from torchgraph_explorer import attach

        def keep(name: str, tensor: Tensor) -> None:
            if not name.startswith("layer "):  # these are kept as what their modules return
                attach(tensor, name=name)

        yield keep

    def after_backward(self) -> None:
        """Nothing is left to be done."""

    def close(self) -> None:
        """Write the rest."""
        self._watcher.close()


class Comgra:
    """Comgra's recorder, at each of its steps, with its default formats and without singular values."""

    def __init__(self, model: Net, samples: int) -> None:
        from comgra.objects import DecisionMakerForRecordingsHardcoded
        from comgra.recorder import ComgraRecorder

        Path("kept").mkdir()
        self._recorder = ComgraRecorder(
            comgra_root_path="kept",
            group="group",
            trial_id="trial",
            decision_maker_for_recordings=DecisionMakerForRecordingsHardcoded(set(range(10_000))),
            max_num_batch_size_to_record=samples,
            calculate_svd_and_other_expensive_operations_of_parameters=False,
        )
        self._recorder.track_module("model", model)

    @contextmanager
    def step(self, number: int) -> Iterator[Keep]:
        """Names tensors of one step."""
        recorder = self._recorder
        recorder.start_batch(number, BATCH)
        recorder.start_iteration()

        def keep(name: str, tensor: Tensor) -> None:
            said: dict[str, Any] = {
                "input": {"is_input": True},
                "target": {"is_target": True},
                "loss": {"is_loss": True},
            }
            recorder.register_tensor(name, tensor, **said.get(name, {}))

        yield keep
        recorder.finish_batch()

    def after_backward(self) -> None:
        """The gradients are there."""
        self._recorder.record_current_gradients("loss")
        self._recorder.finish_iteration()

    def close(self) -> None:
        """Write the rest."""
        self._recorder.finalize()


def main() -> None:
    """Train, and print."""
    keeper_name, samples, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    plain, kept = Net(), Net()
    keeper: Ours | Comgra = {"torchgraph": Ours, "comgra": Comgra}[keeper_name](kept, samples)
    optimizers = {model: torch.optim.SGD(model.parameters(), lr=1e-4) for model in (plain, kept)}
    seconds: dict[str, list[float]] = {"plain": [], "kept": []}
    for number in range(steps + UNMEASURED):
        started = time.process_time()
        optimizers[plain].zero_grad()
        loss_of(plain, nothing).backward()  # type: ignore[no-untyped-call]
        optimizers[plain].step()
        between = time.process_time()
        optimizers[kept].zero_grad()
        with keeper.step(number) as keep:
            loss = loss_of(kept, keep)
            keep("loss", loss)
            loss.backward()  # type: ignore[no-untyped-call]
            keeper.after_backward()
        optimizers[kept].step()
        seconds["plain"].append(between - started)
        seconds["kept"].append(time.process_time() - between)
    started = time.process_time()
    keeper.close()
    rest = time.process_time() - started
    print(
        json.dumps(
            {name: each[UNMEASURED:] for name, each in seconds.items()} | {"rest": rest, "steps": len(seconds["kept"])}
        )
    )


if __name__ == "__main__":
    main()
