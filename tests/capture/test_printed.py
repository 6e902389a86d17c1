"""What modules print by code of the user's: it may draw random numbers, which are set back after it."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
import torch
from torch import nn

from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.training.watcher import Watcher


class Printing(nn.Linear):
    """Notes in which threads it is asked what it prints."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.threads: list[int] = []

    def extra_repr(self) -> str:
        self.threads.append(threading.get_ident())
        return "scale=3"


def trained(model: nn.Module, heard: Listening) -> Watcher:
    """Watched, and trained for a step after which training pauses until that is handed over."""
    watcher = watch(model, backend=heard, log_freq=1, verbose=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(2, 2)).sum().backward()
    optimizer.step()
    end = time.monotonic() + 20
    while not heard.frames and time.monotonic() < end:
        time.sleep(0.02)
    return watcher


@pytest.mark.slow
def test_modules_are_asked_in_the_trainings_thread_alone_also_where_it_pauses() -> None:
    model, heard = nn.Sequential(Printing(), nn.ReLU()), Listening()
    printing: Any = model[0]
    trained(model, heard).close()
    [described] = [one for one in heard.graphs[0].modules if one.name == "0"]
    assert described.extra_repr == (("scale", "3"),)
    assert set(printing.threads) == {threading.get_ident()}


@pytest.mark.slow
def test_a_module_that_was_not_asked_is_not_asked_while_training_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchgraph_explorer.capture.captured_step.printed_by_users", lambda _modules: {})
    model, heard = nn.Sequential(Printing(), nn.ReLU()), Listening()
    printing: Any = model[0]
    trained(model, heard).close()
    assert printing.threads == []
    assert [one.extra_repr for one in heard.graphs[0].modules if one.name == "0"] == [()]
