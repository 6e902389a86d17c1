"""Tensors that kept.c copies are as those that Python copies, which is the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.kept import KeptArray, apart
from torchgraph_explorer import Keep
from torchgraph_explorer.reduce import kept
from torchgraph_explorer.reduce.room import LARGEST_PIECE, Room
from torchgraph_explorer.reused_memory import MOST_REUSED, Pieces
from torchgraph_explorer.tensors.step_tensors import KeptSteps, SeriesKey, StepTensors

Act = Callable[[StepTensors], object]


def key(name: str, *, role: str = "output", kind: str = "value", call: int = 0) -> SeriesKey:
    return name, call, role, "output", kind


def take(tensor: Tensor, name: str = "one", **parts: str) -> Act:
    return lambda step: step.take(key(name, **parts), tensor)  # type: ignore[arg-type]


def inference() -> Tensor:
    with torch.inference_mode():
        return torch.ones(4, 3)


def freed(*, in_order: bool) -> Tensor:
    tensor = torch.ones(4, 3)
    tensor = tensor if in_order else tensor.t()
    tensor.untyped_storage().resize_(0)
    return tensor


def overwritten() -> Iterable[Act]:
    tensor = torch.ones(4, 3)
    yield take(tensor, "first")
    yield take(tensor, "second")
    yield lambda _: tensor.add_(1)
    yield take(tensor, "third")


def replaced() -> Iterable[Act]:
    for number in range(3):
        yield take(torch.full((4, 3), float(number)), kind="grad_norm")
        yield lambda step, number=number: step.name_gradients(f"loss {number}")  # type: ignore[misc]


def of_one_address() -> Iterable[Act]:
    """Tensors that come and go, one at the place in memory of the other."""
    for number in range(40):
        yield take(torch.full((4, 3), float(number)), f"module {number}")


def some(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(shape, generator=generator) * 3).to(dtype)


TAKEN = [
    pytest.param(lambda: [take(some(6, 5))], id="ordinary"),
    pytest.param(lambda: [take(nn.Parameter(some(6, 5)), role="param")], id="a parameter"),
    pytest.param(lambda: [take(some(6, 300, 2))], id="more neurons than are summed at once"),
    pytest.param(lambda: [take(some(6, 5, dtype=torch.bfloat16))], id="bfloat16"),
    pytest.param(lambda: [take(some(6, 5, dtype=torch.float64))], id="float64"),
    pytest.param(lambda: [take(some(6, 5, dtype=torch.int64))], id="int64"),
    pytest.param(lambda: [take(some(6, 5) > 0)], id="bool"),
    pytest.param(lambda: [take(torch.complex(some(6, 5), some(6, 5)))], id="complex"),
    pytest.param(lambda: [take(torch.complex(some(6, 5), some(6, 5)).conj().imag)], id="negated"),
    pytest.param(lambda: [take(some(5, 6).t())], id="not in order"),
    pytest.param(lambda: [take(some(1, 5).expand(6, 5))], id="expanded"),
    pytest.param(lambda: [take(some(12, 5)[6:])], id="a part of another"),
    pytest.param(lambda: [take(torch.tensor(2.0))], id="a scalar"),
    pytest.param(lambda: [take(torch.empty(0, 3))], id="no sample"),
    pytest.param(lambda: [take(torch.empty(3, 0))], id="no neuron"),
    pytest.param(lambda: [take(inference(), "first"), take(inference(), "second")], id="of inference mode"),
    pytest.param(lambda: [take(freed(in_order=True))], id="memory that was freed"),
    pytest.param(lambda: [take(freed(in_order=False))], id="not in order, in memory that was freed"),
    pytest.param(lambda: [take(some(4, 3).to_sparse())], id="sparse"),
    pytest.param(lambda: [take(some(5, 3)[:0].resize_(4, 3).fill_(1))], id="resized"),
    pytest.param(overwritten, id="written to after it was seen"),
    pytest.param(replaced, id="several backward passes"),
    pytest.param(of_one_address, id="one at the address of another"),
    pytest.param(
        lambda: [lambda step: step.choose(("a", "a", "a", "b")), take(some(4, 3)), take(some(6, 3), "two")],
        id="categories",
    ),
    pytest.param(lambda: [take(some(4, 3), "left out"), take(some(4, 3))], id="one that no pattern selects"),
    pytest.param(lambda: [take(some(600, 500), role="param")], id="larger than the first piece of memory"),
]


def arrays(keep: Keep, acts: Callable[[], Iterable[Act]], notes: list[str]) -> list[KeptArray]:
    """What two steps keep; the second one has what the first has found out."""
    steps = KeptSteps(keep, share=1, note=notes.append)
    found: list[KeptArray] = []
    for number in range(2):
        step = steps.begin(number)
        assert step is not None
        for act in acts():
            act(step)
        step.finish()
        found += [one._replace(values=one.values.copy(), statistics=copy_of(one)) for one in apart(step.arrays())]
        notes.append(f"{step.size} bytes")
        step.done(None)
    return found


def copy_of(one: KeptArray) -> np.ndarray | None:
    return None if one.statistics is None else np.ravel(one.statistics).copy()


def assert_equal(one: list[KeptArray], other: list[KeptArray]) -> None:
    assert [each._replace(values=None, statistics=None) for each in one] == [  # type: ignore[arg-type]
        each._replace(values=None, statistics=None)  # type: ignore[arg-type]
        for each in other
    ]
    for left, right in zip(one, other, strict=True):
        assert left.values.tobytes() == right.values.tobytes()
        if left.statistics is None or right.statistics is None:
            assert left.statistics is right.statistics
        else:
            np.testing.assert_allclose(left.statistics, right.statistics, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    "keep", [Keep("one", "[!l]*", samples=3), Keep("*", samples=None, batch_dim=-1)], ids=["samples=3", "all"]
)
@pytest.mark.parametrize("acts", TAKEN)
def test_at_once_as_by_python(acts: Callable[[], Iterable[Act]], keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: tuple[list[str], list[str]] = [], []
    at_once = arrays(keep, acts, notes[0])
    monkeypatch.setattr(kept, "taking", lambda *_: None)
    assert_equal(at_once, arrays(keep, acts, notes[1]))
    assert notes[0] == notes[1]


def test_samples_that_are_not_finite_are_kept_as_by_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def acts() -> Iterable[Act]:
        first, odd = some(8, 3), some(8, 3)
        odd[5] = torch.nan
        return [take(first, "first"), take(odd, "odd"), take(some(8, 3), "last")]

    keep = Keep("*", samples=2, when="flagged")
    at_once = arrays(keep, acts, [])
    assert {one.samples for one in at_once} == {(0, 5)}
    monkeypatch.setattr(kept, "taking", lambda *_: None)
    assert_equal(at_once, arrays(keep, acts, []))


@pytest.mark.skipif(kept._functions() is None, reason="kept.c was not built, or torch is too old for it")
def test_python_does_nothing_for_a_tensor_whose_like_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, calls, in_full = KeptSteps(Keep("*"), share=1, note=pytest.fail), [], StepTensors._take

    def noted(step: StepTensors, one: SeriesKey, tensor: Tensor) -> None:
        calls.append(one)
        in_full(step, one, tensor)

    monkeypatch.setattr(StepTensors, "_take", noted)
    for number in range(3):
        step = steps.begin(number)
        assert step is not None
        for each in range(5):
            step.take(key(f"module {each}"), some(6, 5))
        step.finish()
        step.done(None)
    assert len(calls) == 5 + 1 + 1, "all of the first step, and one for which each later step begins its memory"


def test_memory_is_used_again_when_nothing_refers_to_it() -> None:
    pieces = Pieces()
    first = Room(pieces)
    mine, address = first.take(100)
    assert Room(pieces).take(100)[1] != address, "it is referred to"
    del mine, first
    assert Room(pieces).take(100)[1] == address


def test_memory_for_the_next_step_is_bounded() -> None:
    pieces = Pieces()
    held = [pieces.take(LARGEST_PIECE) for _ in range(2 * MOST_REUSED // LARGEST_PIECE)]
    assert pieces._size() == MOST_REUSED
    del held
    pieces.take(MOST_REUSED // 2)
    assert pieces._size() <= MOST_REUSED


def test_a_step_that_turns_out_not_to_be_logged_takes_no_other_one_s_turn() -> None:
    steps = KeptSteps(Keep("*", megabytes=1), share=1, note=list[str]().append)
    steps.used = 600_000  # beyond half of the space, every second logged step is kept
    assert steps.begin(0) is not None
    steps.discard()
    assert [steps.begin(step) is not None for step in (1, 2, 3)] == [True, False, True]


class _Interrupted(int):
    """A number at which another thread takes its turn, when it is added to another."""

    turn: Callable[[], object]

    def __radd__(self, other: int) -> int:
        self.turn()
        return other + int(self)


def test_a_step_may_be_written_while_another_one_ends() -> None:
    steps = KeptSteps(Keep("*"), share=1, note=list[str]().append)
    earlier, later = steps.begin(0), steps.begin(1)
    assert earlier is not None
    assert later is not None
    steps.ended(earlier, 100)
    size = _Interrupted(8)
    size.turn = lambda: earlier.done(None)
    steps.ended(later, size)
    assert steps.waiting == 108  # as of before that turn
    assert steps.waiting == 8
    later.done(None)
    assert steps.waiting == 0
