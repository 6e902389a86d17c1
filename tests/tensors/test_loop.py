"""What the training loop says of its steps: labels, categories of samples, losses, tensors of its own, what to keep."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import Keep, OptionError, PerLabel, TorchgraphWarning, attach, open_run, watch
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import Series
from torchgraph_explorer.tensors.copies import copied, spread_over
from torchgraph_explorer.tensors.odd_samples import INFINITE, NAN, odd_samples
from torchgraph_explorer.training.live_findings import LiveFindings
from torchgraph_explorer.training.watcher import Watcher


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).relu())


class Loop:
    """A training whose steps say something."""

    def __init__(self, folder: Path, **options: Any) -> None:
        torch.manual_seed(0)
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.options = {"log_freq": 1, "backend": "record", "logdir": folder, "run": "run", "verbose": False, **options}
        self.watcher: Watcher
        self.bad: tuple[int, ...] = ()

    @contextmanager
    def watched(self) -> Iterator[Watcher]:
        with watch(self.model, **self.options) as self.watcher:
            yield self.watcher

    def run(self, steps: int, say: Callable[[Watcher, int, str], None], batch: int = 6) -> Model:
        with self.watched():
            for step in range(steps):
                self.step(step, say, batch)
        return self.read()

    def step(self, step: int, say: Callable[[Watcher, int, str], None], batch: int = 6) -> None:
        """`say` is called at each moment of a step."""
        say(self.watcher, step, "before")
        self.optimizer.zero_grad()
        loss = self.model(torch.randn(batch, 4)).square().mean()
        say(self.watcher, step, "after forward")
        loss.backward()
        say(self.watcher, step, "after backward")
        self.optimizer.step()
        say(self.watcher, step, "after update")

    def read(self) -> Model:
        return open_run(str(self.watcher.run_dir)).model()


def head(kind: str = "value", call: int | None = 0) -> Series:
    return Series(-1, "head", call, "output", "output", kind)  # type: ignore[arg-type]


def outside(name: str, kind: str = "value") -> Series:
    return Series(-1, "", None, "attached", name, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("moment", ["before", "after forward", "after backward"])
def test_a_label_is_given_at_any_time_before_the_end_of_the_step(moment: str, tmp_path: Path) -> None:
    def say(watcher: Watcher, step: int, now: str) -> None:
        if now == moment and step != 1:
            watcher.label(f"kind {step % 2}")

    model = Loop(tmp_path, keep=Keep("head")).run(4, say)
    assert model.labels == ("kind 0", None, "kind 0", "kind 1")
    assert model.kept.labels == model.labels


@pytest.mark.parametrize("log_freq", [1, 3], ids="log_freq={}".format)
def test_labels_are_of_steps_without_an_optimizer_too(log_freq: int, tmp_path: Path) -> None:
    loop = Loop(tmp_path, log_freq=log_freq)
    del loop.optimizer
    with loop.watched() as watcher:
        for step in range(7):
            watcher.label(str(step))
            loop.model(torch.randn(3, 4)).sum().backward()
            for parameter in loop.model.parameters():
                assert parameter.grad is not None
                parameter.data -= 0.01 * parameter.grad
    assert loop.read().labels == tuple(str(step) for step in range(0, 7, log_freq))


def test_an_evaluation_has_a_label(tmp_path: Path) -> None:
    loop = Loop(tmp_path, phases=("train", "eval"))
    with loop.watched() as watcher:
        for step in range(2):
            loop.model.train()
            loop.step(step, lambda *_: None)
            loop.model.eval()
            watcher.label(f"evaluation {step}")
            with torch.no_grad():
                loop.model(torch.randn(3, 4))
    run = open_run(str(watcher.run_dir))
    assert run.model("Net").labels == (None, None)
    assert run.model("Net (eval)").labels == ("evaluation 0", "evaluation 1")


def test_what_is_said_of_an_evaluation_is_not_taken_for_another_one_at_the_same_step(tmp_path: Path) -> None:
    """They take turns: what is recorded of each step is one of them, with its own label and categories."""
    loop = Loop(tmp_path, keep=Keep(":input", samples=None), phases=("train", "eval"))
    with warnings.catch_warnings(), loop.watched() as watcher:
        warnings.simplefilter("ignore", TorchgraphWarning)
        for step in range(4):
            loop.model.train()
            loop.step(step, lambda *_: None)
            loop.model.eval()
            for number, name in enumerate(("first", "second")):
                watcher.label(name)
                watcher.samples([name] * 3)
                with torch.no_grad():
                    loop.model(torch.full((3, 4), float(number)))
    model = open_run(str(watcher.run_dir)).model("Net (eval)")
    assert model.kept.labels == model.labels == ("first", "second", "first", "second")
    [given] = (one for one in model.kept.series if (one.module, one.role) == ("", "input"))
    for step, label in zip(model.kept.steps.tolist(), model.kept.labels, strict=True):
        found = model.tensor(given, step)
        assert found.values[0, 0] == ("first", "second").index(str(label))
        assert set(found.categories) == {label}


def rare(step: int) -> str:
    return "rare" if step % 7 == 5 else "common"


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after forward", "after backward"])
def test_rare_kinds_of_steps_are_logged_by_a_schedule_of_their_own(moment: str, tmp_path: Path) -> None:
    def say(watcher: Watcher, step: int, now: str) -> None:
        if now == moment:
            watcher.label(rare(step))

    model = Loop(tmp_path, log_freq=PerLabel(every=10)).run(40, say)
    found = dict(zip(model.steps.tolist(), model.labels, strict=True))
    assert all(label == rare(step) for step, label in found.items())
    commons = [step for step, label in found.items() if label == "common"]
    rares = [step for step, label in found.items() if label == "rare"]
    assert commons == [0, 10, 20, 30]
    assert rares == ([5, 19, 33] if moment == "before" else [12, 26])
    assert model.session.log_freq == "PerLabel(every=10, backoff=1.0)"


@pytest.mark.slow
def test_the_first_one_from_each_multiple_on_of_the_steps_that_labels_select_is_kept(tmp_path: Path) -> None:
    def say(watcher: Watcher, step: int, now: str) -> None:
        if now == "after forward":
            watcher.label(rare(step))

    model = Loop(tmp_path, log_freq=PerLabel(every=5), keep=Keep("head", log_freq=10)).run(30, say)
    steps = model.steps.tolist()
    assert len(steps) < 15
    assert model.kept.steps.tolist() == [min(step for step in steps if step >= first) for first in (0, 10, 20)]


@pytest.mark.parametrize(
    ("logged", "kept", "expected"),
    [
        pytest.param(2, 6, [0, 6, 12], id="a multiple"),
        pytest.param(4, 6, [0, 8, 12], id="no multiple"),
        pytest.param(5, 2, [0, 5, 10], id="less than what is logged"),
    ],
)
def test_log_freq_of_keep_counts_steps_of_the_training(
    logged: int, kept: int, expected: list[int], tmp_path: Path
) -> None:
    assert (
        Loop(tmp_path, log_freq=logged, keep=Keep("head", log_freq=kept)).run(14, lambda *_: None).kept.steps.tolist()
        == expected
    )


@pytest.mark.slow
def test_rare_kinds_are_kept_by_a_schedule_of_their_own(tmp_path: Path) -> None:
    def say(watcher: Watcher, step: int, now: str) -> None:
        if now == "after forward":
            watcher.label(rare(step))

    keep = Keep("head", log_freq=PerLabel(every=4, backoff=2))
    model = Loop(tmp_path, keep=keep).run(34, say)
    found = dict(zip(model.kept.steps.tolist(), model.kept.labels, strict=True))
    assert len(model.steps) == 34
    assert [step for step, label in found.items() if label == "common"] == [0, 4, 13, 29]
    assert [step for step, label in found.items() if label == "rare"] == [12, 19, 33]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"every": 0}, "PerLabel(every=0)"),
        ({"every": 1.5}, "PerLabel(every=1.5)"),
        ({"backoff": 0.5}, "PerLabel(backoff=0.5)"),
        ({"backoff": float("nan")}, "PerLabel(backoff=nan)"),
    ],
    ids=str,
)
def test_a_schedule_that_is_none_is_refused(arguments: dict[str, Any], expected: str) -> None:
    with pytest.raises(OptionError) as refusal:
        PerLabel(**arguments)
    assert expected in str(refusal.value)


@pytest.mark.parametrize(
    ("categories", "most", "expected"),
    [
        ("aaaaaabb", 4, (0, 3, 6, 7)),
        ("aaaaaaab", 3, (0, 3, 7)),
        ("abc", 2, (0, 1)),
        ("abc", None, (0, 1, 2)),
        ("", 3, ()),
        ("aaaa", 2, (0, 2)),
    ],
)
def test_samples_are_spread_over_categories(categories: str, most: int | None, expected: tuple[int, ...]) -> None:
    assert spread_over(categories, most) == expected


def test_kept_samples_are_of_every_category(tmp_path: Path) -> None:
    categories = ["cat"] * 9 + ["dog"]

    def say(watcher: Watcher, step: int, now: str) -> None:
        if now == "before" and step < 2:
            watcher.samples(categories if step == 0 else torch.arange(10))

    model = Loop(tmp_path, keep=Keep("head", "head.weight", samples=2)).run(3, say, batch=10)
    first, second, third = (model.tensor(head(), step) for step in range(3))
    assert (first.samples.tolist(), first.categories) == ([0, 9], ("cat", "dog"))
    assert first.gradient is not None
    assert (first.gradient.samples.tolist(), first.gradient.categories) == ([0, 9], ("cat", "dog"))
    assert (second.samples.tolist(), second.categories) == ([0, 1], ("0", "1"))
    assert (third.samples.tolist(), third.categories) == ([0, 5], ())


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("label", 3),
        ("label", ""),
        ("samples", 3),
        ("samples", "cat"),
        pytest.param("samples", torch.eye(2), id="samples-one-hot"),
        ("keep", ""),
        ("gradients", None),
    ],
)
def test_what_says_nothing_is_refused(name: str, argument: object, tmp_path: Path) -> None:
    loop = Loop(tmp_path, keep=Keep("*"))
    with loop.watched() as watcher, pytest.raises(OptionError, match=rf"watcher\.{name}\("):
        getattr(watcher, name)(argument)


@pytest.mark.slow
def test_what_was_asked_for_is_kept_with_the_steps_before(tmp_path: Path) -> None:
    def say(watcher: Watcher, step: int, now: str) -> None:
        if (step, now) in {(5, "after forward"), (11, "after update")}:
            watcher.keep("loss above 3")

    model = Loop(tmp_path, keep=Keep("head", when="flagged", before=2)).run(14, say)
    assert model.kept.steps.tolist() == [3, 4, 5, 9, 10, 11]
    reasons = [model.kept_at(int(step)).reasons for step in model.kept.steps]
    for at in (0, 3):
        step = 5 + 2 * at
        assert reasons[at : at + 3] == [
            (f"before step {step}: loss above 3",),
            (f"before step {step}: loss above 3",),
            ("loss above 3",),
        ]


def test_steps_that_nothing_asks_for_are_not_kept(tmp_path: Path) -> None:
    model = Loop(tmp_path, keep=Keep("*", when="flagged")).run(6, lambda *_: None)
    assert model.kept.steps.tolist() == []
    assert not list(tmp_path.rglob("tensors"))


def test_nan_asks_for_the_step_that_it_begins_in(tmp_path: Path) -> None:
    loop = Loop(tmp_path, keep=Keep("head", when="flagged", before=1))

    def say(_: Watcher, step: int, now: str) -> None:
        if (step, now) == (4, "before"):
            with torch.no_grad():
                loop.model.body.weight[0, 0] = float("nan")

    model = loop.run(8, say)
    assert model.kept.steps.tolist() == [3, 4]
    assert "NaN or infinity in value of" in model.kept_at(4).reasons[0]


def test_the_flight_recorder_keeps_the_samples_that_are_not_finite(tmp_path: Path) -> None:
    """Also of the tensors before the one that shows it, if they are there still; and some others."""
    loop = Loop(tmp_path, keep=Keep(":input", "head", "body", "seen", samples=3, when="flagged", before=1))

    def say(_: Watcher, step: int, now: str) -> None:
        if now == "before":
            loop.bad = (7,) if step == 3 else ()
        if now == "after forward" and step == 3:
            attach(torch.arange(12.0), name="seen")

    class Divides(Net):
        def forward(self, x: Tensor) -> Tensor:
            y = self.body(x)
            divisor = torch.ones(len(x), 1)
            divisor[list(loop.bad)] = 0
            return self.head((y - y) / divisor + y)

    torch.manual_seed(0)
    loop.model = Divides()
    loop.optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.0)
    model = loop.run(5, say, batch=12)
    assert model.kept.steps.tolist() == [2, 3]
    found = {one.series.key[0] or one.series.key[3]: one for one in model.kept_at(3).tensors}
    assert {name: one.samples for name, one in found.items()} == dict.fromkeys(
        ("input[0]", "body", "head", "seen"), (0, 4, 7)
    )
    head = model.tensor(found["head"].series, 3)
    assert np.isnan(head.values).any(1).tolist() == [False, False, True]
    assert not np.isnan(model.tensor(found["body"].series, 3).values).any()
    assert {one.samples for one in model.kept_at(2).tensors} == {(0, 4, 8)}


@pytest.mark.parametrize(
    ("values", "samples", "known", "expected"),
    [
        pytest.param([0, 0, 0, 0], (0, 2), 0, None, id="all finite"),
        pytest.param([0, 0, 0, "nan"], (0, 2), 0, (NAN, (0, 3)), id="one"),
        pytest.param([0, "inf", 0, "nan"], (0, 2), 0, (NAN, (0, 3)), id="NaN before infinity"),
        pytest.param([0, "-inf", 0, 0], (0, 2), 0, (INFINITE, (0, 1)), id="infinity"),
        pytest.param([0, "-inf", 0, 0], (0, 2), INFINITE, None, id="infinity again"),
        pytest.param([0, 0, 0, "nan"], (0, 2), INFINITE, (NAN, (0, 3)), id="NaN after infinity"),
        pytest.param([0, 0, 0, "nan"], (0, 2), NAN, None, id="NaN again"),
        pytest.param(["nan"] * 4, (0, 2), 0, None, id="all"),
        pytest.param([0, "nan", "nan", "nan"], (0, 2), 0, (NAN, (0, 1)), id="more than are kept"),
        pytest.param([0, "nan", "nan", "nan"], (0,), 0, (NAN, (1,)), id="room for one"),
        pytest.param([0, 0, 0, "nan"], (0, 1, 2, 3), 0, None, id="all are kept"),
        pytest.param([3e38, 3e38, 3e38, 3e38], (0, 2), 0, None, id="a sum that overflows"),
    ],
)
@pytest.mark.parametrize("is_contiguous", [True, False], ids=["contiguous", "strided"])
def test_odd_samples_are_those_with_nan_or_infinity(
    values: list[Any], samples: tuple[int, ...], known: int, expected: object, is_contiguous: bool
) -> None:
    tensor = torch.tensor([[float(value), 1.0] for value in values])
    tensor = tensor if is_contiguous else tensor.T.contiguous().T
    copy = copied(tensor, samples=len(samples), batch_dim=0, chosen={4: samples})
    found = odd_samples(tensor, copy, known=known)
    assert (found and (found.weight, found.samples)) == expected


def test_an_exception_of_the_training_asks_for_the_latest_steps(tmp_path: Path) -> None:
    loop = Loop(tmp_path, keep=Keep("head", when="flagged", before=1))

    def say(_: Watcher, step: int, now: str) -> None:
        if (step, now) == (4, "after forward"):
            raise ZeroDivisionError("division by zero")

    with suppress(ZeroDivisionError):
        loop.run(8, say)
    model = loop.read()
    assert model.kept.steps.tolist() == [3, 4]
    assert model.kept_at(4).reasons == ("exception: ZeroDivisionError: division by zero",)
    assert model.tensor(head(), 4).gradient is None


def test_a_finding_asks_for_the_latest_steps(tmp_path: Path) -> None:
    looking = LiveFindings(str(tmp_path), "Net", rules=(), tell=(), says=False)

    def say(watcher: Watcher, step: int, now: str) -> None:
        if (step, now) == (0, "before"):
            looking.also_tell(watcher.flag_findings)
        if (step, now) == (4, "after backward"):
            finding = Finding(kind="dead-units", module="body", step=3, text="", advice="")
            looking._tell([replace(finding, severity="info"), finding])

    model = Loop(tmp_path, keep=Keep("head", when="flagged", before=1)).run(8, say)
    assert model.kept.steps.tolist() == [3, 4]
    assert model.kept_at(4).reasons == ("finding: dead-units in 'body', since step 3",)


def test_after_the_first_call_any_logged_step_can_be_kept(tmp_path: Path) -> None:
    def say(watcher: Watcher, step: int, now: str) -> None:
        if now == "after forward" and step in (2, 5):
            watcher.keep("odd")

    with pytest.warns(UserWarning, match="step 2 was not copied"):
        model = Loop(tmp_path, keep=Keep("head", log_freq=4)).run(9, say)
    assert model.kept.steps.tolist() == [0, 4, 5, 8]
    assert model.kept_at(5).reasons == ("odd",)
    assert model.kept_at(4).reasons == ()


def test_keep_without_keep_is_said(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"keeps nothing, since watch\(\) was given no keep="):
        Loop(tmp_path).run(1, lambda watcher, *_: watcher.keep("loss above 3"))


def test_gradients_of_several_losses_have_names(tmp_path: Path) -> None:
    loop = Loop(tmp_path, keep=Keep("head", "head.weight", samples=None))
    expected: list[dict[str, Tensor]] = []
    with loop.watched() as watcher:
        for _ in range(2):
            loop.optimizer.zero_grad()
            result = loop.model(torch.randn(5, 4))
            losses = {"policy loss": result.square().mean(), "value loss": result.exp().mean()}
            found = {}
            for name, loss in losses.items():
                (found[name],) = torch.autograd.grad(loss, result, retain_graph=True)
                loss.backward(retain_graph=True)
                watcher.gradients(name)
            expected.append(found)
            loop.optimizer.step()
    model = loop.read()
    for step, by_name in enumerate(expected):
        tensor = model.tensor(head(), step)
        assert list(tensor.gradients) == list(by_name)
        for name, gradient in by_name.items():
            np.testing.assert_array_equal(tensor.gradients[name].values, gradient.numpy())
        info = {one.series.key: one for one in model.kept_at(step).tensors}
        assert info[head().key].losses == ("policy loss", "value loss")


@pytest.mark.parametrize("log_freq", [1, 3], ids="log_freq={}".format)
def test_the_loop_attaches_batches_and_losses(log_freq: int, tmp_path: Path) -> None:
    targets, losses = [], []
    loop = Loop(tmp_path, log_freq=log_freq, keep=Keep("target", "loss", "late", samples=2))
    with loop.watched():
        for step in range(7):
            target = torch.randn(4, 2)
            targets.append(target.clone())
            attach(target, name="target", kind="target")
            loop.optimizer.zero_grad()
            loss = (loop.model(torch.randn(4, 4)) - target).square().mean(-1)
            target.zero_()
            losses.append(loss.detach().clone())
            attach(loss, name="loss", kind="loss", node="losses")
            loss.mean().backward()
            loop.optimizer.step()
            attach(torch.tensor(step), name="late")
    model = loop.read()
    assert model.kept.steps.tolist() == list(range(0, 7, log_freq))
    for step in model.kept.steps.tolist():
        found = model.tensor(outside("target"), step)
        np.testing.assert_array_equal(found.values, targets[step][::2].numpy())
        loss = model.tensor(outside("loss"), step)
        np.testing.assert_array_equal(loss.values, losses[step][::2].numpy())
        assert loss.gradient is not None
        np.testing.assert_array_equal(loss.gradient.values, np.full(2, 0.25, np.float32))
        assert model.tensor(outside("late"), step).values == step
        info = {one.series.path: one for one in model.kept_at(step).tensors}
        assert (info["target"].kind, info["loss"].kind, info["late"].kind) == ("target", "loss", "intermediate")
        assert (info["target"].node, info["loss"].node) == ("target", "losses")


def test_a_tensor_attached_in_forward_may_say_what_it_is(tmp_path: Path) -> None:
    class Named(Net):
        def forward(self, x: Tensor) -> Tensor:
            return attach(super().forward(x), self, "scores", kind="loss", node="heads")

    loop = Loop(tmp_path, keep=Keep("scores"))
    loop.model = Named()
    loop.optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
    (found,) = loop.run(1, lambda *_: None).kept_at(0).tensors
    assert (found.kind, found.node) == ("loss", "heads@0")


def test_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(OptionError, match=r"attach\(kind='goal'\)"):
        attach(torch.ones(1), name="x", kind="goal")  # type: ignore[arg-type]
