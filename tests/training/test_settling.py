"""A step after which nothing comes, which the idle timer's thread hands over."""

from __future__ import annotations

import pytest
import torch

from tests.listening import Listening
from tests.models import Digits
from tests.processes import wait_for
from torchgraph_explorer import watch
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.training.pipeline import Pipeline


def test_nothing_of_a_step_stays_that_cannot_be_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: Pipeline, _observation: object) -> None:
        raise RuntimeError("the GPU failed")

    monkeypatch.setattr(Pipeline, "take", fail)
    model, heard = Digits(), Listening()
    with watch(model, log_freq=2, backend=heard, verbose=False):
        model(torch.randn(2, 1, 8, 8)).sum().backward()
        with pytest.warns(TorchgraphWarning, match="the GPU failed") as told:
            assert wait_for(lambda: len(told) > 0)  # another thread warns, after it has noted the failure
        assert any("the GPU failed" in str(record) for record in heard.records)
        model(torch.randn(2, 1, 8, 8)).sum().backward()  # it is not logged
        hooked = [name for name, one in model.named_modules() if name and one._forward_hooks]
        assert not hooked
        assert not process_state.attach_targets._threads
