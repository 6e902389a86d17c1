"""Finds out what the gradient at the model's output tells of the targets, which the model itself is not given.

For a cross entropy, the right class is the one whose logit has the most negative gradient. For a squared error, the
target is the output minus the gradient, up to a factor. For any error of one number, the gradient tells on which side
of the output the target is.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from torchgraph_explorer.capture.facts.each_output import EachOutput
from torchgraph_explorer.capture.facts.label_losses import (
    TINY,
    as_divergence,
    class_weights,
    ends_of_padding,
    hidden_places,
    off_over_samples,
    trailing_places,
)
from torchgraph_explorer.capture.facts.negated import signs
from torchgraph_explorer.capture.facts.outside import behind_activations, of_two_classes
from torchgraph_explorer.capture.facts.pending import Row
from torchgraph_explorer.capture.facts.policies import policy_weights
from torchgraph_explorer.capture.facts.twice import applied_again, binary_labels, classes_without_answer
from torchgraph_explorer.capture.gradient_hooks import Measure
from torchgraph_explorer.capture.modules_by_name import ModulesByName
from torchgraph_explorer.capture.no_dispatch import FLOATS, NoDispatch, has_plain_elements
from torchgraph_explorer.capture.safe_hook import Hook
from torchgraph_explorer.capture.tensor_infos import Described, differentiable, hookable
from torchgraph_explorer.schema import NumberAnswers, Operation, OperationKind, TokenAnswers

MOST_SAMPLES, MOST_POSITIONS = 8, 64
"""Most samples of an input of tokens that are looked at, and most positions of each."""

LEAST_LENGTH = 5
"""Fewest positions of a sequence of tokens that is looked at."""

MOST_LOGITS = 1 << 20
"""Most gradients of logits that are looked at: this limits the positions of a sample, to no less than
`LEAST_LENGTH`."""

MOST_NUMBERS = 1 << 16
"""Most elements of an output whose targets are looked at."""

MOST_WEIGHED = 1 << 13
"""Most logits that tell how a loss weighs classes, and over what its softmax goes."""

LEAST_SAMPLES = 8
"""Fewest numbers that are looked at for their order: the order of fewer may be chance."""

UNBOUNDED = 0.98
"""Largest gradient, over that of all samples, which no error has bounded, as Huber's does far from a target."""

MOST_CHOICES = 64
"""Most outputs of a sample of which only one gets a gradient, such as the values of actions."""

LEAST_SHARED = 4
"""Fewest samples, of several numbers each, whose targets are compared with each other."""

MOST_DIMENSIONS = 4
"""Most dimensions of an output that is tested for being normalised, or for gradients that cancel."""

DENSE = (4, 5)
"""Dimensions of an output with logits for each pixel: `[samples, classes, height, width]`, or with a depth as well."""

_INTEGERS = frozenset({torch.int64, torch.int32})


class _Tokens(NamedTuple):
    """An input of tokens.

    Attributes:
        path: Its path.
        shape: Its sizes, `[samples, length]`.
        some: The first tokens of the first samples, at most `[MOST_SAMPLES, MOST_POSITIONS]`.
    """

    path: str
    shape: tuple[int, int]
    some: Tensor


class _TokenRows(NamedTuple):
    """The rows of the step's statistics with what was found of the input of tokens with this path."""

    path: str
    rows: list[Row]


class Answers:
    """What one step tells of the targets, by the gradient at the first output of the first pass that has one."""

    def __init__(self, measure: Measure, modules: ModulesByName, lock: threading.RLock, *, is_early: bool) -> None:
        """No pass has begun.

        Args:
            measure: Measures tensors of the step.
            modules: Those of the model, by name.
            lock: Held while a gradient is read, which may be in an autograd thread.
            is_early: The step is one of the first, in which facts are looked for that few steps can tell.
        """
        self._measure, self._lock, self._is_early = measure, lock, is_early
        self._given: Tensor | None = None
        self._series: Tensor | None = None
        self._found: list[tuple[OperationKind, str, list[Row]]] = []
        self._paddings = _paddings(modules)
        self._tokens: list[_Tokens] = []
        self._handle: torch.utils.hooks.RemovableHandle | None = None
        self._is_open = True
        self._values: Tensor | None = None
        self._pixels: Tensor | None = None
        self._path, self._shape = "", torch.Size()
        self._token_rows: list[_TokenRows] = []
        self._numbers: tuple[int, list[Row]] | None = None
        self._targets: Row | None = None
        self._further = EachOutput(self._look_at_each, lock, sizes=range(LEAST_SAMPLES, MOST_WEIGHED + 1))

    def begin(self, inputs: Described) -> None:
        """The model is called with `inputs`. What an earlier pass without gradients left is dropped."""
        if self._handle is not None or not self._is_open:
            return
        self._tokens, self._given, self._series = [], None, None
        for info, tensor in inputs:
            if self._series is None and tensor.dim() == 3 and tensor.dtype in FLOATS and has_plain_elements(tensor):
                self._series = tensor.detach()
            if self._given is None and tensor.dim() == 2 and tensor.dtype in FLOATS and has_plain_elements(tensor):
                self._given = tensor.detach()
            if (
                tensor.dtype in _INTEGERS
                and tensor.dim() == 2
                and tensor.shape[1] >= LEAST_LENGTH
                and has_plain_elements(tensor)
            ):
                some = tensor.detach()[:MOST_SAMPLES, :MOST_POSITIONS].clone()
                self._tokens.append(_Tokens(info.path, (tensor.shape[0], tensor.shape[1]), some))

    def end(self, outputs: Described, fail: Callable[[Exception], None]) -> None:
        """The model has returned `outputs`. `fail` is called with a fault of ours when their gradient comes."""
        found = hookable(differentiable(outputs), are_results=False)
        if self._handle is not None or not self._is_open:
            if self._is_early:
                self._further.begin((one for one in found if one.path != self._path), fail)
            return
        for at, (path, tensor, *_) in enumerate(found):
            if tensor.dim() > 0 and tensor.dtype in FLOATS and has_plain_elements(tensor):
                self._path, self._shape = path, tensor.shape
                if LEAST_SAMPLES <= tensor.numel() <= MOST_NUMBERS:
                    self._values = tensor.detach().clone()
                if self._is_early and tensor.dim() in DENSE and tensor.numel():
                    self._pixels = _some_pixels(tensor.detach())
                self._given = _copied_from(self._given, tensor) if self._is_early else None
                self._series = _series_of(self._series, tensor) if self._is_early else None
                self._handle = tensor.register_hook(Hook(self._take, fail))
                if self._is_early:
                    self._further.begin(found[at + 1 :], fail)
                return

    def _take(self, gradient: Tensor) -> None:
        with self._lock:
            if self._is_open and has_plain_elements(gradient) and gradient.shape == self._shape:
                self._is_open = False
                with NoDispatch():
                    self._look(gradient.detach())

    def _look(self, gradient: Tensor) -> None:
        for one in self._tokens:
            aligned = _aligned(gradient, one.shape)
            if aligned is not None:
                self._token_rows.append(self._of_tokens(one, aligned))
        if self._values is not None and gradient.dtype == self._values.dtype:
            values, gradient = self._values.float(), gradient.float()
            self._targets = Row(self._measure.values_again(values - gradient * (values.numel() / 2)))
            if not self._token_rows:
                self._numbers = self._of_numbers(values, gradient)
            if self._is_early:
                self._look_early(values, gradient)
        if self._pixels is not None and gradient.dtype == self._pixels.dtype:
            self._note("weights", "", class_weights(self._pixels.float(), _some_pixels(gradient).float()))
        if self._is_early and 1 < gradient.dim() <= MOST_DIMENSIONS and 0 < gradient[0].numel() <= MOST_NUMBERS:
            some = gradient[: MOST_NUMBERS // gradient[0].numel()].float()
            self._note("cancelling", "", _sums(some))
            if gradient.dim() > 2:
                self._note("flat", "", [_flat_sum(some)])

    def _look_early(self, values: Tensor, gradient: Tensor) -> None:
        if 1 < values.dim() <= MOST_DIMENSIONS:
            self._note("normalised", "", _normalised(values))
            if values.shape[0] >= LEAST_SHARED and values[0].numel() > 1:
                self._note("shared", "", _shared(values, values - gradient * (values.numel() / 2)))
        if values.dim() == 2 and values.shape[1] > 2:
            self._note("labels", "", _labels(values, gradient))
            self._note("several", "", _several(values, gradient))
        if values.dim() == 2 and values.shape[1] > 2 and values.numel() <= MOST_WEIGHED:
            self._note("over", "", [off_over_samples(values, gradient)])
            self._note("across", "", _across(values, gradient))
            self._note("divergence", "", as_divergence(values, gradient))
        if 1 <= values.dim() <= 2 and values.numel() <= MOST_WEIGHED:
            self._note("weights", "", class_weights(values, gradient))
        if values.dim() == 2 and values.shape[1] > 2 and values.numel() <= MOST_WEIGHED:
            self._note("policy", "", policy_weights(values, gradient))
            self._note("unseen", "", classes_without_answer(gradient))
        if 1 <= values.dim() <= MOST_DIMENSIONS:
            self._look_at_each(self._path, values, gradient)
            self._note("binary", "", binary_labels(values, gradient))
        if self._series is not None:
            self._note("ahead", "", [_off_ahead(self._series, values - gradient * (values.numel() / 2))])
        if self._given is not None:
            self._note("copied", "", _nearest(self._given, (values - gradient * (values.numel() / 2)).reshape(-1)))

    def _look_at_each(self, path: str, values: Tensor, gradient: Tensor) -> None:
        if values.dim() <= MOST_DIMENSIONS:
            self._note("twice", path, applied_again(values, gradient))
            self._note("outside", path, behind_activations(values, gradient))
            self._note("sign", path, signs(values, gradient))
        if 1 < values.dim() <= MOST_DIMENSIONS and 2 in {values.shape[1], values.shape[-1]}:
            self._note("two", path, of_two_classes(values, gradient))

    def _note(self, kind: OperationKind, path: str, numbers: list[Tensor]) -> None:
        self._found.append((kind, path, self._rows(numbers)))

    def _of_tokens(self, one: _Tokens, gradient: Tensor) -> _TokenRows:
        """How the answers stand to the tokens `one`, by the gradient of logits `[samples, length, classes]`."""
        classes = gradient.shape[-1]
        length = min(one.some.shape[1], max(LEAST_LENGTH, MOST_LOGITS // (classes * len(one.some))))
        lowest = gradient[: len(one.some), :length].min(-1)
        is_right, answers, tokens = lowest.values < 0, lowest.indices, one.some[:, :length]
        positions = is_right.sum()
        found = [
            positions,
            _share((answers[:, :-1] == tokens[:, 1:]), is_right[:, :-1]),
            _share(answers == tokens, is_right),
        ]
        self._note("second", one.path, [_share(answers[:, :-2] == tokens[:, 2:], is_right[:, :-2])])
        if self._is_early:
            self._note("hidden", one.path, hidden_places(tokens, is_right))
        if self._is_early and length == one.shape[1]:
            self._note("trailing", one.path, trailing_places(tokens, answers, is_right))
            self._note("ends", one.path, ends_of_padding(tokens, answers, is_right))
        padding = self._paddings.get(classes)
        if padding is not None:
            is_padding = (answers == padding) & is_right
            found.append((is_padding[:, 1:] & is_padding[:, :-1]).sum() / positions.clamp(min=1))
        return _TokenRows(one.path, self._rows(found))

    def _of_numbers(self, values: Tensor, gradient: Tensor) -> tuple[int, list[Row]] | None:
        samples, choices = values.shape[0], values.numel() // max(values.shape[0], 1)
        if values.dim() > 2 or samples < LEAST_SAMPLES or choices > MOST_CHOICES:
            return None
        values, gradient = values.reshape(samples, choices), gradient.reshape(samples, choices)
        if choices > 1 and gradient.is_cpu and int(gradient[0].count_nonzero()) > 1:
            return None  # as of classes, which most outputs are of; on a GPU, it would have to be waited for
        is_chosen = gradient != 0
        outputs = is_chosen.sum(-1).max().clamp(min=1)
        output, pull = (values * is_chosen).sum(-1) if choices > 1 else values[:, 0], gradient.sum(-1)
        order = output.argsort()
        steps, rises = output[order].diff(), pull[order].diff()
        largest = pull.abs().max()
        drops = ((rises < -1e-5 * largest) & (steps > 0)).float().mean()
        low, high = output.min(), output.max()
        below = torch.where(pull < 0, output, low).max()
        above = torch.where(pull > 0, output, high).min()
        spread = (pull.max() - pull.min()) / largest
        bend = _bend(output, pull, pull.abs() < UNBOUNDED * largest)
        rising = (pull > 0).float().mean()
        return samples, self._rows([outputs, drops, below, above, spread, bend, rising])

    def _rows(self, numbers: list[Tensor]) -> list[Row]:
        stacked = torch.stack([one.float() for one in numbers])
        return [Row(number) for number in self._measure.numbers(stacked)]

    def close(self) -> None:
        """Nothing more will come."""
        self._is_open = False
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()
        self._further.close()
        self._values, self._pixels, self._given, self._series, self._tokens = None, None, None, None, []

    def operations(self, statistics: npt.NDArray[np.float32]) -> tuple[Operation, ...]:
        """What was found of the loss, once the `statistics` of the step are known."""
        return tuple(
            Operation(kind, path, numbers=tuple(row(statistics, "mean") for row in rows))
            for kind, path, rows in self._found
        )

    def tokens(self, statistics: npt.NDArray[np.float32]) -> tuple[TokenAnswers, ...]:
        """How the answers stand to each input of tokens, once the `statistics` of the step are known."""
        found = []
        for one in self._token_rows:
            positions, following, same, *padding = (row(statistics, "mean") for row in one.rows)
            if positions > 0:
                found.append(TokenAnswers(one.path, int(positions), following, same, padding[0] if padding else 0.0))
        return tuple(found)

    def numbers(self, statistics: npt.NDArray[np.float32]) -> NumberAnswers | None:
        """What the gradients tell of targets of one number; None if that is not known."""
        if self._numbers is None:
            return None
        samples, rows = self._numbers
        outputs, *others = (row(statistics, "mean") for row in rows)
        return NumberAnswers(samples, int(outputs), *others) if np.isfinite(others).all() else None

    def targets(self, statistics: npt.NDArray[np.float32]) -> tuple[float, float] | None:
        """The smallest and the largest target, if the loss is a mean squared error; None if they were not computed."""
        if self._targets is None:
            return None
        return self._targets(statistics, "min"), self._targets(statistics, "max")


def _some_pixels(tensor: Tensor) -> Tensor:
    """A copy of the logits, or gradients, at some pixels of the first samples: `[pixels, classes]`."""
    some = tensor[:MOST_SAMPLES]
    every = math.ceil((some.numel() / MOST_WEIGHED) ** (1 / (tensor.dim() - 2)))
    some = some[(slice(None), slice(None), *[slice(None, None, every)] * (tensor.dim() - 2))]
    return some.movedim(1, -1).reshape(-1, tensor.shape[1]).clone()


def _copied_from(given: Tensor | None, output: Tensor) -> Tensor | None:
    """A copy of an input `[samples, columns]`, if the output has one number a sample; else None.

    A column of the input may be the target of such an output.
    """
    if given is None or output.numel() != output.shape[0] != 1 or given.shape[0] != output.shape[0]:
        return None
    return given.clone() if given.shape[1] > 1 and given.numel() <= MOST_NUMBERS else None


def _series_of(given: Tensor | None, output: Tensor) -> Tensor | None:
    """A copy of an input `[samples, length, features]`, if the output has numbers for each of its places."""
    if given is None or given.numel() > MOST_NUMBERS or given.shape[1] < LEAST_LENGTH or output.dim() < 2:
        return None
    has_places = given.shape[:2] == output.shape[:2]
    return given.clone() if has_places and output[0, 0].numel() in {1, given.shape[2]} else None


def _off_ahead(given: Tensor, targets: Tensor) -> Tensor:
    """The largest distance of the targets from what is given at the next place, over their spread.

    If each place has one target, it is that from the feature that comes closest.
    """
    ahead, targets = given[:, 1:].to(targets.dtype), targets.reshape(*given.shape[:2], -1)
    off = (ahead - targets[:, :-1]).abs().amax((0, 1))
    return (off.min() if targets.shape[2] == 1 else off.max()) / targets.std().clamp(min=TINY)


def _normalised(values: Tensor) -> list[Tensor]:
    """How far an output is from being normalised over each dimension: `normalised` in `schema.Operation`."""
    found = []
    for dimension in range(values.dim()):
        found += [values.logsumexp(dimension).abs().max(), (values.sum(dimension) - 1).abs().max()]
    return found


def _labels(logits: Tensor, gradient: Tensor) -> list[Tensor]:
    """The labels of a mean cross entropy, which are its softmax less its gradient: `labels` in `schema.Operation`."""
    labels = logits.softmax(1) - gradient * logits.shape[0]
    first, second = labels.topk(2, dim=1).values.unbind(1)
    return [first.min(), first.max(), second.max(), labels.min()]


def _several(probabilities: Tensor, gradient: Tensor) -> list[Tensor]:
    """The labels of a mean binary cross entropy of probabilities: `several` in `schema.Operation`."""
    labels = probabilities - gradient * (probabilities.numel() * probabilities * (1 - probabilities))
    off = torch.minimum(labels.abs(), (labels - 1).abs()).max()
    return [off, ((labels.sum(1) - 1).abs() > 0.5).float().mean()]


def _shared(values: Tensor, targets: Tensor) -> list[Tensor]:
    """The largest difference of the targets of two samples, over that of the outputs of two; and the mean target."""
    between, outputs = ((one.amax(0) - one.amin(0)).max() for one in (targets, values))
    return [between / outputs.clamp(min=TINY), targets.mean()]


def _sums(gradient: Tensor) -> list[Tensor]:
    """For the second dimension and the last one, the largest sum over it, over the largest element; and its size.

    Of three dimensions, also the largest sum over the second one of a view that swaps the sizes of the last two.
    """
    largest, found = gradient.abs().max().clamp(min=TINY), []
    for dimension in (1, -1):
        size = torch.tensor(float(gradient.shape[dimension]), device=gradient.device)
        found += [gradient.sum(dimension).abs().max() / largest, size]
    if gradient.dim() == 3:
        samples, length, classes = gradient.shape
        found.append(gradient.reshape(samples, classes, length).sum(1).abs().max() / largest)
    return found


def _across(values: Tensor, gradient: Tensor) -> list[Tensor]:
    """What sums to zero over the samples or over the features: `across` in `schema.Operation`."""
    of_scale, found = values * gradient, []
    for products, dimension in ((of_scale, 0), (of_scale, 1), (gradient, 0)):
        sizes = products.abs().sum(dimension).max().clamp(min=TINY)
        found.append(products.sum(dimension).abs().max() / sizes)
    return found


def _flat_sum(gradient: Tensor) -> Tensor:
    """The largest sum over as many neighbours in memory as the second dimension has, over the largest element."""
    rows = gradient.reshape(-1)[: gradient.numel() // gradient.shape[1] * gradient.shape[1]]
    return rows.reshape(-1, gradient.shape[1]).sum(1).abs().max() / gradient.abs().max().clamp(min=TINY)


def _nearest(given: Tensor, targets: Tensor) -> list[Tensor]:
    """The largest distance of the targets from the nearest column of an input, over their spread; and that column."""
    closest = (given.to(targets.dtype) - targets[:, None]).abs().amax(0).min(0)
    return [closest.values / targets.std().clamp(min=TINY), closest.indices]


def _bend(output: Tensor, pull: Tensor, is_looked_at: Tensor) -> Tensor:
    """1 minus the squared correlation of outputs and gradients where `is_looked_at`; 0 if either does not differ."""
    weight = is_looked_at / is_looked_at.sum().clamp(min=1)
    x, y = ((one - (weight * one).sum()) for one in (output, pull))
    both, first, second = ((weight * one).sum() for one in (x * y, x * x, y * y))
    return torch.where(first * second > 0, 1 - both**2 / (first * second), 0.0)


def _paddings(modules: ModulesByName) -> dict[int, int]:
    """The token of padding of each embedding that has one, by its number of tokens."""
    embeddings = (one for one in modules.values() if isinstance(one, nn.Embedding))
    return {one.num_embeddings: one.padding_idx for one in embeddings if one.padding_idx is not None}


def _share(flags: Tensor, among: Tensor) -> Tensor:
    """The share of the elements set in `among` that are also set in `flags`; 0 if none is."""
    return (flags & among).sum() / among.sum().clamp(min=1)


def _aligned(gradient: Tensor, shape: tuple[int, int]) -> Tensor | None:
    """The gradients of logits as `[samples, length, classes]`; None if they are not of these tokens."""
    samples, length = shape
    sizes = tuple(gradient.shape)
    if len(sizes) == 3 and sizes[:2] == shape:
        return gradient
    if len(sizes) == 2 and sizes[0] == samples * length:
        return gradient.reshape(samples, length, sizes[1])
    if len(sizes) == 3 and sizes[0] == samples and sizes[2] == length:
        return gradient.transpose(1, 2)
    return None
