"""Which optimizers are a model's, where its parameters come and go."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call

from torchgraph_explorer.capture.optimizer_steps import ModelOptimizers


def test_a_parameter_with_the_id_of_one_that_is_gone_is_not_the_model_s() -> None:
    model, other = nn.Linear(3, 3), nn.Parameter(torch.zeros(1))
    optimizers = ModelOptimizers(model)
    optimizers._places[id(other)] = optimizers._places[id(model.bias)]  # as if it had been made in that place
    model.register_parameter("bias", None)
    assert not optimizers.moves(torch.optim.SGD([other], 0.1), model)
    del model.bias
    assert not optimizers.moves(torch.optim.SGD([other], 0.1), model)
    assert optimizers.moves(torch.optim.SGD([other, model.weight], 0.1), model)


def test_a_parameter_that_was_replaced_is_not_the_model_s_any_more() -> None:
    model = nn.Linear(3, 3)
    optimizers, old = ModelOptimizers(model), torch.optim.SGD([model.bias], 0.1)
    model.bias = nn.Parameter(torch.zeros(3))
    assert not optimizers.moves(old, model)
    assert optimizers.moves(torch.optim.SGD([model.bias], 0.1), model)


def test_the_parameters_of_a_model_are_its_own_in_a_call_by_torch_func() -> None:
    """Tensors stand in their places then."""
    answers = []

    class Asking(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            answers.append(optimizers.moves(optimizer, self))
            return super().forward(x)

    model = Asking(3, 3)
    optimizers, optimizer = ModelOptimizers(model), torch.optim.SGD(model.parameters(), 0.1)
    other = {name: torch.zeros_like(one) for name, one in model.named_parameters()}
    functional_call(model, other, (torch.zeros(1, 3),))
    assert answers == [True]
