"""Scalars that the same training logged to TensorBoard or W&B, read from their files without their libraries."""

from __future__ import annotations

import random
import struct
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from torch.utils.tensorboard import SummaryWriter

from tests.record.examples import SERIES, frame, logged, write
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.elsewhere import files
from torchgraph_explorer.record.elsewhere.files import EventFile, WandbFile
from torchgraph_explorer.record.elsewhere.scalars import LoggedElsewhere
from torchgraph_explorer.run import open_run

TIMES, STEPS = 1_000.0 + np.arange(0.0, 60.0, 5.0), np.arange(0, 120, 10)
"""Of the frames of a run: two steps a second, each tenth recorded."""


def event_file(folder: Path, *, factor: int = 1) -> Path:
    """A loss of each of 120 steps, and what is no scalar; its steps are counted `factor` times."""
    with SummaryWriter(str(folder)) as writer:
        for step in range(120):
            writer.add_scalar("Loss/train", 3.0 - 0.01 * step, factor * step, walltime=1_000.2 + step / 2)
            writer.add_scalar("rate", step, factor * step, walltime=1_000.2 + step / 2, new_style=True)
        writer.add_histogram("weights", np.arange(10.0), 3)
        writer.add_text("note", "hello", 3)
    [path] = folder.glob("*.tfevents.*")
    return path


def wandb_file(path: Path, *, long: bool = False) -> Path:
    """A W&B run's file, as its client writes it: pieces in blocks of 32 KiB."""
    data = bytearray(b":W&B\xe1\xbe\x00")
    for step in range(120):
        items = [("_step", str(step)), ("_timestamp", str(1_000.2 + step / 2)), ("loss", str(3.0 - 0.01 * step))]
        more = [("table", '{"_type": "table-file"}'), ("text", '"' + 40_000 * "x" + '"' if long else '"x"')]
        record = pb.WandbRecord()
        for key, value in items + more:
            record.history.item.add(key=key, value_json=value)
        record.history.item.add(nested_key=["train", "rate"], value_json="0.5")
        append(data, record.SerializeToString())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def append(data: bytearray, record: bytes) -> None:
    begun = False
    while record or not begun:
        left = 32_768 - len(data) % 32_768
        if left < 7:
            data += bytes(left)
            continue
        piece, record = record[: left - 7], record[left - 7 :]
        kind = (3 if begun else 2) if record else (4 if begun else 1)
        data += struct.pack("<IHB", 0, len(piece), kind) + piece
        begun = True


@pytest.mark.parametrize("factor", [1, 32], ids=["steps", "samples"])
def test_scalars_of_event_files_come_at_the_steps_of_the_record(factor: int, tmp_path: Path) -> None:
    event_file(tmp_path / "run", factor=factor)
    found = LoggedElsewhere(tmp_path / "run").scalars(TIMES, STEPS)
    assert set(found) == {"Loss/train", "rate"}
    loss = found["Loss/train"]
    assert loss.steps.tolist() == list(range(120))
    assert loss.values == pytest.approx(3.0 - 0.01 * np.arange(120))


@pytest.mark.parametrize("long", [False, True], ids=["short", "in several blocks"])
def test_scalars_of_a_wandb_run_are_found_beside_its_record(tmp_path: Path, *, long: bool) -> None:
    wandb_file(tmp_path / "wandb" / "offline-run-20261122_100000-ab12" / "run-ab12.wandb", long=long)
    found = LoggedElsewhere(tmp_path / "runs" / "wandb-ab12").scalars(TIMES, STEPS)
    assert set(found) == {"loss", "train.rate"}
    assert found["loss"].steps.tolist() == list(range(120))
    assert found["loss"].values == pytest.approx(3.0 - 0.01 * np.arange(120))


def test_steps_of_epochs_are_placed_by_their_time(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path)) as writer:
        for epoch, second in enumerate((-3.0, 10.1, 11.1, 40.1)):
            writer.add_scalar("epoch_loss", epoch, epoch, walltime=1_000.0 + second)
    found = LoggedElsewhere(tmp_path).scalars(TIMES, STEPS)["epoch_loss"]
    assert (found.steps.tolist(), found.values.tolist()) == ([20, 22, 80], [1.0, 2.0, 3.0])


def test_a_file_that_grows_is_read_on(tmp_path: Path) -> None:
    whole = event_file(tmp_path / "whole").read_bytes()
    growing = tmp_path / "growing"
    file, found = EventFile(growing), 0
    for stop in range(0, len(whole) + 1, 997):
        growing.write_bytes(whole[:stop])
        found += len([*file.new()])
    growing.write_bytes(whole)
    assert found + len([*file.new()]) == 240


@pytest.mark.parametrize("seed", range(20))
def test_damaged_files_give_what_can_be_read(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for kind, path in ((EventFile, event_file(tmp_path)), (WandbFile, wandb_file(tmp_path / "a.wandb", long=seed < 3))):
        data = bytearray(path.read_bytes())
        for _ in range(rng.randint(1, 30)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data[: rng.randrange(len(data))])
        for value in kind(path).new():
            assert isinstance(value.value, float)
        assert len(LoggedElsewhere(tmp_path).scalars(TIMES, STEPS)) < 300


@pytest.mark.parametrize(("kind", "name"), [(EventFile, "events.out.tfevents.1"), (WandbFile, "run.wandb")])
def test_terabytes_of_zeros_are_not_gone_through(kind: type[EventFile | WandbFile], name: str, tmp_path: Path) -> None:
    path = event_file(tmp_path) if kind is EventFile else wandb_file(tmp_path / name)
    with path.open("ab") as file:
        file.truncate(1 << 40)
    began = time.process_time()
    assert len([*kind(path).new()]) == 240
    assert time.process_time() - began < 5


def test_very_many_records_without_a_value_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_RECORDS", 100)
    event, piece = struct.pack("<QIBI", 1, 0, 0, 0), struct.pack("<IHB", 0, 0, 1)
    whole = event_file(tmp_path).read_bytes()
    (tmp_path / "events.out.tfevents.2").write_bytes(100 * event + whole)
    assert [*EventFile(tmp_path / "events.out.tfevents.2").new()] == []
    beginning, *_ = wandb_file(tmp_path / "a.wandb").read_bytes().partition(struct.pack("<IHB", 0, 0, 0))
    (tmp_path / "b.wandb").write_bytes(beginning[:8] + 100 * piece + beginning[8:])
    assert [*WandbFile(tmp_path / "b.wandb").new()] == []


def test_the_rules_see_a_loss_that_only_tensorboard_has(tmp_path: Path) -> None:
    write(tmp_path, SERIES, *(replace(frame(step), time=1_000.0 + step) for step in range(20)), logged([3], lr=[0.5]))
    model = open_run(tmp_path).model()
    assert set(Evidence(model).scalars) == {"lr"}
    with SummaryWriter(str(tmp_path)) as writer:
        for step in range(20):
            writer.add_scalar("train/loss", 3.0 - step, step, walltime=1_000.5 + step)
            writer.add_scalar("lr", 1.0, step, walltime=1_000.5 + step)
    scalars = Evidence(model).scalars
    assert scalars["train/loss"].values.tolist() == [3.0 - step for step in range(20)]
    assert scalars["lr"].values.tolist() == [0.5], "what the record has comes from there"
    assert set(model.scalars()) == {"lr"}


def test_values_that_are_read_on_are_placed_as_if_all_were_read_at_once(tmp_path: Path) -> None:
    growing = LoggedElsewhere(tmp_path)
    with SummaryWriter(str(tmp_path)) as writer:
        for step in range(120):
            writer.add_scalar("loss", -step, step, walltime=1_000.2 + step / 2)
            if step % 7 == 0:
                writer.flush()
            seen = len(STEPS) * (step + 1) // 120 + 1
            found = growing.scalars(TIMES[:seen], STEPS[:seen])
        writer.flush()
    found, at_once = growing.scalars(TIMES, STEPS), LoggedElsewhere(tmp_path).scalars(TIMES, STEPS)
    assert found["loss"].steps.tolist() == at_once["loss"].steps.tolist() == list(range(120))
    assert found["loss"].values.tolist() == at_once["loss"].values.tolist()
    assert growing.scalars(TIMES, STEPS)["loss"] is found["loss"], "what has not changed is not placed again"
