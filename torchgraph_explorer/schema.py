"""The plain values that every layer speaks.

Capture and reduce make them, the record stores them, the views read them. Nothing here imports torch.

The words: a *module* is an `nn.Module` by its qualified name, a *call* one invocation of it in a step, a *tensor* an
input, output, parameter or attached tensor of a call, a *series* one tensor's one kind over steps, and a *frame* is
everything that was recorded at one step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.unvisited import Unvisited

Role: TypeAlias = Literal["input", "output", "param", "attached", "edge"]
Kind: TypeAlias = Literal["value", "grad_norm", "grad", "optimizer_grad", "update", "update_ratio", "time", "memory"]
COSTS: frozenset[Kind] = frozenset(("time", "memory"))
"""Kinds of what calls cost rather than of what tensors hold: they differ between equal runs."""
NodeKind: TypeAlias = Literal["input", "output", "call", "attached"]
OriginKind: TypeAlias = Literal["input", "parameter", "gradient"]
OperationKind: TypeAlias = Literal[
    "view",
    "attention",
    "softmax",
    "dropout",
    "position",
    "crosswise",
    "normalised",
    "labels",
    "several",
    "second",
    "copied",
    "shared",
    "cancelling",
    "cleared",
]
StepEnd: TypeAlias = Literal["update", "skipped", "pass", "mark", "unfinished"]
SeriesKey: TypeAlias = "tuple[str, int | None, Role, str, Kind]"
"""Module, call, role, path and kind of a series, which identify it across sessions."""
TensorKind: TypeAlias = Literal["input", "parameter", "intermediate", "target", "loss"]
Shape: TypeAlias = "tuple[int | None, ...]"

STATISTICS = (
    "count",
    "sampled",
    "nan",
    "positive_infinity",
    "negative_infinity",
    "zeros",
    "min",
    "max",
    "mean",
    "absolute_mean",
    "std",
    "l2_norm",
)
"""The columns of a statistics matrix, in order. All are float32.

- `count`: elements of the whole tensor. `nan`, `positive_infinity`, `negative_infinity`: how many of those, exactly.
- `sampled`: finite elements that the statistics below and the histogram were computed from. `zeros`: how many of
  those were zero, so `zeros / sampled` is the fraction of zeros.
- `min`, `max`, `mean`, `absolute_mean`, `std` (population): of the sampled elements; NaN when there were none.
- `l2_norm`: of all finite elements; estimated as `sqrt(mean square x finite elements)` when a sample was taken.
"""


class Extent(IntEnum):
    """What a fingerprint is of: the two lowest bits of it.

    - `NONE`: of nothing; there is no fingerprint.
    - `ALL`: of all bits of all elements of the tensor.
    - `SAMPLE`: of the sampled elements as float32, for tensors on an accelerator that are sampled or have a type with
      numbers that are no float32.
    """

    NONE = 0
    ALL = 1
    SAMPLE = 2


EXTENT = 3
"""The bits of a fingerprint that are its `Extent`."""


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


@dataclass(frozen=True, slots=True)
class Series(Unvisited):
    """One tensor's one kind of numbers, over steps.

    Attributes:
        id: Number of the series within its session.
        module: Qualified name of the module.
        call: Which call of it in the step; None for a parameter, which all calls share.
        role: What the tensor is to the call; `edge` for the gradient that comes back along an edge of its inside.
        path: Which of them, as in `TensorInfo.path`; of an edge, its ends, as `conv1 -> :output`.
        kind: `value`: its elements. `grad_norm`: the l2 norms of its gradient, one per sample (row of the first
            dimension). `grad`: the elements of a parameter's `.grad`.
        part: Which part of the tensor the writing rank has: ranks with the same part have the same elements. None is a
            part that no other rank has. Set in series as written, not as read.
    """

    id: int
    module: str
    call: int | None
    role: Role
    path: str
    kind: Kind
    part: int | None = None

    @property
    def key(self) -> SeriesKey:
        """Identifies the series across sessions."""
        return (self.module, self.call, self.role, self.path, self.kind)


EVALUATIONS = "-eval"
"""The end of a session's id if it records evaluations."""


@dataclass(frozen=True, slots=True)
class Session:
    """One `watch()` of one model: who wrote, and how.

    Attributes:
        id: Random; the same in every segment of one session.
        model: The model's name in the run.
        class_name: The model's class.
        created: Seconds since the epoch.
        host: Machine name.
        pid: Process id.
        versions: Package to version: this package, torch, python.
        log: What was asked for: `io`, `io_grad`, `params`, `params_grad`; with `scalars`, without histograms.
        log_freq: As a text: `50`, `log`, or a predicate's name.
        sample_n: Elements sampled of a tensor; None for all.
        bins: Rows of a drawn histogram, by default.
        reject_outlier_proportion: Share of extreme elements that the drawn range leaves out, by default.
        clock: Name of the second time axis, e.g. `epoch`; None without.
        rank: Rank of the writing process among those that train the model together; None for a single process, or if
            each rank records a model of its own.
        world_size: How many processes train the model together.
        notes: Sentences on how its steps join those of earlier sessions, if that is not obvious.
        processes: Where `pid` is a number: the same text for all processes of one pid namespace, until the machine
            starts again; empty if that is not known.
    """

    id: str
    model: str
    class_name: str
    created: float
    host: str
    pid: int
    versions: dict[str, str]
    log: tuple[str, ...]
    log_freq: str
    sample_n: int | None
    bins: int
    reject_outlier_proportion: float
    clock: str | None
    rank: int | None = None
    world_size: int = 1
    notes: tuple[str, ...] = ()
    processes: str = ""

    @property
    def is_of_evaluations(self) -> bool:
        """It records passes between the training steps."""
        return self.id.endswith(EVALUATIONS)


@dataclass(frozen=True, slots=True)
class StepFacts:
    """How a step ended, and which passes belonged to it.

    Attributes:
        end: What ended it. `update`: optimizers updated the parameters. `skipped`: an update that a GradScaler or the
            training loop left out. `pass`: nothing did; the step is one forward pass and its backward pass. `mark`: the
            user's `watcher.step_done()`. `unfinished`: nothing did; it was recorded because the training had ended, or
            paused for long, before the update.
        passes: Forward passes that belonged to it.
        recorded_passes: Those of `passes` that were recorded.
        optimizers: The optimizers that made the update, by class name, with ` #2` and so on if the model has several of
            one class; empty if they are not known.
    """

    end: StepEnd
    passes: int
    recorded_passes: int
    optimizers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """A parameter group of an optimizer that was about to make a step's update.

    Attributes:
        optimizer: The optimizer's name, as in `StepFacts.optimizers`.
        learning_rate: `lr`; None if it is not a number in host memory.
        weight_decay: `weight_decay`; None likewise.
        is_decoupled: The decay is applied to the weights, as AdamW does, and not added to the gradient.
        parameters: Names of those of the model, as in `named_parameters()`; at most 1000.
        betas: `betas`, as Adam has them; None if they are not two numbers in host memory.
    """

    optimizer: str
    learning_rate: float | None
    weight_decay: float | None
    is_decoupled: bool
    parameters: tuple[str, ...]
    betas: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Units:
    """The units of one module's output in a step.

    A unit is an index of dimension 1 in the outputs of convolutions and batch, instance and group normalisations, and
    of what follows them; else of the last dimension. Of a large output, all units are looked at, at some positions.

    Attributes:
        module: Qualified name of the module.
        call: Which call of it in the step.
        units: How many it has.
        zero: How many of them were zero wherever they were looked at, in this step and the `steps - 1` before it.
        steps: How many such steps `zero` is of.
        constant: How many had the same value wherever they were looked at, in this step.
        spread: Mean over the units of largest minus smallest value, divided by the mean of the largest magnitudes of
            the `steps`; near 0, all samples are alike.
    """

    module: str
    call: int
    units: int
    zero: int
    steps: int
    constant: int
    spread: float


@dataclass(frozen=True, slots=True)
class EqualRows:
    """Rows of a parameter, which are the weights of a unit each, that are the same as another row.

    Attributes:
        parameter: Name, as in `named_parameters()`.
        rows: How many rows it has.
        equal: How many would have to go so that all that remain differ.
    """

    parameter: str
    rows: int
    equal: int


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation between the modules of a traced step that tells something of the model which no tensor does.

    Or, in some of the first steps, what the model's output and its gradient tell of the loss.

    Attributes:
        kind: A `view` that gives a tensor sizes which a transpose would; weights of `attention`; a `softmax` over the
            first dimension of a tensor; a `dropout`; a `position`: the first rows of a table `[rows, 1, features]`
            are added to a tensor; or weights of attention that go `crosswise`: they sum to one over another dimension
            than the keys, over which they are multiplied by the values. Of the output, over which dimensions it is
            `normalised`; the `labels` of a mean cross entropy; those of a mean binary cross entropy of probabilities,
            of which `several` may be right; how many of the answers at places of an input of tokens are the `second`
            next token; or how near the targets of a mean squared error come to one column of the input, of which they
            are `copied`, or to each other, so that the samples have one that is `shared`. Over which dimensions
            gradients are `cancelling`. And of the gradients of backward passes, how many are `cleared` before the next
            one.
        module: Qualified name of the module within which it was; of answers, the path of the input.
        call: Which call of that in the step.
        numbers: Of a dropout, the share that is dropped. Of attention, which is of as many queries as keys: the weight
            that a query gives to the keys after its own place; the sum of the squares of its weights; and how many keys
            have some weight, each in the mean over the queries. Where the weights are not known, the first one is how
            much of that a mask allows, and the others are NaN. Of what is normalised, for each dimension, the largest
            magnitude of the logarithm of the sum of the exponentials over it, and of the sum less 1. Of what goes
            crosswise, the dimension, and how far the sums over the keys are from 1 in the mean. Of labels, the
            smallest and the largest of the first of each sample, the largest of the second, and the smallest of all.
            Where several may be right, the largest distance of a label from 0 and 1, and the share of the samples whose
            labels do not sum to one. Of the second next token, its share of the places. Of a copy, the largest
            distance, over the standard deviation of the targets, and the column. Of what is shared, the largest
            difference of the targets of two samples, over that of the outputs, and the mean of the targets. Of what
            cancels, for the second dimension and the last one, the largest sum of gradients over it, over the largest
            gradient, and its size. Of what is cleared, the number of backward passes, and of those before which
            gradients were.
        before: Sizes of what a view or softmax is of, or goes crosswise, or of what positions are added to; of
            attention, the number of queries and of keys.
        after: Sizes that it gives it; of positions, those of the rows.
    """

    kind: OperationKind
    module: str = ""
    call: int = 0
    numbers: tuple[float, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenAnswers:
    """How the right answers of a model that gives logits for each token stand to tokens that it was given.

    The right answer is the class whose logit has the most negative gradient. Positions without gradient, as those of
    padding that the loss leaves out, do not count.

    Attributes:
        path: Of the input with the tokens, `[samples, length]`.
        positions: How many were looked at.
        following: Share of them whose answer is the next token of the input.
        same: Share whose answer is the token at the same place.
        padding: Share whose answer is padding, as is that of the place before: the `padding_idx` of an embedding.
    """

    path: str
    positions: int
    following: float
    same: float
    padding: float


@dataclass(frozen=True, slots=True)
class NumberAnswers:
    """What gradients say of the targets of a model's output, of which each sample has one that gets gradient.

    Attributes:
        samples: How many.
        outputs: The most outputs of one sample that get gradient.
        drops: Share of neighbours, in the order of the outputs, of which the larger one has the smaller gradient. None
            have if gradients depend on nothing but the output.
        below: The largest output that is drawn up.
        above: The smallest one that is drawn down.
        spread: Largest minus smallest gradient, over the largest magnitude.
        bend: 1 minus the squared correlation of outputs and gradients, without the largest of these, which an error may
            have bounded: 0 if the others lie on a line.
        rising: Share of the gradients that are above zero, and so draw the output down.
    """

    samples: int
    outputs: int
    drops: float
    below: float
    above: float
    spread: float
    bend: float
    rising: float


@dataclass(frozen=True, slots=True)
class NotFiniteOrigin:
    """What else was NaN or infinite at that moment, before an update could carry it to all parameters.

    Attributes:
        kind: Of a pass whose output is not finite: `input` if an input was not, else `parameter`. Of a backward pass:
            `gradient`, of the parameters.
        names: The inputs' paths, or the parameters' qualified names: the first 200, of gradients the last.
        count: How many were not finite.
        total: Of how many.
    """

    kind: OriginKind
    names: tuple[str, ...]
    count: int
    total: int


@dataclass(frozen=True, slots=True)
class NotFinite:
    """Something that was NaN or infinite in a step that was not recorded.

    Attributes:
        step: The step.
        what: `output`, `gradient`, or `scalar` and its name.
        origin: What else was; None if that was not looked at, as on a GPU, where it would have been waited for.
    """

    step: int
    what: str
    origin: NotFiniteOrigin | None = None


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """What only the live training knows of a step. Lists of names have at most 1000.

    Attributes:
        batch_size: First dimension of the first tensor that the model was given; None if there was none.
        is_training: The model was in training mode.
        other_mode: Modules whose mode was not the model's.
        groups: The parameter groups of the optimizers that made the update.
        leftover: Parameters to whose gradients from before the last update of their optimizer those of this step were
            added; None if that is not known.
        without_optimizer: Parameters that require a gradient, and that no optimizer holds; None if none is known. In
            the first steps, also those that have a gradient and are kept where torch does not find them, as in a list
            of modules, which nothing writes to.
        frozen_in_optimizer: Parameters that require no gradient, and that an optimizer of the update holds; None
            likewise.
        orphans: Shapes of parameters that an optimizer of the update holds, and that are none of the model's, require a
            gradient and have none: as those of a module that was replaced after the optimizer was made. In a step
            without an update, those of an optimizer that has no parameter of the model, and stepped all the same.
        without_gradient: Parameters that require a gradient, and had none after the backward passes although their
            module was called; None if that is not known.
        remade: Parameters that require a gradient, and were other tensors after the last backward pass than before the
            first forward pass, with a gradient; in the first steps.
        written: Those of `without_optimizer` that were written to between the first pass and the next step.
        gradient_norm: The l2 norm of gradients after the last backward pass, without the loss scale: of up to 8
            parameters that are spread over the model and have at most 2**18 elements together. None if it is not known.
        clipped_norm: The same when the optimizer got them. It is smaller where they were clipped.
        loss_scale: The scale of a `GradScaler`; None without one.
        skipped: How many updates were skipped so far, in steps that are logged and others.
        units: The units of outputs, in some steps.
        equal_rows: Parameters with equal rows, in the first steps.
        not_finite: The first thing since the recorded step before that was seen not to be finite; None if none was.
        operations: Those of a traced step.
        tokens: How the answers stand to each input of tokens, in some steps.
        numbers: What gradients say of the targets of numbers, in some steps; None if that is not known.
        targets: The smallest and the largest target of the model's output if the loss is its mean squared error, in
            some steps; None if that was not looked at.
    """

    batch_size: int | None = None
    is_training: bool = True
    other_mode: tuple[str, ...] = ()
    groups: tuple[ParameterGroup, ...] = ()
    leftover: tuple[str, ...] | None = None
    without_optimizer: tuple[str, ...] | None = None
    frozen_in_optimizer: tuple[str, ...] | None = None
    orphans: tuple[tuple[int, ...], ...] = ()
    without_gradient: tuple[str, ...] | None = None
    remade: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    gradient_norm: float | None = None
    clipped_norm: float | None = None
    loss_scale: float | None = None
    skipped: int = 0
    units: tuple[Units, ...] = ()
    equal_rows: tuple[EqualRows, ...] = ()
    not_finite: NotFinite | None = None
    operations: tuple[Operation, ...] = ()
    tokens: tuple[TokenAnswers, ...] = ()
    numbers: NumberAnswers | None = None
    targets: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything recorded at one step.

    Several series may share a row: a tensor that is one call's output and the next one's input is measured once.

    Attributes:
        step: Count of training steps of the model before this one.
        time: Seconds since the epoch.
        clock: The second time axis' value (see `Session.clock`); None without.
        graph: Id of the module graph in force; None while it is not known.
        series: Series ids, `[n]` uint32.
        rows: Row of each series in the two fields below, `[n]` uint32.
        statistics: `[rows, len(STATISTICS)]` float32.
        histograms: One per row.
        gradient_scale: The loss scale that was taken out of the gradients; None without one.
        facts: How the step ended, and which passes belonged to it; None if that is not known.
        label: The kind of step that the training loop said it is; None without.
        training: What only the live training knew of it; None if that was not recorded.
        fingerprints: Of each row, `[rows]` uint64: a sum of hashes of the bits of the tensor's elements, times 4, plus
            an `Extent`. Tensors with the same fingerprint have the same elements, though maybe in another order; that
            of norms is of the gradient itself. None if the writer recorded none.
    """

    step: int
    time: float
    clock: float | None
    graph: int | None
    series: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint32]
    statistics: npt.NDArray[np.float32]
    histograms: Histograms
    gradient_scale: float | None = None
    facts: StepFacts | None = None
    label: str | None = None
    training: TrainingFacts | None = None
    fingerprints: npt.NDArray[np.uint64] | None = None

    @property
    def without_histogram(self) -> npt.NDArray[np.bool_]:
        """Rows that have finite elements of which no histogram was recorded, `[rows]`."""
        is_empty = np.diff(self.histograms.offsets.astype(np.int64)) == 0
        found: npt.NDArray[np.bool_] = is_empty & (self.statistics[:, STATISTICS.index("sampled")] > 0)
        return found


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
        """As `Series.key` of its values."""
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


@dataclass(frozen=True, slots=True)
class Noted:
    """Something is not recorded. `Finished.notes` will have it, too.

    Attributes:
        time: When that was found, in seconds since the epoch.
        text: What, and why, in sentences.
    """

    time: float
    text: str


@dataclass(frozen=True, slots=True)
class StepNote:
    """A sentence that the training loop noted at a step.

    Attributes:
        step: The step.
        time: Seconds since the epoch.
        text: The sentence.
    """

    step: int
    time: float
    text: str


def titled(name: str, label: str | None) -> str:
    """A scalar as a sentence calls it: `loss`, or `loss (eval)` with its label."""
    return name if label is None else f"{name} ({label})"


@dataclass(frozen=True, slots=True)
class Logged:
    """What the training loop logged in a stretch of time: values of scalars, and notes.

    Attributes:
        names: Names of scalars; those that were logged with several labels once for each of them.
        name: Index in `names` of each value's scalar, `[n]` uint32.
        steps: Step of each value, `[n]` int64, in the order of logging.
        times: When each was logged, in seconds since the epoch, `[n]` float64.
        values: `[n]` float64; may be NaN or infinite.
        notes: In the order of noting.
        labels: Label of each of `names`, None without; empty if none has one.
    """

    names: tuple[str, ...]
    name: npt.NDArray[np.uint32]
    steps: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    notes: tuple[StepNote, ...] = ()
    labels: tuple[str | None, ...] = ()

    @property
    def scalars(self) -> tuple[tuple[str, str | None], ...]:
        """Each of `names` with its label."""
        return tuple(zip(self.names, self.labels or (None,) * len(self.names), strict=True))


@dataclass(frozen=True, slots=True)
class Finished:
    """The session was closed in order.

    Attributes:
        time: Seconds since the epoch.
        notes: What was not recorded, in sentences; empty when all went well.
        steps: How many steps it had counted, which is the number of the next one; None if that is not known.
    """

    time: float
    notes: tuple[str, ...] = field(default=())
    steps: int | None = None


Record: TypeAlias = "Session | ModuleGraph | tuple[Series, ...] | Frame | Logged | Noted | Finished"
"""What a sink is given: a session first, then graphs, new series, frames, what was logged and notes as they come,
`Finished` last."""
