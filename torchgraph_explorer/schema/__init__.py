"""The plain values that every layer speaks.

Capture and reduce make them, the record stores them, the views read them. Nothing here imports torch.

The words: a *module* is an `nn.Module` by its qualified name, a *call* one invocation of it in a step, a *tensor* an
input, output, parameter or attached tensor of a call, a *series* one tensor's one kind over steps, and a *frame* is
everything that was recorded at one step.
"""

from typing import TypeAlias

from torchgraph_explorer.schema.graph import Call as Call
from torchgraph_explorer.schema.graph import Edge as Edge
from torchgraph_explorer.schema.graph import Module as Module
from torchgraph_explorer.schema.graph import ModuleGraph as ModuleGraph
from torchgraph_explorer.schema.graph import Node as Node
from torchgraph_explorer.schema.graph import TensorInfo as TensorInfo
from torchgraph_explorer.schema.kept import KeptArrays as KeptArrays
from torchgraph_explorer.schema.kept import KeptForm as KeptForm
from torchgraph_explorer.schema.kept import KeptStep as KeptStep
from torchgraph_explorer.schema.kept import NamedTensor as NamedTensor
from torchgraph_explorer.schema.kept import TensorEdge as TensorEdge
from torchgraph_explorer.schema.kept import TensorGraph as TensorGraph
from torchgraph_explorer.schema.kept import TensorNode as TensorNode
from torchgraph_explorer.schema.logged import Finished as Finished
from torchgraph_explorer.schema.logged import Logged as Logged
from torchgraph_explorer.schema.logged import Noted as Noted
from torchgraph_explorer.schema.logged import StepNote as StepNote
from torchgraph_explorer.schema.logged import titled as titled
from torchgraph_explorer.schema.statistics import EXTENT as EXTENT
from torchgraph_explorer.schema.statistics import STATISTICS as STATISTICS
from torchgraph_explorer.schema.statistics import Extent as Extent
from torchgraph_explorer.schema.steps import EVALUATIONS as EVALUATIONS
from torchgraph_explorer.schema.steps import Frame as Frame
from torchgraph_explorer.schema.steps import Series as Series
from torchgraph_explorer.schema.steps import Session as Session
from torchgraph_explorer.schema.steps import StepFacts as StepFacts
from torchgraph_explorer.schema.training_facts import EqualRows as EqualRows
from torchgraph_explorer.schema.training_facts import NotFinite as NotFinite
from torchgraph_explorer.schema.training_facts import NotFiniteOrigin as NotFiniteOrigin
from torchgraph_explorer.schema.training_facts import NumberAnswers as NumberAnswers
from torchgraph_explorer.schema.training_facts import Operation as Operation
from torchgraph_explorer.schema.training_facts import ParameterGroup as ParameterGroup
from torchgraph_explorer.schema.training_facts import TokenAnswers as TokenAnswers
from torchgraph_explorer.schema.training_facts import TrainingFacts as TrainingFacts
from torchgraph_explorer.schema.training_facts import Units as Units
from torchgraph_explorer.schema.words import COSTS as COSTS
from torchgraph_explorer.schema.words import Kind as Kind
from torchgraph_explorer.schema.words import NodeKind as NodeKind
from torchgraph_explorer.schema.words import OperationKind as OperationKind
from torchgraph_explorer.schema.words import OriginKind as OriginKind
from torchgraph_explorer.schema.words import Role as Role
from torchgraph_explorer.schema.words import SeriesKey as SeriesKey
from torchgraph_explorer.schema.words import Shape as Shape
from torchgraph_explorer.schema.words import StepEnd as StepEnd
from torchgraph_explorer.schema.words import TensorKind as TensorKind

Record: TypeAlias = "Session | ModuleGraph | tuple[Series, ...] | Frame | Logged | Noted | Finished"
"""What a sink is given: a session first, then graphs, new series, frames, what was logged and notes as they come,
`Finished` last."""
