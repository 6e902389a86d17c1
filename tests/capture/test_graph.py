"""The module graph: who was called inside whom, and where inputs came from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.listening import Listening, edges_by_name
from tests.models import (
    Attention,
    Branching,
    Checkpointed,
    Chunked,
    CompiledEntries,
    Custom,
    Digits,
    Keeper,
    Shared,
    TwoInputs,
    loss_of,
)
from torchgraph_explorer import attach, open_run, watch
from torchgraph_explorer.capture.graph_merging import with_gradients
from torchgraph_explorer.capture.path_gradients import edge_of, is_stale
from torchgraph_explorer.schema import Call, Edge, ModuleGraph, Node, TensorInfo


def graph_of(model: nn.Module, *args: Tensor, **kwargs: Tensor) -> ModuleGraph:
    heard = Listening()
    with watch(model, backend=heard, log_freq=1):
        loss_of(model(*args, **kwargs)).backward()
    return heard.graphs[-1]


DATA, GRADIENT = False, True

EDGES: dict[str, tuple[Callable[[], ModuleGraph], str, set[tuple[str, str, bool]]]] = {
    "two inputs": (
        lambda: graph_of(TwoInputs(), torch.randn(5, 6), side=torch.randn(5, 3)),
        "",
        {
            ("input[0]", "stem#0", DATA),
            ("input['side']", "side#0", DATA),
            ("stem#0", "merged", GRADIENT),
            ("side#0", "merged", GRADIENT),
            ("merged", "blocks#0", GRADIENT),
            ("blocks#0", "head#0", GRADIENT),
            ("blocks#0", "output['states'][0]", GRADIENT),
            ("head#0", "output['logits']", GRADIENT),
        },
    ),
    "in-place residual block": (
        lambda: graph_of(TwoInputs(), torch.randn(5, 6), side=torch.randn(5, 3)),
        "blocks.1",
        {
            ("input[0]", "blocks.1.first#0", GRADIENT),
            ("input[0]", "blocks.1.activation#1", GRADIENT),
            ("blocks.1.first#0", "blocks.1.activation#0", GRADIENT),
            ("blocks.1.activation#0", "blocks.1.second#0", GRADIENT),
            ("blocks.1.second#0", "blocks.1.activation#1", GRADIENT),
            ("blocks.1.activation#1", "output", GRADIENT),
        },
    ),
    "slices and chunks": (
        lambda: graph_of(Chunked(), torch.randn(4, 6)),
        "",
        {
            ("input[0]", "inner#0", DATA),
            ("input[0]", "outer#0", DATA),
            ("inner#0", "outer#0", GRADIENT),
            ("outer#0", "output", GRADIENT),
        },
    ),
    "no gradient": (
        lambda: graph_of(CompiledEntries(), torch.randn(4, 5)),
        "",
        {
            ("input[0]", "quiet#0", DATA),
            ("input[0]", "frozen#0", DATA),
            ("quiet#0", "loud#0", DATA),
            ("quiet#0", "output", DATA),
            ("frozen#0", "loud#0", DATA),
            ("loud#0", "output", GRADIENT),
        },
    ),
    "reentrant checkpoint": (
        lambda: graph_of(Checkpointed(reentrant=True), torch.randn(4, 6)),
        "",
        {
            ("input[0]", "stem#0", DATA),
            ("stem#0", "blocks.0#0", GRADIENT),
            ("blocks.0#0", "blocks.1#0", GRADIENT),
            ("blocks.1#0", "output", GRADIENT),
        },
    ),
    "handed back as it came": (
        lambda: graph_of(Custom(), torch.randn(3, 4)),
        "",
        {
            ("input[0]", "inner#0", DATA),
            ("input[0]", "output[1]", DATA),
            ("inner#0", "identity#0", GRADIENT),
            ("identity#0", "off#0", GRADIENT),
            ("identity#0", "output[0]", GRADIENT),
            ("off#0", "output[0]", GRADIENT),
        },
    ),
    "kept in an attribute": (
        lambda: graph_of(Keeper(), torch.randn(3, 4)),
        "",
        {
            ("input[0]", "writer#0", DATA),
            ("input[0]", "reader#0", DATA),
            ("writer#0", "reader#0", GRADIENT),
            ("reader#0", "output", GRADIENT),
        },
    ),
}


@pytest.mark.parametrize(("trace", "inside", "expected"), EDGES.values(), ids=EDGES)
def test_an_edge_runs_from_each_call_to_those_that_use_its_result(
    trace: Callable[[], ModuleGraph], inside: str, expected: set[tuple[str, str, bool]]
) -> None:
    assert edges_by_name(trace(), inside) == expected


def test_a_reused_module_is_a_node_for_each_call() -> None:
    graph = graph_of(Shared(), torch.randint(0, 11, (3, 7)))
    assert [(call.module, call.call) for call in graph.calls] == [
        ("", 0),
        ("embed", 0),
        ("mix", 0),
        ("mix", 1),
        ("mix", 2),
        ("head", 0),
    ]


def test_every_output_can_be_traced_back_to_an_input() -> None:
    for model, x in ((Digits(), torch.randn(2, 1, 8, 8)), (Attention(), torch.randn(2, 5, 8))):
        graph = graph_of(model, x)
        sources: dict[int, set[int]] = {}
        for edge in graph.edges:
            sources.setdefault(edge.target, set()).add(edge.source)
        for i, node in enumerate(graph.nodes):
            if node.kind == "output" and node.inside == 0:
                todo, seen = [i], set()
                while todo:
                    here = todo.pop()
                    seen.add(here)
                    todo += sources.get(here, set()) - seen
                assert any(graph.nodes[each].kind == "input" for each in seen)


def test_a_dimension_that_varies_is_left_open() -> None:
    model, heard = Digits(), Listening()
    with watch(model, backend=heard, log_freq=1):
        for batch in (4, 2, 4):
            model(torch.randn(batch, 1, 8, 8)).sum().backward()
    assert [graph.id for graph in heard.graphs] == [0, 0], "written again once, when it changed"
    first, last = heard.graphs
    assert first.calls[0].inputs[0].shape == (4, 1, 8, 8)
    assert (last.calls[0].inputs[0].shape, last.calls[0].inputs[0].varied) == ((None, 1, 8, 8), ((4, 2),))
    assert next(node for node in last.nodes if node.kind == "input").tensor == last.calls[0].inputs[0]


class Descending(nn.Module):
    """Takes a gradient within its forward pass, for which a part is computed again."""

    def __init__(self) -> None:
        super().__init__()
        self.energy, self.head = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        low = checkpoint(self.energy, x, use_reentrant=False)
        [slope] = torch.autograd.grad(low.square().sum(), x)
        result: Tensor = self.head(x - slope)
        return result


def test_a_recomputation_within_the_forward_pass_is_no_call() -> None:
    graph = graph_of(Descending(), torch.randn(4, 3))
    assert [(call.module, call.call) for call in graph.calls] == [("", 0), ("energy", 0), ("head", 0)]


class Picking(nn.Module):
    """Returns some of the rows."""

    rows = 2

    def forward(self, x: Tensor) -> Tensor:
        return x[: self.rows] * 2


class Total(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.pick = nn.Linear(3, 3), Picking()

    def forward(self, x: Tensor) -> Tensor:
        return self.pick(self.layer(x)).sum()


def test_a_dimension_that_varies_in_the_output_of_one_module_alone_is_left_open() -> None:
    model, heard = Total(), Listening()
    with watch(model, backend=heard, log_freq=1):
        for model.pick.rows in (2, 2, 3, 3):  # the first step is traced, and the one after a change
            model(torch.randn(4, 3)).backward()
    [picked] = [call for call in heard.graphs[-1].calls if call.module == "pick"]
    assert (picked.inputs[0].shape, picked.outputs[0].shape) == ((4, 3), (None, 3))


def test_a_model_that_changes_its_way_has_a_graph_for_each() -> None:
    model, heard = Branching(), Listening()
    with watch(model, backend=heard, log_freq=1) as watcher:
        for _ in range(8):
            model(torch.randn(2, 4)).sum().backward()
        model(torch.randn(2, 4)).sum().backward()
        assert len(watcher.graphs) == 2
    assert [[call.module for call in graph.calls] for graph in heard.graphs] == [["", "left"], ["", "right", "right"]]
    assert [frame.graph for frame in heard.frames] == [0, None, 0, 1, 0, 1, 0, 1, 0]


def test_module_facts_say_what_the_module_says_of_itself() -> None:
    graph = graph_of(Digits(), torch.randn(2, 1, 8, 8))
    facts = {module.name: module for module in graph.modules}
    assert facts["stem"].class_name == "Conv2d"
    assert facts["stem"].class_path == "torch.nn.modules.conv.Conv2d"
    assert facts["stem"].extra_repr == (
        ("in_channels", "1"),
        ("out_channels", "4"),
        ("kernel_size", "(3, 3)"),
        ("stride", "(1, 1)"),
        ("padding", "(1, 1)"),
    )
    assert (facts["stem"].own_params, facts[""].own_params) == (40, 0)
    assert facts[""].total_params == sum(p.numel() for p in Digits().parameters())


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_a_module_that_is_gone_after_its_step_is_in_the_graph_of_that_step(change: str, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.Tanh())
    with watch(model, backend="record", logdir=tmp_path, run="cut", log_freq=1, verbose=False):
        for step in range(4):
            if step == 1 and change == "removed":
                del model[3]
            elif step == 1:
                model[3] = nn.Sigmoid()
            model(torch.randn(2, 3)).sum().backward()
    first, *others = open_run(tmp_path / "cut").model().graphs
    assert {call.module for call in first.calls} == {module.name for module in first.modules}
    assert [module.class_name for module in first.modules] == ["Sequential", "Linear", "ReLU", "Linear", "Tanh"]
    assert ["3" in {module.name for module in graph.modules} for graph in others] == [False] * (change == "removed")


def test_attaching_needs_no_assignment_and_may_repeat() -> None:
    class Attaches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            y = self.inner(x)
            attach({"a": y, "b": [y * 2]}, self, "both")
            attach(y, self, "again")
            attach(y, self, "again")
            return y.relu()

    model, heard = Attaches(), Listening()
    with watch(model, backend=heard, log_freq=1):
        model(torch.randn(2, 3)).sum().backward()
    assert edges_by_name(heard.graphs[0]) == {
        ("input[0]", "inner#0", DATA),
        ("inner#0", "both['a']", GRADIENT),
        ("inner#0", "both['b'][0]", GRADIENT),
        ("both['a']", "again", GRADIENT),
        ("again", "again #2", GRADIENT),
        ("again #2", "output", GRADIENT),
    }
    assert ("", 0, "attached", "again #2", "value") in heard.recorded()
    assert ("", 0, "attached", "again", "grad_norm") in heard.recorded()


def test_attach_without_a_watch_is_the_identity() -> None:
    x = torch.randn(2)
    assert attach(x, nn.Identity(), "x") is x
    nested = {"x": [x]}
    assert attach(nested, nn.Identity(), "x") is nested


def test_looking_at_a_stale_view_leaves_it_stale() -> None:
    base = torch.randn(3, 7, requires_grad=True) * 1
    view = base[:, :5]
    assert not is_stale(view)
    base.mul_(2)
    version = view._version
    assert is_stale(view)
    assert is_stale(view)
    assert edge_of(view)[0].next_functions == ((base.grad_fn, 0),)
    assert view._version == version
    view.sin()
    assert not is_stale(view)
    base.mul_(2)
    assert is_stale(view), "it is as sensitive to writes as before"


def test_a_view_that_is_a_leaf_is_not_taken_for_stale() -> None:
    leaf = torch.randn(3, 7)[:, None].requires_grad_()
    assert not is_stale(leaf)
    leaf.sin()
    assert edge_of(leaf) == edge_of(leaf)


def test_edges_from_a_stale_view_have_their_gradient() -> None:
    class Stale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(6, 6), Sine()

        def forward(self, x: Tensor) -> Tensor:
            y = self.first(x)
            view = y[:, :3]
            y.mul_(2)
            return self.second(view, y)

    class Sine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Tanh()

        def forward(self, view: Tensor, base: Tensor) -> Tensor:
            return base.sin().sum() + self.inner(view.sin()).sum()

    graph = graph_of(Stale(), torch.randn(2, 6))
    assert edges_by_name(graph, "second") == {
        ("input[0]", "second.inner#0", GRADIENT),
        ("second.inner#0", "output", GRADIENT),
        ("input[1]", "output", GRADIENT),
    }
    assert ("first#0", "second#0", GRADIENT) in edges_by_name(graph, "")


@pytest.mark.parametrize("backward", [True, False], ids=["after the backward pass", "without a backward pass"])
def test_the_graph_is_there_when_the_first_forward_pass_is_over(backward: bool) -> None:
    model, heard = Digits(), Listening()
    seen = []
    with watch(model, backend=heard, log_freq=2, verbose=False) as watcher:
        model.head.register_forward_hook(lambda *_: seen.append(watcher.graph))
        assert watcher.graph is None
        for _ in range(2):  # of which the second is not logged, and not traced
            out = model(torch.randn(2, 1, 8, 8))
            seen.append(watcher.graph)
            if backward:
                out.sum().backward()
                seen.append(watcher.graph)
            del out  # it would keep the step waiting
    assert seen[0] is None, "in the middle of the first step there is no graph yet"
    assert seen[1:] == [heard.graphs[0]] * (len(seen) - 1)
    assert watcher.graph == heard.graphs[0]


def test_a_step_that_is_not_traced_has_the_graph_of_one_that_was() -> None:
    model, heard, seen = Digits(), Listening(), []
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        for _ in range(3):
            model(torch.randn(2, 1, 8, 8)).sum().backward()
            seen.append(watcher.graph)
        assert len(watcher.graphs) == 1
    assert seen == heard.graphs * 3


def test_layers_that_are_unfrozen_get_gradient_in_the_graph() -> None:
    model, heard = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3))), Listening()
    model[:2].requires_grad_(False)
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        for step in range(8):
            if step == 3:
                model.requires_grad_(True)
            model(torch.randn(2, 4)).sum().backward()
            if step == 3:
                frozen = watcher.graph
        thawed = watcher.graph
        model[:2].requires_grad_(False)
        for _ in range(3):
            model(torch.randn(2, 4)).sum().backward()
        assert watcher.graph == thawed
    assert len(watcher.graphs) == 1
    assert frozen is not None
    assert thawed is not None
    assert [
        next(edge for edge in edges_by_name(graph) if edge[:2] == ("1#0", "2#0")) for graph in (frozen, thawed)
    ] == [("1#0", "2#0", False), ("1#0", "2#0", True)]
    assert [len(edge.series) for edge in thawed.edges] == [0, 1, 1, 1]
    assert [module.trainable_params for module in thawed.modules] == [60, 20, 20, 20]
    assert [module.trainable_params for module in frozen.modules] == [20, 0, 0, 20]
    assert all(info.requires_grad for call in thawed.calls for info in call.outputs)


def test_a_graph_with_other_nodes_is_replaced_where_more_gradient_flows() -> None:
    old, new = TensorInfo("output", (2,), "float32", False), TensorInfo("output", (2,), "float32", True)
    calls = tuple(Call("a", 0, None, (), (info,)) for info in (old, new))
    node, other = Node("call", None, call=0), Node("input", None, tensor=old)
    known = ModuleGraph(0, 0, (), calls[:1], (node, node), (Edge(0, 1, gradient=True),))
    traced = ModuleGraph(
        0, 5, (), calls[1:], (node, node, other), (Edge(0, 1, gradient=False), Edge(2, 1, gradient=True))
    )
    merged = with_gradients(known, traced)
    assert (merged.id, merged.first_step, merged.calls) == (0, 0, calls[1:])
    assert (merged.nodes, merged.edges) == (traced.nodes, traced.edges)
    assert with_gradients(merged, known) is merged


def test_a_step_that_goes_on_shows_what_it_has_called_so_far() -> None:
    model, heard = Digits(), Listening()
    with watch(model, backend=heard, log_freq=1, verbose=False) as watcher:
        first = model(torch.randn(2, 1, 8, 8))
        before = watcher.graph
        loss = first.sum() + model(torch.randn(2, 1, 8, 8)).sum()
        after = watcher.graph
        loss.backward()
    assert before is not None
    assert after is not None
    assert 2 * len(before.calls) == len(after.calls)
    assert heard.graphs == [after]
