"""What capture says of a step goes through the pipeline to the sinks and into the record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.listening import Listening
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.capture.observation import Observation
from torchgraph_explorer.schema import StepFacts
from torchgraph_explorer.training.pipeline import Pipeline

SAID = (StepFacts("update", 200, 4, ("Adam #2",)), None, StepFacts("skipped", 1, 1, ("SGD",)))


@pytest.fixture
def _said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Capture says `SAID` of the steps, one after the other."""
    take = Pipeline.take

    def taken(pipeline: Pipeline, observation: Observation) -> None:
        take(pipeline, replace(observation, facts=SAID[observation.step]))

    monkeypatch.setattr(Pipeline, "take", taken)


@pytest.mark.usefixtures("_said")
def test_what_capture_says_of_each_step_is_in_the_record(tmp_path: Path) -> None:
    model, heard = nn.Linear(2, 1), Listening()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, log_freq=1, backend=[heard, "record"], logdir=tmp_path, run="run", verbose=False):
        for _ in SAID:
            model(torch.randn(3, 2)).sum().backward()
            optimizer.step()
    assert tuple(frame.facts for frame in heard.frames) == SAID
    assert open_run(tmp_path / "run").model().facts == SAID
