"""The dependency graph of named tensors: which is computed from which, and where gradient flows."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from torchgraph_explorer import Keep, NotFoundError, OptionError, attach, open_run, watch
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import TensorGraph
from torchgraph_explorer.training.watcher import Watcher


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.unused = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)


class Chain(Block):
    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x).relu())


class Residual(Block):
    """The same tensor goes into two modules, and past both."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.a(x)
        return y + self.b(y)


class Detached(Block):
    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x).detach())


class NotDifferentiable(Block):
    def forward(self, x: Tensor) -> Tensor:
        best = attach(self.a(x).argmax(-1), self, "best")
        return self.b(nn.functional.one_hot(best, 4).float())


class InPlace(Block):
    """What `a` returned is overwritten, through a view, by what `b` returned."""

    def forward(self, x: Tensor) -> Tensor:
        y, z = self.a(x) * 1, self.b(x)
        y[:, :2].mul_(0).add_(z[:, :2])
        return attach(y * 1, self, "mixed")


class Twice(Block):
    def forward(self, x: Tensor) -> Tensor:
        return self.a(self.a(x))


class Tied(Block):
    def __init__(self) -> None:
        super().__init__()
        self.b.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.b.weight)


class NoGrad(Block):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = self.a(x)
        return self.b(y)


class Checkpointed(Block):
    reentrant = False

    def forward(self, x: Tensor) -> Tensor:
        return self.b(checkpoint(self.a, x.requires_grad_(), use_reentrant=self.reentrant))


class Reentrant(Checkpointed):
    reentrant = True


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x + attach(self.inside(x), self, "part")


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Inner()

    def forward(self, x: Tensor) -> Tensor:
        return self.block(x * 2) * 3


class Returned(Block):
    """A module returns its argument, and a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.identity = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.identity(self.a(x)))


@dataclass(frozen=True)
class Expected:
    """A model, what is kept of it, and its edges: `a>b` with gradient, `a.b` without."""

    make: Callable[[], nn.Module]
    keep: tuple[str, ...]
    edges: str


CASES = {
    "chain": Expected(
        Chain,
        ("a", "b", ":output"),
        "input[0].a a:weight>a a:bias>a a>b b:weight>b b:bias>b b>:output",
    ),
    "fewer names": Expected(Chain, ("b",), "input[0].b a:weight>b a:bias>b b:weight>b b:bias>b"),
    "inputs have names": Expected(
        Chain,
        ("a", "b:input", "b"),
        "input[0].a a:weight>a a:bias>a a>b:input b:input>b b:weight>b b:bias>b",
    ),
    "residual": Expected(
        Residual,
        ("a", "b:input", "b", ":output"),
        "input[0].a a:weight>a a:bias>a a>b:input b:input>b b:weight>b b:bias>b a>:output b>:output",
    ),
    "detached": Expected(Detached, ("a", "b"), "input[0].a a:weight>a a:bias>a a.b b:weight>b b:bias>b"),
    "not differentiable": Expected(
        NotDifferentiable,
        ("a", "best", "b"),
        "input[0].a a:weight>a a:bias>a a.best best.b b:weight>b b:bias>b",
    ),
    "in place": Expected(
        InPlace,
        ("a", "b", "mixed"),
        "input[0].a a:weight>a a:bias>a input[0].b b:weight>b b:bias>b a>mixed b>mixed",
    ),
    "several iterations": Expected(
        Twice,
        ("a",),
        "input[0].a a:weight>a a:bias>a a>a@1 a:weight>a@1 a:bias>a@1",
    ),
    "tied": Expected(Tied, (":output",), "input[0].:output a:weight>:output b:weight>:output"),
    "no_grad": Expected(NoGrad, ("a", "b"), "input[0].a a:weight.a a:bias.a a.b b:weight>b b:bias>b"),
    "checkpointed": Expected(Checkpointed, ("b",), "input[0]>b a:weight>b a:bias>b b:weight>b b:bias>b"),
    "nested": Expected(
        Nested,
        ("block", "block:input", "part"),
        "input[0].block:input block.inside:weight>block.part block.inside:bias>block.part "
        "block:input.block.part block:input.block block.part>block",
    ),
    "returned as it came": Expected(
        Returned,
        ("a", "identity", "b"),
        "input[0].a a:weight>a a:bias>a a>identity identity>b b:weight>b b:bias>b",
    ),
}


def words(graph: TensorGraph) -> set[str]:
    """The edges in the words of `Expected`."""

    def name(at: int) -> str:
        one = graph.tensors[at]
        if one.kind == "parameter":
            return f"{one.module}:{one.path}"
        if one.kind == "input":
            return one.path
        return one.node_name if not one.call else one.node_key

    return {f"{name(edge.source)}{'>' if edge.gradient else '.'}{name(edge.target)}" for edge in graph.edges}


def recorded(folder: Path, model: nn.Module, keep: Keep, *, steps: int = 1, **options: object) -> Model:
    with watch(
        model,
        log_freq=1,
        backend="record",
        logdir=folder,
        run="run",
        keep=keep,
        verbose=False,
        **options,  # type: ignore[arg-type]
    ) as watcher:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(3, 4)).sum().backward()
            optimizer.step()
    return open_run(str(watcher.run_dir)).model()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_graph_has_the_edges_that_the_code_makes(case: Expected, tmp_path: Path) -> None:
    model = recorded(tmp_path, case.make(), Keep(*case.keep), steps=2)
    for step in (0, 1):
        assert words(model.tensor_graph(step)) == set(case.edges.split())


def test_an_unused_parameter_has_no_edge(tmp_path: Path) -> None:
    graph = recorded(tmp_path, Chain(), Keep("a")).tensor_graph(0)
    (unused,) = [node for node in graph.nodes if node.module == "unused"]
    assert (unused.key, unused.kind, len(unused.tensors)) == ("unused:param", "parameter", 2)
    assert not {edge.source for edge in graph.edges} & set(unused.tensors)


def loop(folder: Path, act: Callable[[Watcher, Tensor, Tensor], None], *, steps: int = 2) -> Model:
    model = Chain()
    with watch(
        model, log_freq=1, backend="record", logdir=folder, run="run", keep=Keep("a", "b", "*"), verbose=False
    ) as watcher:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(steps):
            x, target = torch.randn(3, 4), torch.randn(3, 4)
            attach(target, name="target", kind="target")
            result = model(x)
            act(watcher, result, target)
            optimizer.step()
            optimizer.zero_grad()
    return open_run(str(watcher.run_dir)).model()


def of_loop(model: Model, step: int = 0) -> set[str]:
    return {edge for edge in words(model.tensor_graph(step)) if "loss" in edge or "target" in edge or "part" in edge}


def test_edges_in_the_loop_come_from_autograd(tmp_path: Path) -> None:
    def act(_: Watcher, result: Tensor, target: Tensor) -> None:
        part = attach((result - target).square(), name="part")
        loss = attach(part.mean(), name="loss", kind="loss")
        loss.backward()

    model = loop(tmp_path, act)
    assert of_loop(model) == of_loop(model, 1) == {":output>part", "part>loss"}
    kinds = {node.key: node.kind for node in model.tensor_graph(0).nodes}
    assert (kinds["loss"], kinds["target"], kinds["part"]) == ("loss", "target", "intermediate")


def test_an_edge_that_autograd_does_not_see_is_connected(tmp_path: Path) -> None:
    def act(watcher: Watcher, result: Tensor, target: Tensor) -> None:
        part = attach((result.detach() - target).square(), name="part")
        watcher.connect(result, part)
        watcher.connect("target", "part")
        loss = attach(result.mean(), name="loss", kind="loss")
        watcher.connect(target, "loss")
        loss.backward()

    assert of_loop(loop(tmp_path, act)) == {":output.part", "target.part", ":output>loss", "target.loss"}


def test_what_is_no_tensor_and_no_name_is_not_connected(tmp_path: Path) -> None:
    def act(watcher: Watcher, *_: Tensor) -> None:
        with pytest.raises(OptionError, match=r"watcher.connect\(\) was given int"):
            watcher.connect(3, "loss")  # type: ignore[arg-type]

    loop(tmp_path, act)


def test_two_variants_that_name_the_same_tensors_have_the_same_graph(tmp_path: Path) -> None:
    class Other(Chain):
        def forward(self, x: Tensor) -> Tensor:
            y = self.a(x)
            return self.b(torch.where(y > 0, y, 0.1 * y).clone() + 0)

    keep = Keep("a", "b", ":output")
    one = recorded(tmp_path / "one", Chain(), keep).tensor_graph(0)
    other = recorded(tmp_path / "other", Other(), keep).tensor_graph(0)
    assert one == other


def test_the_graph_is_made_once_for_each_way_of_calling(tmp_path: Path) -> None:
    model = recorded(tmp_path, Chain(), Keep("a", log_freq=2), steps=5)
    assert model.kept.steps.tolist() == [0, 2, 4]
    graphs = [model.tensor_graph(step) for step in (0, 2, 4)]
    assert graphs[0] == graphs[1] == graphs[2]
    assert len(graphs[0].edges) == 3
    with pytest.raises(NotFoundError, match="No tensor was kept at step 1"):
        model.tensor_graph(1)


def test_the_autograd_graph_is_not_kept_alive(tmp_path: Path) -> None:
    class Hook:
        def __call__(self, *_: object) -> None: ...

    model, alive = Chain(), []
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, keep=Keep("*", "*:input"), verbose=False):
        result = model(torch.randn(3, 4))
        hook = Hook()
        assert result.grad_fn is not None
        result.grad_fn.register_hook(hook)
        alive.append(weakref.ref(hook))
        attach(result, name="result")
        del result, hook
        assert alive[0]() is None
