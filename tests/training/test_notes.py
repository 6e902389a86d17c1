"""Notes on what is not recorded reach the record and the sinks while the training goes on."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest
import torch
from torch import nn

from tests.listening import Listening
from tests.processes import wait_for
from tests.record.examples import SESSION
from torchgraph_explorer import TorchgraphWarning, open_run, watch
from torchgraph_explorer.capture.silence import MOST_UPDATES
from torchgraph_explorer.schema import Finished, Noted
from torchgraph_explorer.training.writer_thread import MOST_NOTES, Step, WriterThread


def evaluate(model: nn.Module) -> None:
    """Updates a model that is only called without gradients, so often that this is noted."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    for _ in range(MOST_UPDATES + 1):
        with torch.no_grad():
            model(torch.ones(1, 2))
        optimizer.step()


def test_the_reason_for_an_empty_record_is_in_it_before_the_training_ends(tmp_path: Path) -> None:
    model, heard = nn.Linear(2, 1).eval(), Listening()
    with watch(model, backend=["record", heard], logdir=tmp_path, run="run", verbose=False) as watcher:
        with pytest.warns(TorchgraphWarning, match="no step was recorded in the first") as warned:
            evaluate(model)
        [said] = {str(one.message) for one in warned}
        assert "It was only called in eval mode" in said
        assert wait_for(lambda: any(isinstance(one, Noted) for one in heard.records))
        [noted] = [one.text for one in heard.records if isinstance(one, Noted)]
        assert open_run(tmp_path / "run").model().notes == (noted,)
        assert noted in said
        with pytest.warns(TorchgraphWarning, match="no step was recorded"):
            watcher.close()
    assert noted in heard.finished.notes


def test_steps_that_all_fail_are_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: WriterThread, step: Step) -> None:
        raise RuntimeError(f"the GPU failed at {step.step}")

    monkeypatch.setattr(WriterThread, "_write_step", fail)
    model, heard = nn.Linear(2, 1), Listening()

    def train() -> None:
        with watch(model, log_freq=1, backend=heard, verbose=False):
            for _ in range(5):
                model(torch.ones(1, 2)).sum().backward()

    with pytest.warns(TorchgraphWarning, match="Step 0 is not recorded") as warned:
        train()
    assert len(warned) == 1
    first, last = heard.finished.notes
    assert "the GPU failed at 0" in first
    assert last == "5 logged steps (0 to 4) could not be measured or written."


@pytest.mark.filterwarnings("ignore::torchgraph_explorer.TorchgraphWarning")
def test_no_more_than_so_many_notes_are_written_before_the_end() -> None:
    heard = Listening()
    writer = WriterThread(SESSION, [heard], now=lambda: 5.0)
    sentences = [f"Note {number}." for number in range(100)]
    for sentence in sentences * 2:
        writer.note(sentence)
    writer.end()
    writer.wait(monotonic() + 30)
    assert heard.records[1:-1] == [Noted(5.0, sentence) for sentence in sentences[:MOST_NOTES]]
    assert heard.records[-1] == Finished(5.0, tuple(sentences), None)
