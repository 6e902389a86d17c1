"""Torch iterates over a module's hooks after an exception, and none may be removed meanwhile."""

from __future__ import annotations

from unittest import mock

import pytest
import torch
from torch import nn

from tests.listening import Listening
from torchgraph_explorer import TorchgraphWarning, watch
from torchgraph_explorer.capture.recorded_calls import RecordedCalls


@pytest.mark.parametrize("model", [nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 6), nn.ReLU())], ids=["alone", "parts"])
def test_a_fault_of_ours_leaves_an_exception_of_the_users_as_it_is(model: nn.Module) -> None:
    hooks = [dict(each._forward_hooks) for each in model.modules()]
    watchers = [watch(model, log_freq=1, backend=Listening(), verbose=False, name=name) for name in ("a", "b")]
    with mock.patch.object(RecordedCalls, "_hook_inputs", side_effect=RuntimeError("injected")):
        with pytest.warns(TorchgraphWarning), pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            model(torch.ones(1, 1))
        model(torch.ones(1, 6)).sum().backward()
    assert [dict(each._forward_hooks) for each in model.modules()] == hooks, "removed as soon as they can be"
    for watcher in watchers:
        watcher.close()
