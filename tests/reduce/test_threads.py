"""Several threads look at one large tensor, and find what one thread finds, bit for bit."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from ctypes import CFUNCTYPE, c_uint, c_void_p, cast
from typing import Any

import pytest
import torch
from torch import Tensor

from torchgraph_explorer.reduce import row_buffer
from torchgraph_explorer.reduce.row_buffer import TYPES, RowBuffer

LARGE, BLOCK = 1 << 16, 2048
THREADS = 4
ALONE = 32  # tensors that one thread looks at by itself after others were late for the first time


@pytest.fixture(autouse=True)
def _several_threads() -> Iterator[None]:
    torch.set_num_threads(THREADS)
    yield
    torch.set_num_threads(1)


def of(kind: str, count: int) -> Tensor:
    torch.manual_seed(count)
    values = torch.randn(count) * 10
    chosen = torch.rand(count) < 0.01
    match kind:
        case "not finite here and there":
            values[chosen] = torch.tensor([torch.nan, torch.inf, -torch.inf]).repeat(count)[: int(chosen.sum())]
        case "only NaN":
            values.fill_(torch.nan)
        case "NaN at first":
            values[: 5 * BLOCK] = torch.nan
        case "zeros of both signs":
            values = torch.where(chosen, 0.0, -0.0)
        case "equal":
            values.fill_(3.3)
        case "out of range":
            values *= 1e37
    return values


def row(tensor: Tensor, *, stride: int, divisor: float, threads: int, histograms: bool = True) -> list[bytes]:
    torch.set_num_threads(threads)
    buffer, length = RowBuffer(histograms=histograms), tensor.numel() // stride
    for _ in range(2):  # the first one leaves all tables empty
        buffer.add(tensor, first=stride - 1, stride=stride, length=length, divisor=divisor)
    part = buffer.finish()
    histogram = part.histograms
    return [each.tobytes() for each in (part.statistics, part.fingerprints, histogram.buckets, histogram.counts)]


@pytest.mark.parametrize("histograms", [True, False], ids=["", "without histograms"])
@pytest.mark.parametrize(("stride", "divisor"), [(1, 1.0), (1, 3.0), (16, 1.0), (7, 65536.0)])
@pytest.mark.parametrize("count", [LARGE - 1, LARGE, 3 * LARGE + 5, 70 * BLOCK + 1], ids=str)
@pytest.mark.parametrize(
    "kind",
    ["random", "not finite here and there", "only NaN", "NaN at first", "zeros of both signs", "equal", "out of range"],
)
def test_threads_find_what_one_finds(kind: str, count: int, stride: int, divisor: float, histograms: bool) -> None:
    tensor = of(kind, count)
    one, several = (
        row(tensor, stride=stride, divisor=divisor, threads=threads, histograms=histograms) for threads in (1, THREADS)
    )
    assert several == one


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_threads_find_what_one_finds_in_each_type(dtype: torch.dtype) -> None:
    tensor = of("random", LARGE).to(dtype)
    assert row(tensor, stride=4, divisor=1.0, threads=THREADS) == row(tensor, stride=4, divisor=1.0, threads=1)


@pytest.mark.parametrize("samples", [1, 3, 64, 5_000], ids=str)
@pytest.mark.parametrize("kind", ["random", "not finite here and there", "out of range"])
def test_threads_find_the_norms_that_one_finds(kind: str, samples: int) -> None:
    tensor = of(kind, samples * (3 * LARGE // samples))
    found = []
    for threads in (1, THREADS):
        torch.set_num_threads(threads)
        buffer = RowBuffer()
        buffer.add_norms((tensor.data_ptr(), 0, tensor.numel()), samples=samples, divisor=3.0)
        part = buffer.finish()
        found.append((part.statistics.tobytes(), part.fingerprints.tobytes(), part.histograms.counts.tobytes()))
    assert found[0] == found[1]


class Team:
    """Stands for OpenMP: executes what several threads are to do, in this one."""

    def __init__(self, *, members: int, seconds: float = 0.0) -> None:
        self.called, self.asked = 0, list[int]()

        def act(work: int, task: int, threads: int, _flags: int) -> None:
            self.called += 1
            self.asked.append(threads)
            for _ in range(members):
                cast(work, CFUNCTYPE(None, c_void_p))(task)
            time.sleep(seconds)

        self.function = CFUNCTYPE(None, c_void_p, c_void_p, c_uint, c_uint)(act)


@pytest.fixture(name="use")
def _use() -> Iterator[Callable[[Team], None]]:
    teams: list[Team] = []  # one must live for as long as it may be called

    def use(team: Team) -> None:
        teams.append(team)
        set_parallel(cast(team.function, c_void_p))

    set_parallel: Any = row_buffer.library().torchgraph_set_parallel
    yield use
    set_parallel(row_buffer._parallel())


@pytest.mark.parametrize("members", [1, 2, THREADS, THREADS + 3], ids=["one comes", "two", "all", "more than asked"])
def test_openmp_may_use_any_number_of_threads(members: int, use: Callable[[Team], None]) -> None:
    tensor = of("random", 3 * LARGE)
    one = row(tensor, stride=1, divisor=1.0, threads=1)
    use(team := Team(members=members))
    assert row(tensor, stride=1, divisor=1.0, threads=THREADS) == one
    assert set(team.asked) == {THREADS}


@pytest.mark.parametrize(
    ("count", "threads"), [(LARGE - 1, THREADS), (LARGE, 1)], ids=["small tensors", "torch computes with one thread"]
)
def test_one_thread_looks_at(count: int, threads: int, use: Callable[[Team], None]) -> None:
    use(team := Team(members=2))
    row(of("random", count), stride=1, divisor=1.0, threads=threads)
    assert team.called == 0


def test_a_thread_that_is_late_is_not_waited_for_again_for_a_while(use: Callable[[Team], None]) -> None:
    use(team := Team(members=2, seconds=0.002))
    buffer, tensor = RowBuffer(), of("random", LARGE)
    called = []
    for _ in range(2 + ALONE + 2 * ALONE):
        buffer.add(tensor, first=0, stride=4, length=LARGE // 4, divisor=1.0)
        called.append(team.called)
    assert called == [1] * (1 + ALONE) + [2] * (1 + 2 * ALONE)


def test_a_step_uses_as_many_threads_as_torch_does_then(use: Callable[[Team], None]) -> None:
    use(team := Team(members=2))
    buffer, tensor = RowBuffer(), of("random", LARGE)
    for threads in (2, 1, THREADS + 4, THREADS):
        torch.set_num_threads(threads)
        buffer.begin(-1, lambda count, _step: (0, 1, count), step=0, scale=1.0)
        buffer._memory._buffers.alone = 0  # this thread may have been late itself
        buffer.add(tensor, first=0, stride=4, length=LARGE // 4, divisor=1.0)
    assert team.asked == [2, THREADS, THREADS], "there is memory for so many"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_uses_one_thread(use: Callable[[Team], None]) -> None:
    """GNU's OpenMP would wait there for threads that were not forked."""
    use(team := Team(members=2))
    tensor = of("random", LARGE)
    if (child := os.fork()) == 0:
        row(tensor, stride=1, divisor=1.0, threads=THREADS)
        os._exit(team.called)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="torch has another OpenMP there")
def test_torch_has_an_openmp_that_is_used() -> None:
    assert row_buffer._parallel() is not None
