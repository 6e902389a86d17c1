"""With any function that keeps tensors broken, training goes on as unwatched, steps are recorded, and it is said."""

from __future__ import annotations

import re
import warnings
from contextlib import ExitStack
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor, nn

from tests.compatibility.faults import functions_of
from torchgraph_explorer import Keep, attach, open_run, watch
from torchgraph_explorer.reduce import kept

pytestmark = pytest.mark.slow

MODULES = (
    "torchgraph_explorer.capture.named_tensors",
    "torchgraph_explorer.reduce.kept",
    "torchgraph_explorer.reduce.neurons",
    "torchgraph_explorer.reduce.room",
    "torchgraph_explorer.reused_memory",
    "torchgraph_explorer.tensors.copies",
    "torchgraph_explorer.tensors.odd_samples",
    "torchgraph_explorer.tensors.step_tensors",
    "torchgraph_explorer.tensors.taken",
    "torchgraph_explorer.tensors.transfer",
    "torchgraph_explorer.record.tensors.blocks",
    "torchgraph_explorer.record.tensors.encoding",
    "torchgraph_explorer.record.tensors.graphs",
    "torchgraph_explorer.record.tensors.writer",
)
WITHIN = (
    "torchgraph_explorer.capture.captured_step.CapturedStep.attach_in_loop",
    "torchgraph_explorer.capture.captured_step.CapturedStep.name_in_loop",
    "torchgraph_explorer.capture.captured_step.CapturedStep.connect",
    "torchgraph_explorer.capture.captured_step.keep_in_loop",
    "torchgraph_explorer.capture.named_tensors.is_stale",
    "torchgraph_explorer.capture.native_calls._functions",
    "torchgraph_explorer.capture.native_calls._take",
    "torchgraph_explorer.capture.step_tracker.StepTracker.connect",
    "torchgraph_explorer.capture.step_tracker.StepTracker.is_within",
    "torchgraph_explorer.training.pipeline.Pipeline.keeper_ahead",
    "torchgraph_explorer.training.pipeline.Pipeline.label",
    "torchgraph_explorer.training.pipeline.Pipeline.samples",
    "torchgraph_explorer.training.pipeline.Pipeline.flag",
    "torchgraph_explorer.training.pipeline.Pipeline.gradients",
    "torchgraph_explorer.training.pipeline.Pipeline.connect",
    "torchgraph_explorer.training.writer_thread.WriterThread._used_by_kept",
    "torchgraph_explorer.training.writer_thread.WriterThread._ask_if_nonfinite",
)
"""Functions that call these, and are broken too."""

THE_GUARD = "the guard around what it calls, which is broken instead"

NOT_CALLED = {
    "copies._clone": "called where a tensor that is not in the order of memory is kept whole",
    "step_tensors.KeptSteps.discard": "counts",
    "writer._is_of": "called in a run that has kept tensors already",
    "step_tensors.StepTensors.describe": "notes two words",
    "step_tensors.StepTensors.forget": "clears a dictionary",
    "neurons._keep": "called once",
    "neurons.samples_for_c": "called once for each number of samples",
    "kept._functions": "called once",
    "reused_memory.Pieces.__init__": "watch() calls it, before training begins",
    "reused_memory._references": "watch() calls it, before training begins",
    "room.Room.has_replaced": "called within another that is broken",
    "room.Room.address": "called for kept.c, whose begin is broken instead",
    "step_tensors.StepTensors._copied": "called for what kept.c has copied",
    "taken.copied_by_c": "called for what kept.c has copied",
    "taken.Blocks._add_placed": "called for what kept.c has copied",
    "taken._form": "called for what kept.c has copied",
    "step_tensors.StepTensors._count": "called where one copy replaces another",
    "step_tensors.StepTensors._unique": "called where one copy replaces another",
    "copies._is_in_memory": "called within another that is broken",
    "neurons._sizes": "called once for each shape",
    "NamedTensors.__init__": THE_GUARD,
    "NamedTensors.note": THE_GUARD,
    "NamedTensors.enter": THE_GUARD,
    "NamedTensors.leave": THE_GUARD,
    "NamedTensors.name": THE_GUARD,
    "NamedTensors.connect": THE_GUARD,
    "NamedTensors._guarded": THE_GUARD,
    "step_tensors.KeptSteps.__init__": "watch() calls it, before training begins",
    "step_tensors.KeptSteps.note": "how what is missing is said: broken, nobody can be told",
    "step_tensors.StepTensors.fail": "how what is missing is said: broken, nobody can be told",
    "step_tensors.StepTensors.selects": "called where gradients are not measured, within a hook of capture",
    "copies._product": "called for an empty batch",
    "step_tensors.StepTensors.take": "the guard around each tensor: what it calls is broken instead",
    "transfer._Transfer": "no test trains on a GPU",
    "encoding.KeptLayout": "readers call it",
    "encoding._layout": "readers call it",
    "encoding.decode_": "readers call it",
    "blocks._functions": "called once",
    "blocks._BodyInPython": "made where blocks.c was not built",
    "blocks.body_in_python": "called where blocks.c was not built",
    "blocks._packed": "called where blocks.c was not built",
    "blocks._word_size": "called where blocks.c was not built",
    "blocks._check": "called where blocks.c was not built",
    "blocks._unpacked": "readers call it",
    "blocks.block_at": "readers call it",
    "blocks.decode_block": "readers call it",
    "graphs.decode_tensor_graph": "readers call it",
    "graphs.kind_of": "readers call it",
    "graphs._tensor": "readers call it",
    "writer.TensorWriter.when_idle": "called where training pauses",
    "writer.TensorWriter.close": "called at the end: RecordWriter.close is broken in tests/compatibility",
    "step_tensors._near": "called where a pattern selects nothing",
    "step_tensors._words": "called where a tensor is not kept",
    "step_tensors._place": "called where a tensor is not kept",
    "step_tensors.KeptSteps._limit": "called where the space is used",
    "step_tensors._megabytes": "called where the space is used",
    "copies.Copied.size": "called within another that is broken",
}
"""Names, or beginnings of names, after the package's, of what is not broken, and why."""


def short(name: str) -> str:
    """A function's name without that of the package."""
    return re.sub(r"^torchgraph_explorer\.((capture\.named_tensors|(record\.)?tensors|reduce)\.)?", "", name)


FUNCTIONS = [
    name
    for name in (*functions_of(map(import_module, MODULES)), *WITHIN)
    if not short(name).startswith(tuple(NOT_CALLED))
]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        attach(x[:, ::2], self, "not in the order of memory")
        attach(torch.eye(3).to_sparse(), self, "sparse")
        return self.second(self.first(x).relu_())


FLAGGED = (
    *("before", "size", "is_flagged", "_ask_if_nonfinite"),
    *("_chooses_odd_samples", "odd_samples", "_is_finite", "_with_others"),
)
"""Functions that only a flight recorder calls."""


def train(folder: Path | None, *, when: str = "logged") -> tuple[list[Tensor], Any]:
    torch.manual_seed(0)
    model, watcher = Net(), None
    if folder is not None:
        keep = Keep("*", "*:input", samples=3, when=when)
        watcher = watch(model, log_freq=1, backend="record", logdir=folder, keep=keep, verbose=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        if watcher is not None:
            if step:
                watcher.samples([*"aabab"])
            watcher.label("one")
        batch = attach(torch.randn(5, 4), name="batch", kind="input")
        attach(torch.tensor([0.0, 1.0, 0.0, torch.inf, 0.0]), name="one is infinite")
        loss = attach(model(batch).square().sum(), name="loss", kind="loss")
        loss.backward()
        if watcher is not None:
            watcher.gradients("the loss")
            watcher.connect(batch, loss)
            watcher.connect("batch", loss.detach())
            if step == 2:
                watcher.keep("the last one")
        optimizer.step()
    if watcher is not None:
        watcher.close()
    return [*model.parameters()], watcher


def owner_of(name: str) -> tuple[Any, str]:
    """What holds the function, and its name there."""
    homes = (*MODULES, *(one.rsplit(".", 2)[0] for one in WITHIN), *(one.rpartition(".")[0] for one in WITHIN))
    module = next(module for module in homes if name.startswith(f"{module}.") and find_spec(module) is not None)
    *path, last = name.removeprefix(module + ".").split(".")
    return reduce(getattr, path, import_module(module)), last


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_fault_reaches_training_or_the_frames(name: str, tmp_path: Path) -> None:
    expected, _ = train(None)
    owner, attribute = owner_of(name)
    broken = mock.Mock(side_effect=RuntimeError("injected"))
    new: Any = broken
    if isinstance(vars(owner).get(attribute), property):
        new = property(broken)
    with ExitStack() as stack, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stack.enter_context(mock.patch.object(kept, "taking", return_value=None))  # Python does what kept.c does
        stack.enter_context(mock.patch.object(owner, attribute, new))
        for module in MODULES:  # where it was imported by name
            if vars(import_module(module)).get(attribute) is not None and not isinstance(owner, type):
                stack.enter_context(mock.patch.object(import_module(module), attribute, new))
        found, watcher = train(tmp_path, when="flagged" if attribute in FLAGGED else "logged")
    assert broken.called, "nothing calls it: say why in NOT_CALLED"
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)
    said = [str(one.message) for one in caught]
    assert any("injected" in one for one in said), said
    assert len(said) == len(set(said))
    if watcher is not None:
        assert open_run(str(watcher.run_dir)).model().steps.tolist() == [0, 1, 2]


def test_what_is_said_not_to_be_called_exists() -> None:
    names = [short(name) for name in functions_of(map(import_module, MODULES))]
    assert [known for known in NOT_CALLED if not any(name.startswith(known) for name in names)] == []
