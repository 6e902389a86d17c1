"""Products with the Jacobian of one tensor of a pass by another: rows, columns, and all of it in blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd import forward_ad

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.exploring.names import Place
from torchgraph_explorer.exploring.recording import RecordedTensor, Visit

Progress: TypeAlias = "Callable[[int, int], None]"
"""Called with how much is done, and how much there is to do. May raise, to cancel."""

Rerun: TypeAlias = "Callable[[Visit], None]"
"""Runs the same pass again, and calls the function with each tensor."""

BLOCK_BYTES = 2**26
"""Memory for the vectors of one block."""

MOST_BATCHED = 64
"""Vectors of one block at most."""

MOST_ROWS = 4096
"""Elements of a tensor for which a column is put together from rows, where no faster way exists."""


_level = threading.Lock()
"""torch has one level of forward-mode derivatives in a process, and a session computes in a thread of its own."""


@contextmanager
def _forward_mode() -> Iterator[None]:
    with _level, forward_ad.dual_level():
        yield


def pull(b: RecordedTensor, vector: Tensor, sources: Sequence[RecordedTensor]) -> list[Tensor]:
    """The transposed Jacobian of `b` by each of `sources`, times `vector`: zeros where nothing of `b` comes from."""
    found = _pulled(b, vector, sources)
    return [_filled(one, source) for one, source in zip(found, sources, strict=True)]


def _pulled(b: RecordedTensor, vector: Tensor, sources: Sequence[RecordedTensor], **how: Any) -> Sequence[Any]:
    return torch.autograd.grad(
        [edge_of(b)], [edge_of(one) for one in sources], [vector], retain_graph=True, allow_unused=True, **how
    )


def edge_of(tensor: RecordedTensor) -> Any:
    """Where a gradient comes into `tensor`.

    Raises:
        OptionError: None can.
    """
    if tensor.edge is None:
        kind = str(tensor.value.dtype).removeprefix("torch.")
        why = "it is computed under no_grad, or detached" if _is_continuous(tensor.value) else f"it holds {kind}"
        raise OptionError(f"No gradient can reach {tensor.name!r}: {why}. Choose a tensor that is computed from it.")
    return tensor.edge


def _is_continuous(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _filled(found: Tensor | None, like: RecordedTensor) -> Tensor:
    return torch.zeros_like(like.value) if found is None else found.detach()


def push_forward(
    a: RecordedTensor, vector: Tensor, targets: Sequence[RecordedTensor], *, rerun: Rerun
) -> list[Tensor] | None:
    """The Jacobian of each of `targets` by `a`, times `vector`, by forward-mode derivatives in a second pass.

    None if an operation has no such derivative. To be checked with `are_transposed`: what uses `a` before it comes to
    its place, as a tensor that a module returns after it has used it, is not seen.
    """
    if a.value.is_complex():
        return None
    wanted: dict[Place, Tensor] = {}
    places = {one.place for one in targets}

    def visit(place: Place, tensor: Tensor) -> None:
        if place == a.place:
            if tensor._is_view():  # what is written to it would also be in the tensor that it is a view of
                raise NotImplementedError
            tensor.copy_(forward_ad.make_dual(tensor.detach(), vector))
        if place in places:
            tangent = forward_ad.unpack_dual(tensor).tangent
            wanted[place] = torch.zeros_like(tensor) if tangent is None else tangent.detach().clone()

    try:
        with _forward_mode():
            rerun(visit)
    except (RuntimeError, NotImplementedError, Warning):  # the last where the user has made warnings errors
        return None
    return [wanted[one.place].detach() for one in targets]


def prepare() -> None:
    """Load what the first forward-mode derivative of a process needs. It takes a second or two."""
    with _forward_mode():
        forward_ad.make_dual(torch.zeros(1), torch.zeros(1))


def random_pull(a: RecordedTensor, targets: Sequence[RecordedTensor]) -> Tensor:
    """The transposed Jacobian of all `targets` by `a`, times the numbers of `random_weights`."""
    weights = [random_weights(one.value) for one in targets]
    (found,) = torch.autograd.grad(
        [edge_of(one) for one in targets], [edge_of(a)], weights, retain_graph=True, allow_unused=True
    )
    return _filled(found, a)


def random_weights(like: Tensor) -> Tensor:
    """The same random numbers for each tensor of a shape."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(like.shape, generator=generator).to(like.device, like.dtype)


def are_transposed(pushed: Sequence[Tensor], vector: Tensor, pulled: Tensor) -> bool:
    """Whether `pushed`, Jacobians times `vector`, fit what `random_pull` gives: uᵀ(J v) = (Jᵀu)ᵀ v for random u."""
    parts = torch.cat([(random_weights(one).double() * one.double()).flatten() for one in pushed])
    difference = parts.sum() - (pulled.double() * vector.double()).sum()
    scale = parts.abs().sum()
    return bool(abs(difference) <= torch.finfo(pulled.dtype).eps ** 0.5 * scale) or not bool(scale.isfinite())


def push_backward(a: RecordedTensor, vector: Tensor, b: RecordedTensor) -> Tensor:
    """The Jacobian of `b` by `a`, times `vector`, by differentiating the backward pass; else from rows.

    Raises:
        OptionError: The backward pass cannot be differentiated, and `b` is large.
    """
    found = _differentiated(a, vector, b)
    if found is not None and are_transposed([found], vector, random_pull(a, [b])):
        return found
    if b.value.numel() > MOST_ROWS:
        raise OptionError(
            f"What {a.name!r} sends to {b.name!r} cannot be computed: an operation between them has neither a "
            f"forward-mode derivative nor a derivative of its backward pass, and {b.name!r} has more than "
            f"{MOST_ROWS:,} elements. Select an element of {b.name!r} instead."
        )
    count, ones = b.value.numel(), torch.ones_like(b.value)
    rows = pull_each(
        b, a, vectors=lambda first, stop: singles(ones, first, stop), count=count, keep=lambda rows: rows * vector
    )
    return rows.reshape(count, -1).sum(1).reshape(b.value.shape)


def _differentiated(a: RecordedTensor, vector: Tensor, b: RecordedTensor) -> Tensor | None:
    """J v, as the derivative of vᵀ(Jᵀu) by u. Wrong where the backward pass hides something from autograd."""
    if a.value.is_complex() or b.value.is_complex():
        return None
    weights = torch.ones_like(b.value, requires_grad=True)
    try:
        (pulled,) = _pulled(b, weights, [a], create_graph=True)
        if pulled is None or not pulled.requires_grad:
            return None if pulled is not None else torch.zeros_like(b.value)
        (pushed,) = torch.autograd.grad([pulled], [weights], [vector], allow_unused=True)
    except (RuntimeError, NotImplementedError):  # the backward pass of an operation cannot be differentiated
        return None
    return None if pushed is None else pushed.detach()


def singles(tensor: Tensor, first: int, stop: int) -> Tensor:
    """The elements `first` to `stop` of `tensor`, each alone among zeros. `[stop - first, *shape]`."""
    rows = tensor.new_zeros((stop - first, tensor.numel()))
    rows[torch.arange(stop - first), torch.arange(first, stop)] = tensor.reshape(-1)[first:stop]
    return rows.reshape(stop - first, *tensor.shape)


def pull_each(
    b: RecordedTensor,
    a: RecordedTensor,
    *,
    vectors: Callable[[int, int], Tensor],
    count: int,
    keep: Callable[[Tensor], Tensor] = lambda rows: rows,
    progress: Progress | None = None,
) -> Tensor:
    """`pull` for `count` vectors, in blocks; `vectors(first, stop)` makes those of a block. `[count, ...]`.

    `keep` is called with the result for each block, `[block, *a.shape]`, and returns what to keep of it.
    """
    size = BLOCK_BYTES // max(1, b.value.element_size() * max(b.value.numel(), a.value.numel()))
    size, is_batched = max(1, min(size, MOST_BATCHED)), True
    found = []
    for first in range(0, count, size):
        if progress is not None:
            progress(first, count)
        block, rows = vectors(first, min(first + size, count)), None
        if is_batched and len(block) > 1:
            rows = _pulled_together(b, block, a)
            is_batched = rows is not None
        found.append(keep(rows if rows is not None else torch.stack([pull(b, one, [a])[0] for one in block])))
    if progress is not None:
        progress(count, count)
    return torch.cat(found) if found else keep(a.value.new_zeros((0, *a.value.shape)))


def _pulled_together(b: RecordedTensor, block: Tensor, a: RecordedTensor) -> Tensor | None:
    """The results for a block; None if an operation cannot be batched."""
    try:
        (found,) = _pulled(b, block, [a], is_grads_batched=True)
    except RuntimeError:
        return None
    return a.value.new_zeros((len(block), *a.value.shape)) if found is None else found.detach()
