"""watch() of a model that is watched: the new watch takes over, and nothing of the earlier one stays behind."""

from __future__ import annotations

import gc
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.held import children, held
from tests.listening import Listening
from tests.processes import answers, wait_for
from torchgraph_explorer import OptionError, Watcher, open_run, sinks, watch
from torchgraph_explorer.training.process import this_process

pytestmark = pytest.mark.slow

RERUNS = 10


class Net(nn.Module):
    """With what depends on the random numbers and on what was before."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(6, 8), nn.BatchNorm1d(8)
        self.drop, self.relu, self.last = nn.Dropout(0.2), nn.ReLU(inplace=True), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(self.drop(self.relu(self.norm(self.first(x)))))
        return out


def net() -> Net:
    torch.manual_seed(0)
    return Net()


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    optimizer.zero_grad()
    loss = model(torch.randn(4, 6)).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(model: nn.Module, steps: int = 1) -> None:
    optimizer = sgd(model)
    for _ in range(steps):
        step(model, optimizer)


def held_at_rest(watcher: Watcher, model: nn.Module, optimizer: object = None) -> dict[str, int]:
    """What is held when the last step is handed over, which keeps the model until then."""
    assert wait_for(lambda: watcher._train.tracker._current.one is None)
    return held(model, optimizer=optimizer)


def is_no_more(held_now: dict[str, int], first: dict[str, int]) -> bool:
    """Whether nothing is held besides. What a test before this one held may be let go meanwhile."""
    return all(held_now[what] <= count for what, count in first.items())


@pytest.fixture
def again(tmp_path: Path) -> Iterator[Callable[..., Watcher]]:
    """`watch` to a folder of this test; what is left open is closed at its end."""

    def watched(model: nn.Module, **options: Any) -> Watcher:
        return watch(model, **{"log_freq": 1, "backend": "record", "logdir": tmp_path, "verbose": False, **options})

    yield watched
    for watcher in this_process.open_watchers():
        watcher.close()


OPTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "standalone": lambda: {"backend": "standalone", "port": 0},
    "record": lambda: {"backend": "record"},
    "tensorboard": lambda: {"backend": "tensorboard"},
    "none": lambda: {"backend": "none"},
    "a sink of one's own": lambda: {"backend": Listening()},
    "several": lambda: {"backend": ["standalone", "tensorboard", Listening()], "port": 0},
    "with evaluation": lambda: {"phases": ("train", "eval")},
}


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_cell_that_is_run_again_and_again_leaves_one_watch(
    options: Callable[[], dict[str, Any]], again: Callable[..., Watcher]
) -> None:
    model, twin = net(), net()
    optimizer, unwatched = sgd(model), sgd(twin)
    expected = [step(twin, unwatched) for _ in range(2 * RERUNS)]
    torch.manual_seed(0)
    _ = net()  # the random numbers from here on are those that the twin had
    losses, urls, folders = [], set(), set()
    first: dict[str, int] = {}
    for _ in range(RERUNS):
        watcher = again(model, optimizer=optimizer, **options())
        losses += [step(model, optimizer) for _ in range(2)]
        first = first or held_at_rest(watcher, model, optimizer)
        urls.add(watcher.url)
        folders.add(watcher.run_dir)
    assert losses == expected
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), twin.parameters(), strict=True))
    assert is_no_more(held_at_rest(watcher, model, optimizer), first)
    assert (len(urls), len(folders)) == (1, 1)
    assert [each for each in this_process.open_watchers() if each.watches(model)] == [watcher]
    watcher.close()
    if watcher.run_dir is not None:
        recorded = open_run(watcher.run_dir).model("Net")
        assert recorded.steps.tolist() == list(range(2 * RERUNS))
        assert (len(recorded.sessions), recorded.notes) == (RERUNS, ())


@pytest.mark.slow
@pytest.mark.parametrize("trains", [True, False], ids=["trained", "not trained"])
@pytest.mark.parametrize("backend", ["standalone", "record"])
def test_a_cell_that_makes_the_model_anew_leaves_one_watch(
    backend: str, trains: bool, again: Callable[..., Watcher], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    urls, watchers, gone = set(), [], []
    first: dict[str, int] = {}
    for _ in range(RERUNS):
        model = net()
        optimizer = sgd(model)
        watchers.append(again(model, backend=backend, port=0, optimizer=optimizer))
        urls.add(watchers[-1].url)
        if trains:
            step(model, optimizer)
        first = first or held_at_rest(watchers[-1], model, optimizer)
        gone.append(weakref.ref(optimizer))
    assert wait_for(lambda: is_no_more(held_at_rest(watchers[-1], model, optimizer), first)), "when steps are at rest"
    assert len(urls) == 1
    assert [each for each in this_process.open_watchers() if each in watchers] == watchers[-1:]
    assert len(list(tmp_path.iterdir())) == (RERUNS if trains else 1), "a run that nothing came to is used again"
    gc.collect()
    assert [each() for each in gone[:-1]] == [None] * (RERUNS - 1), "no watcher keeps an optimizer and its parameters"
    for each in watchers:
        each.close()


def test_a_model_in_a_cycle_is_let_go_in_an_interactive_session(
    again: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    gc.disable()
    try:
        for _ in range(3):
            model = net()
            model.__dict__["itself"] = model
            watcher = again(model)
            train(model)
            held_at_rest(watcher, model)
            assert this_process.open_watchers() == (watcher,)
    finally:
        gc.enable()


def test_models_that_are_alive_are_each_watched(again: Callable[..., Watcher]) -> None:
    models = [net() for _ in range(3)]
    watchers = [again(model) for model in models]
    for model in models:
        train(model, 2)
    for watcher in watchers:
        watcher.close()
        assert open_run(str(watcher.run_dir)).model().steps.tolist() == [0, 1]
    assert len({watcher.run_dir for watcher in watchers}) == 3


def test_it_is_said_in_one_line(again: Callable[..., Watcher], capsys: pytest.CaptureFixture[str]) -> None:
    model = net()
    again(model)
    train(model, 3)
    again(model)
    assert capsys.readouterr().err == (
        "torchgraph: Net was being watched: that watch is closed, and this one goes on at step 3. "
        "To keep both, give them different names with name=.\n"
    )
    train(model)


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "compiled": lambda model: torch.compile(model, backend="eager"),
    "data parallel": nn.DataParallel,
    "compiled and data parallel": lambda model: nn.DataParallel(torch.compile(model, backend="eager")),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize("first", ["the model", "the wrapper"])
def test_a_wrapped_model_is_the_same_model(
    wrap: Callable[[Any], Any], first: str, again: Callable[..., Watcher]
) -> None:
    model = net()
    wrapper = wrap(model)
    both = (model, wrapper) if first == "the model" else (wrapper, model)
    again(both[0])
    train(both[0], 2)
    second = again(both[1])
    train(both[1], 2)
    assert this_process.open_watchers() == (second,)
    second.close()
    assert open_run(str(second.run_dir)).model("Net").steps.tolist() == [0, 1, 2, 3]


def test_two_watches_by_different_names_both_record(again: Callable[..., Watcher]) -> None:
    model, one, other = net(), Listening(), Listening()
    with again(model, name="a", backend=one, sample_n=None), again(model, name="b", backend=other, sample_n=None):
        train(model, 2)
    assert [frame.step for frame in one.frames] == [frame.step for frame in other.frames] == [0, 1]
    assert one.recorded() == other.recorded()
    assert all(one.row(key)[0] == other.row(key)[0] for key in one.recorded())


def test_a_part_of_a_watched_model_may_be_watched_by_itself(again: Callable[..., Watcher]) -> None:
    inner = nn.Sequential(nn.Linear(6, 2))
    model = nn.Sequential(inner)
    whole, part = again(model), again(inner)
    train(model, 2)
    whole.close()
    part.close()
    assert [open_run(str(each.run_dir)).model().steps.tolist() for each in (whole, part)] == [[0, 1], [0, 1]]


def test_a_watch_that_was_closed_is_not_gone_on_with(again: Callable[..., Watcher]) -> None:
    model = net()
    with again(model) as first:
        train(model)
    with again(model) as second:
        train(model)
    assert (second.step, first.run_dir != second.run_dir) == (1, True)


def test_beside_another_model_a_fresh_one_gets_a_run_of_its_own(again: Callable[..., Watcher]) -> None:
    other, model = net(), net()
    kept = again(other, name="other")
    with again(model) as first:
        train(model)
    with again(fresh := net()) as second:
        train(fresh)
    assert first.run_dir == kept.run_dir != second.run_dir
    train(other)


@pytest.mark.parametrize(
    ("before", "after", "step_after"),
    [
        pytest.param({"run": "a"}, {"run": "a"}, 2, id="the same run by name"),
        pytest.param({"run": "a"}, {}, 2, id="the run left out"),
        pytest.param({"run": "a"}, {"run": "b"}, 0, id="another run"),
    ],
)
def test_another_run_begins_at_step_0(
    before: dict[str, str], after: dict[str, str], step_after: int, again: Callable[..., Watcher]
) -> None:
    model = net()
    again(model, **before)
    train(model, 2)
    assert again(model, **after).step == step_after
    train(model)


def test_a_watch_in_another_folder_takes_over_the_port(again: Callable[..., Watcher], tmp_path: Path) -> None:
    model, before = net(), children()
    # Not one that the system would give to another test or connection between the two.
    first = again(model, backend="standalone", port=20_000 + os.getpid() % 10_000)
    assert first.viewer is not None
    port = first.viewer.port  # type: ignore[attr-defined]
    train(model)
    second = again(model, backend="standalone", port=port, logdir=tmp_path / "elsewhere")
    train(model)
    assert second.url == first.url
    assert answers(str(second.url))
    assert Path(str(second.run_dir)).parent == tmp_path / "elsewhere"
    second.close()
    assert wait_for(lambda: children() <= before), "a viewer's process is left"


def test_a_watch_without_a_viewer_ends_the_one_of_the_earlier(again: Callable[..., Watcher]) -> None:
    model = net()
    first = again(model, backend="standalone", port=0)
    train(model)
    again(model, backend="record")
    assert not answers(str(first.url))
    train(model)


def test_a_watch_that_is_refused_leaves_the_earlier_as_it_is(
    again: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = net()
    first = again(model)
    train(model)
    monkeypatch.setitem(sinks.LIBRARY_BACKENDS, "tensorboard", "nowhere:open_sink")
    for refused in ({"backend": "tensorboard"}, {"run": "../x"}, {"log_freq": 0}):
        with pytest.raises(OptionError):
            again(model, **refused)
    train(model)
    first.close()
    assert open_run(str(first.run_dir)).model().steps.tolist() == [0, 1]


def test_a_watch_in_the_middle_of_a_step_leaves_the_training_as_it_is(again: Callable[..., Watcher]) -> None:
    def trained(*, watched: bool) -> list[float]:
        model = net()
        optimizer = sgd(model)
        losses = []
        for _ in range(4):
            if watched:
                again(model, optimizer=optimizer)
            loss = model(torch.randn(4, 6)).square().mean()
            if watched:
                again(model, optimizer=optimizer)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert trained(watched=True) == trained(watched=False)


def test_a_model_that_is_watched_again_before_it_trains_is_not_warned_of(again: Callable[..., Watcher]) -> None:
    model = net()
    again(model)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        again(model)
        train(model)
    assert [str(each.message) for each in told] == []
