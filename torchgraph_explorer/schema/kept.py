"""Tensors that are kept whole, and the graph of which is computed from which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.schema.words import Kind, Role, TensorKind


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """A tensor in the dependency graph of named tensors.

    Attributes:
        module: Qualified name of the module; empty for the model itself, and for what was attached outside `forward`.
        call: Which call of the module in the step; None for a parameter, and for what was attached outside `forward`.
        role: What the tensor is to the call; `edge` for the gradient that comes back along an edge of its inside.
        path: Which of them, as in `TensorInfo.path`; of an edge, its ends, as `conv1 -> :output`.
        kind: What it is to the training.
        node: The node that it shares with others, as given to `attach`; empty if it was not given.
    """

    module: str
    call: int | None
    role: Role
    path: str
    kind: TensorKind = "intermediate"
    node: str = ""

    @property
    def key(self) -> tuple[str, int | None, Role, str, Kind]:
        """The `Series.key` of its values."""
        return (self.module, self.call, self.role, self.path, "value")

    @property
    def node_name(self) -> str:
        """The node's name: the pattern that selects its tensors, if `node` was not given."""
        if self.node:
            return self.node
        match self.role:
            case "attached":
                name = self.path.partition("[")[0]
                return f"{self.module}.{name}" if self.module else name
            case "output":
                return self.module or ":output"
            case _:
                return f"{self.module}:{self.role}"

    @property
    def node_key(self) -> str:
        """`TensorNode.key` of the node that it belongs to."""
        return self.node_name if self.call is None else f"{self.node_name}@{self.call}"


@dataclass(frozen=True, slots=True)
class TensorNode:
    """A box in the dependency graph: tensors that are shown together.

    Attributes:
        key: Identifies it in the graph, in those of other steps, and in those of other models that name the same
            tensors. `encoder@1` is what the second call of `encoder` returned.
        name: What to show. The nodes of several calls (iterations) have the same.
        kind: Of its first tensor.
        module: Qualified name of the module.
        call: Which call of the module in the step; None as in `NamedTensor`.
        tensors: Its tensors, as indices in `TensorGraph.tensors`.
    """

    key: str
    name: str
    kind: TensorKind
    module: str
    call: int | None
    tensors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorEdge:
    """One tensor is computed from another one, without a third one of the graph in between.

    Attributes:
        source: Index in `TensorGraph.tensors`.
        target: Index in `TensorGraph.tensors`.
        gradient: Gradient flows back along it; False where only data goes.
    """

    source: int
    target: int
    gradient: bool


@dataclass(frozen=True, slots=True)
class TensorGraph:
    """Which named tensors are computed from which in one step.

    Attributes:
        tensors: Kept ones, attached ones, all parameters, and what the model itself was given.
        edges: Between tensors.
    """

    tensors: tuple[NamedTensor, ...]
    edges: tuple[TensorEdge, ...]

    @property
    def nodes(self) -> tuple[TensorNode, ...]:
        """The tensors by node, in the order of their first ones."""
        found: dict[str, list[int]] = {}
        for at, tensor in enumerate(self.tensors):
            found.setdefault(tensor.node_key, []).append(at)
        firsts = ((key, self.tensors[at[0]], tuple(at)) for key, at in found.items())
        return tuple(
            TensorNode(key, one.node_name, one.kind, one.module, one.call, numbers) for key, one, numbers in firsts
        )


class KeptForm(NamedTuple):
    """What tensors of one kind that are kept have in common.

    Attributes:
        dtype: Theirs, as torch prints it, without `torch.`.
        shape: Theirs.
        batch_dim: The dimension that samples are taken along; None if the whole tensor is kept.
        is_double: Their statistics are float64, not float32.
    """

    dtype: str
    shape: tuple[int, ...]
    batch_dim: int | None
    is_double: bool = False


class KeptArrays(NamedTuple):
    """What was kept of the tensors of one step: in each of the first eight, one entry for each tensor.

    There is no object for each tensor: Python's garbage collector would visit thousands of them.

    Attributes:
        keys: Of the series that it belongs to, as `Series.key`.
        forms: Dtype, shape and dimension of samples.
        samples: Numbers of the kept samples in the batch, ascending; empty without `batch_dim`.
        losses: Of a gradient: the name of the backward pass that it is of; empty if that was given none.
        categories: Of each of the samples; empty if the training loop gave none.
        kinds: As in `NamedTensor`.
        nodes: As in `NamedTensor`.
        blocks: The numbers of two blocks, `[tensors, 2]`. One has the kept elements in order; the other has mean,
            population standard deviation and largest magnitude of each neuron over the batch, `[3, neurons]`, and is -1
            without `batch_dim`. Tensors may share blocks.
        places: Where each block is, `[blocks, 3]`: the number of the memory, the first byte, and the size.
        memories: Arrays of uint8.
    """

    keys: list[tuple[str, int | None, str, str, str]]
    forms: list[KeptForm]
    samples: list[tuple[int, ...]]
    losses: list[str]
    categories: list[tuple[str, ...]]
    kinds: list[TensorKind]
    nodes: list[str]
    blocks: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    memories: list[npt.NDArray[np.uint8]]

    @property
    def traits(self) -> tuple[list[Any], ...]:
        """The columns that say what the tensors are, without `blocks` and what follows."""
        return self[:7]


@dataclass(frozen=True, slots=True)
class KeptStep:
    """The tensors that were kept at one step. It is given only to sinks with a method `keep`, not to `write`.

    Attributes:
        step: As in `Frame`.
        time: Seconds since the epoch.
        gradient_scale: The loss scale, which is still in the gradients; None without one.
        arrays: Its tensors and their gradients.
        label: As in `Frame`.
        reasons: Why it was kept, if something asked for it.
        graph: The dependency graph of the step; None while it is not known.
    """

    step: int
    time: float
    gradient_scale: float | None
    arrays: KeptArrays
    label: str | None = None
    reasons: tuple[str, ...] = ()
    graph: TensorGraph | None = None
