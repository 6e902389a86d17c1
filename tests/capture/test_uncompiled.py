"""What torch's compiler leaves alone of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from torchgraph_explorer.capture.uncompiled import uncompiled


@dataclass
class Noting:
    """A compiler that compiles nothing and notes what it is given."""

    graphs: list[Any] = field(default_factory=list)

    def __call__(self, graph: torch.fx.GraphModule, _inputs: object) -> Callable[..., Any]:
        self.graphs.append(graph)
        return graph.forward


def doubled(tensor: Tensor) -> Tensor:
    return tensor * 2


def incremented(tensor: Tensor) -> Tensor:
    return tensor + 1


@pytest.mark.parametrize(("wrap", "graphs"), [(lambda act: act, 2), (uncompiled, 1)], ids=["as it is", "uncompiled"])
def test_a_function_of_ours_is_not_compiled_where_python_executes_its_caller(
    wrap: Callable[[Callable[[], object]], Callable[[], object]], graphs: int
) -> None:
    kept = [torch.ones(2)]
    ours = wrap(lambda: doubled(kept[0]))

    def users() -> Tensor:
        try:  # the compiler cannot go on behind the break within this
            torch._dynamo.graph_break()
            ours()
            return incremented(kept[0])
        finally:
            kept.append(kept[0])

    torch.compiler.reset()
    compiler = Noting()
    assert torch.compile(users, backend=compiler)().tolist() == [2.0, 2.0]
    assert len(compiler.graphs) == graphs
