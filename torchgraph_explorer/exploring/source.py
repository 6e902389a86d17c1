"""What a desk shows: a session with a model behind it, or a saved case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from torchgraph_explorer.capture.modules_by_name import modules_by_name
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.exploring.case import Case
from torchgraph_explorer.exploring.edits import Edits
from torchgraph_explorer.exploring.grouping import Grouping
from torchgraph_explorer.exploring.products import Progress
from torchgraph_explorer.exploring.session import Session, Target, selected
from torchgraph_explorer.exploring.words import Vocabulary, Words, vocabulary

NO_MODEL = "This is a saved case without its model"


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """A tensor, without its numbers.

    Attributes:
        name: Its name.
        shape: Its shape.
        dtype: Its type.
        has_gradient: A gradient can reach it.
        is_weighed: It is what a module with weight matrices returns.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    has_gradient: bool
    is_weighed: bool = False


class Source(Protocol):
    """Values, gradients and contributions of a chain of tensors."""

    @property
    def title(self) -> str:
        """What is explored."""

    @property
    def edits(self) -> Edits | None:
        """The edits of the inputs; None if they cannot be edited."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The words that tokens stand for."""

    def facts(self) -> list[TensorFacts]:
        """Every tensor, in the order of execution."""

    def value(self, name: str, *, when: str) -> Tensor:
        """The values of a tensor."""

    def gradient(self, name: str, *, when: str) -> Tensor:
        """The gradient of a tensor."""

    def received(self, b: str, index: object, sources: Sequence[str]) -> list[Tensor]:
        """What elements of `b` send back to each of `sources`, which come before it."""

    def sent(self, a: str, index: object, targets: Sequence[str]) -> list[Tensor]:
        """What elements of `a` get from each of `targets`, which come after it."""

    def groups(
        self, a: str, b: str, *, by: tuple[Grouping, Grouping], progress: Progress | None
    ) -> tuple[Tensor, Tensor]:
        """Contributions between groups, and what each of `a` gets past `b`."""

    def is_estimate(self, a: str, b: str) -> bool:
        """Whether the contributions between these are a guess."""

    def aim(self, target: Target | None) -> None:
        """Follow the gradient of another target."""

    def target_values(self) -> tuple[str, str]:
        """The target now and before the edits, as text."""

    def state(self) -> object:
        """Something that differs if the numbers may have changed."""

    def case(self) -> Case:
        """What was computed."""


class LiveSource:
    """A session, of a model that is in this process."""

    def __init__(self, session: Session, *, loss: Target | None, words: Words | None = None) -> None:
        """Show `session`, whose target is `loss`; its tokens stand for `words`."""
        self.vocabulary = vocabulary(words, size=_embeddings(session.model))
        self._session, self._loss, self._aim = session, loss, 0
        self.title = type(session.model).__name__
        self.value, self.gradient = session.value, session.gradient
        self.received, self.sent, self.groups = session.received, session.sent, session.groups
        self.case = session.case

    @property
    def edits(self) -> Edits | None:
        """The edits of the inputs."""
        return self._session.edits

    def facts(self) -> list[TensorFacts]:
        """Every tensor, in the order of execution."""
        modules = modules_by_name(self._session.model)
        return [
            TensorFacts(
                one.name,
                tuple(one.value.shape),
                str(one.value.dtype).removeprefix("torch."),
                one.edge is not None,
                one.place.role == "output"
                and any(weight.dim() > 1 for weight in modules[one.place.module].parameters(recurse=False)),
            )
            for one in self._session.distinct
        ]

    def is_estimate(self, _a: str, _b: str) -> bool:
        """Nothing is a guess."""
        return False

    def aim(self, target: Target | None) -> None:
        """Follow the gradient of another target; None: of the loss."""
        self._aim += 1
        self._session.aim(target or self._loss)

    def target_values(self) -> tuple[str, str]:
        """The target now and before the edits."""
        now, before = self._session.target_values()
        return f"{now:.6g}", f"{before:.6g}"

    def state(self) -> object:
        """The inputs, the parameters and the target."""
        return self._session.state(), self._aim


def _embeddings(model: nn.Module) -> int:
    """How many numbers the largest embedding of `model` knows: tokens, as far as that can be told."""
    kinds = nn.Embedding, nn.EmbeddingBag
    return max((module.num_embeddings for module in model.modules() if isinstance(module, kinds)), default=0)


class CaseSource:
    """A saved case."""

    title = "A saved case"
    edits = None

    def __init__(self, case: Case) -> None:
        """Show `case`."""
        self.vocabulary: Vocabulary | None = None
        self._case = case

    def facts(self) -> list[TensorFacts]:
        """Every tensor, in the order of execution."""
        case = self._case
        arrays = {**case.gradients, **case.values}
        return [
            TensorFacts(name, arrays[name].shape, str(arrays[name].dtype), name in case.gradients, True)
            for name in case.tensors
        ]

    def value(self, name: str, *, when: str) -> Tensor:
        """The values of a tensor."""
        return self._then(self._case.value(name), when)

    def gradient(self, name: str, *, when: str) -> Tensor:
        """The gradient of a tensor."""
        return self._then(self._case.gradient(name), when)

    def _then(self, array: object, when: str) -> Tensor:
        tensor = torch.from_numpy(np.array(array))
        return torch.zeros_like(tensor) if when == "difference" else tensor

    def received(self, b: str, index: object, sources: Sequence[str]) -> list[Tensor]:
        """The same, from the matrices of the case or estimates of them."""
        return [self._matrix(a, b, to=index) for a in sources]

    def sent(self, a: str, index: object, targets: Sequence[str]) -> list[Tensor]:
        """The same, from the matrices of the case or estimates of them."""
        return [self._matrix(a, b, from_=index) for b in targets]

    def _matrix(self, a: str, b: str, *, to: object = None, from_: object = None) -> Tensor:
        matrix, dims = self._flows(a, b), self._case.gradient(a).ndim
        ones = torch.ones(matrix.shape[dims:] if from_ is None else matrix.shape[:dims], dtype=matrix.dtype)
        chosen = selected(ones, to if from_ is None else from_)
        first, second = (matrix, chosen) if from_ is None else (chosen, matrix)
        found: Tensor = torch.tensordot(first, second, chosen.dim())
        return found

    def _flows(self, a: str, b: str) -> Tensor:
        case = self._case
        return torch.from_numpy(np.array(case.estimate(a, b) if self.is_estimate(a, b) else case.matrix(a, b)))

    def groups(
        self, a: str, b: str, *, by: tuple[Grouping, Grouping], progress: Progress | None
    ) -> tuple[Tensor, Tensor]:
        """The same, from the matrices of the case or estimates of them."""
        if progress is not None:
            progress(0, 1)
        matrix, total = self._flows(a, b), torch.from_numpy(np.array(self._case.gradient(a)))
        dims = total.dim()
        rows = by[0].sums(matrix.reshape(*total.shape, -1).movedim(-1, 0))
        flows = by[1].sums(rows.T.reshape(-1, *matrix.shape[dims:]))
        return flows, by[0].sums(total[None])[0] - flows.sum(1)

    def is_estimate(self, a: str, b: str) -> bool:
        """Whether the case lacks the matrix."""
        return (a, b) not in self._case.matrices

    def aim(self, _target: Target | None) -> None:
        """Refuse: other gradients need the model."""
        raise OptionError(f"{NO_MODEL}, so that its target cannot be changed.")

    def target_values(self) -> tuple[str, str]:
        """A case does not hold them."""
        return "", ""

    def state(self) -> object:
        """It never changes."""
        return None

    def case(self) -> Case:
        """The case itself."""
        return self._case
