"""Which thread calls what: the table in `torchgraph_explorer/training/__init__.py`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn

import torchgraph_explorer
from tests.listening import Listening
from tests.processes import wait_for
from torchgraph_explorer import watch
from torchgraph_explorer.capture import unwrap
from torchgraph_explorer.schema import Record

pytestmark = pytest.mark.slow

PACKAGE = Path(torchgraph_explorer.__file__).parent
TRAINING = threading.main_thread().name
WRITER, IDLE_TIMER = "torchgraph-writer", "torchgraph-idle"
ASKING = "torchgraph-asking"

Called = dict[str, set[str]]
"""For each thread: what it called, as `record.writer.write`."""


@contextmanager
def calls_by_thread() -> Iterator[Called]:
    """Note every function of this package that is called, with the name of the thread that calls it."""
    called: Called = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)):
            module = ".".join(Path(file).relative_to(PACKAGE).with_suffix("").parts)
            called.setdefault(threading.current_thread().name, set()).add(f"{module}.{frame.f_code.co_name}")

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def train(sink: Any, folder: Path) -> Called:
    """A training with an evaluation and an optimizer. The idle timer hands over its last step."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with calls_by_thread() as called:
        watcher = watch(
            model,
            log_freq=1,
            backend=["standalone", "tensorboard", sink],
            logdir=folder,
            port=0,
            phases=("train", "eval"),
            optimizer=optimizer,
            scaler=torch.amp.GradScaler("cpu"),
            verbose=False,
        )
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(5, 3)).square().mean().backward()
            optimizer.step()
            watcher.log({"loss": torch.tensor(1.0)})
        with torch.no_grad():
            model(torch.randn(5, 3))
        assert wait_for(lambda: all(one.tracker._current.one is None for one in watcher._pipelines), 10)
        watcher.close()
    return called


RECORD_IN_TRAINING = {
    "record.writer.__init__": "makes a writer, which opens nothing yet",
    "record.definitions.__init__": "the same",
    "record.remote.is_url": "looks at the text of a path",
}
"""What the training's thread may call of `record`, and why it touches no store."""

FACTS_IN_WRITER = tuple(
    f"capture.facts.{each}."
    for each in (
        "answers",
        "directions",
        "late",
        "leftover",
        "operations",
        "pending",
        "standardised",
        "step_facts",
        "units",
    )
)
"""What the writer's thread calls of `capture`: what `PendingFacts` works out of the numbers of a step that is over."""

SINKS_IN_TRAINING = ("sinks.__init__.", "sinks.live_viewer.")


def breaches(called: Called) -> list[str]:
    """What a thread called that is another one's."""
    not_for: dict[str, Callable[[str], bool]] = {
        TRAINING: lambda name: (
            (name.startswith("record.") and name not in RECORD_IN_TRAINING)
            or (name.startswith("sinks.") and not name.startswith(SINKS_IN_TRAINING))
        ),
        WRITER: lambda name: name.startswith("capture.") and not name.startswith(FACTS_IN_WRITER),
        IDLE_TIMER: lambda name: name.startswith(("record.", "sinks.")),
        ASKING: lambda name: name.startswith(("capture.", "reduce.")),
    }
    return sorted(f"{thread}: {name}" for thread in not_for for name in called.get(thread, ()) if not_for[thread](name))


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Called:
    return train(Listening(), tmp_path_factory.mktemp("runs"))


def test_no_thread_calls_what_is_another_ones(called: Called) -> None:
    assert breaches(called) == []


@pytest.mark.parametrize(
    ("thread", "name"),
    [
        (TRAINING, "capture.forward_recorder.begin"),
        (TRAINING, "reduce.batch.values"),
        (TRAINING, "training.writer_thread.put"),
        (IDLE_TIMER, "capture.step_tracker.settle"),
        (IDLE_TIMER, "training.pipeline.take"),
        (WRITER, "record.writer.write"),
        (WRITER, "record.segments.put"),
        (ASKING, "training.run_folder.make_folder"),
    ],
)
def test_each_thread_does_its_part(thread: str, name: str, called: Called) -> None:
    assert name in called[thread]


class Asking(Listening):
    """A sink that asks capture something."""

    def write(self, record: Record) -> None:
        super().write(record)
        unwrap.unwrapped(nn.Linear(1, 1))


def test_a_sink_that_calls_back_into_capture_would_be_seen(tmp_path: Path) -> None:
    assert breaches(train(Asking(), tmp_path)) == [f"{WRITER}: capture.unwrap.unwrapped"]
