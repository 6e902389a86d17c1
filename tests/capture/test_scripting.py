"""`torch.jit.script` of watched models."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.capture import scripting
from torchgraph_explorer.errors import TorchgraphWarning

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")


def test_a_model_is_recorded_after_it_was_scripted() -> None:
    model, listening = nn.Sequential(nn.Linear(3, 2), nn.ReLU()), Listening()
    with watch(model, log_freq=1, backend=listening, verbose=False):
        hooks = [list(one._forward_hooks.values()) for one in model.modules()]
        torch.jit.script(model)
        assert [list(one._forward_hooks.values()) for one in model.modules()] == hooks
        model(torch.ones(4, 3)).sum().backward()
    assert len(listening.frames) == 1


@pytest.mark.slow  # imports dynamo
def test_a_model_with_operations_in_its_compiled_form_is_scripted() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    compiled: Any = torch.compile(model, backend="eager")
    with watch(compiled, log_freq=1, backend=Listening(), compiled="inline", verbose=False):
        assert torch.jit.script(model)(torch.ones(4, 3)).shape == (4, 2)
        compiled(torch.ones(4, 3)).sum().backward()


def test_where_hooks_cannot_be_taken_off_it_says_so_and_torch_refuses_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: Any) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(scripting, "_taken_off", broken)
    model = nn.Linear(3, 2)
    with (
        watch(model, log_freq=1, backend=Listening(), verbose=False),
        pytest.warns(TorchgraphWarning, match=r"could not be taken off .* \(ValueError\('broken'\)\)"),
        pytest.raises(AttributeError, match="Hook"),
    ):
        torch.jit.script(model)
