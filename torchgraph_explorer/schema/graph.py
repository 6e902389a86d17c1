"""The modules of a model, their calls in a step, and how data went between them."""

from __future__ import annotations

from dataclasses import dataclass

from torchgraph_explorer.schema.words import NodeKind, SeriesKey, Shape
from torchgraph_explorer.unvisited import Unvisited


@dataclass(frozen=True, slots=True)
class TensorInfo(Unvisited):
    """The facts about a tensor besides its values.

    Attributes:
        path: Where it sits: `input[0]`, `input['mask']`, `output.logits`, `output`; a parameter's or attached tensor's
            name.
        shape: Its dimensions; None for a dimension that varied between calls.
        dtype: As torch prints it, without `torch.`: `float32`.
        requires_grad: Gradient reaches it.
        varied: The first sizes that were seen of each None in `shape`; empty if they are not known.
    """

    path: str
    shape: Shape
    dtype: str
    requires_grad: bool
    varied: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Module(Unvisited):
    """An `nn.Module` of the watched model.

    Attributes:
        name: Qualified name as in `named_modules()`; empty for the model itself.
        class_name: `Conv2d`.
        class_path: `torch.nn.modules.conv.Conv2d`.
        extra_repr: The module's `extra_repr`, as (key, value) rows; the key is empty for a value without a name that is
            not an argument of its class either.
        params: Its immediate parameters.
        own_params: Elements in its immediate parameters.
        total_params: Elements in its own and its submodules' parameters, shared ones once; also those of submodules
            that are equal to others, which `parameters()` leaves out.
        trainable_params: Those of `total_params` that require a gradient.
        forward_parameters: Names of the parameters of `forward` that take positional arguments, `*args` with its star;
            empty if they are not known.
    """

    name: str
    class_name: str
    class_path: str
    extra_repr: tuple[tuple[str, str], ...]
    params: tuple[TensorInfo, ...]
    own_params: int
    total_params: int
    trainable_params: int
    forward_parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call(Unvisited):
    """One invocation of a module within a step.

    Attributes:
        module: The module's qualified name.
        call: 0 for the module's first call in the step, 1 for its second, and so on.
        parent: Index in `ModuleGraph.calls` of the call it happened in; None for a call of the model itself.
        inputs: Tensors among its arguments, in order.
        outputs: Tensors in what it returned, in order.
    """

    module: str
    call: int
    parent: int | None
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


@dataclass(frozen=True, slots=True)
class Node(Unvisited):
    """A box in the drawing of a call's inside.

    Attributes:
        kind: A placeholder for one input or output tensor of the call, a child call, or an attached tensor.
        inside: Index in `ModuleGraph.calls` of the call whose inside it belongs to; None at the top, where the calls of
            the model itself are. A call that only has inputs and outputs inside has no nodes there.
        call: The child call it stands for, as an index in `ModuleGraph.calls`; None for the other kinds.
        tensor: The tensor it stands for; None for a call.
    """

    kind: NodeKind
    inside: int | None
    call: int | None = None
    tensor: TensorInfo | None = None


@dataclass(frozen=True, slots=True)
class Edge(Unvisited):
    """Data went from one node to another of the same inside.

    Attributes:
        source: Index in `ModuleGraph.nodes`.
        target: Index in `ModuleGraph.nodes`.
        gradient: Gradient flows back along it; False where only data goes.
        series: `Series.key` of each series of the gradients that come back along it: several if several tensors go
            along it; none if they are not recorded.
    """

    source: int
    target: int
    gradient: bool
    series: tuple[SeriesKey, ...] = ()


@dataclass(frozen=True, slots=True)
class ModuleGraph:
    """Who was called inside whom in one step, and where each call's inputs came from.

    Attributes:
        id: Number of the graph within its model; the same id written again replaces the earlier one.
        first_step: The step it was first seen at.
        modules: Every module of the model, in `named_modules()` order.
        calls: In the order in which they began; a parent stands before its children.
        nodes: All insides together.
        edges: Between nodes of one inside.
    """

    id: int
    first_step: int
    modules: tuple[Module, ...]
    calls: tuple[Call, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
