"""watch(): its options, its steps, and what happens when something goes wrong."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from tests.models import Digits
from tests.processes import wait_for
from torchgraph_explorer import LIGHTNING_EPOCHS, OptionError, TorchgraphWarning, open_run, sinks, watch
from torchgraph_explorer.capture.current_step import CurrentStep
from torchgraph_explorer.capture.facts.operations import Operations
from torchgraph_explorer.capture.forward_recorder import ForwardRecorder
from torchgraph_explorer.capture.open_call import OpenCall
from torchgraph_explorer.capture.recorded_calls import RecordedCalls
from torchgraph_explorer.capture.step_admission import StepAdmission
from torchgraph_explorer.capture.step_gradients import StepGradients
from torchgraph_explorer.capture.trace import Trace
from torchgraph_explorer.reduce.batch import Batch
from torchgraph_explorer.schema import Record
from torchgraph_explorer.sinks import Sink


def train(model: nn.Module, steps: int = 3) -> list[float]:
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 1, 8, 8)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def digits() -> Digits:
    torch.manual_seed(0)
    return Digits()


KINDS = {
    "io": {("input", "value"), ("output", "value")},
    "io_grad": {("input", "grad_norm"), ("output", "grad_norm"), ("edge", "grad_norm")},
    "params": {("param", "value")},
    "params_grad": {("param", "grad")},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("as_list", [False, True])
def test_each_kind_is_recorded_alone(kind: str, as_list: bool) -> None:
    model, heard = digits(), Listening()
    with watch(model, [kind] if as_list else kind, 1, backend=heard):
        train(model)
    assert {(role, what) for _, _, role, _, what in heard.recorded()} == KINDS[kind]
    assert [frame.step for frame in heard.frames] == [0, 1, 2]


def test_an_empty_log_records_the_graph() -> None:
    model, heard = digits(), Listening()
    with watch(model, [], 1, backend=heard):
        train(model)
    assert heard.recorded() == set()
    assert [call.module for call in heard.graphs[0].calls][:3] == ["", "stem", "norm"]


def test_a_second_clock_is_recorded() -> None:
    model, heard = digits(), Listening()
    with watch(model, log_freq=1, backend=heard, time_log=("epoch", lambda _model, step: step / 2)):
        train(model)
    assert heard.session.clock == "epoch"
    assert [frame.clock for frame in heard.frames] == [0, 0.5, 1]
    assert LIGHTNING_EPOCHS[0] == "epoch"


def test_a_clock_that_fails_is_said_once_and_costs_nothing_else() -> None:
    model, heard = digits(), Listening()
    with (
        pytest.warns(TorchgraphWarning, match="time axis 'epoch' is missing") as warned,
        watch(model, log_freq=1, backend=heard, time_log=LIGHTNING_EPOCHS),
    ):
        train(model)
    assert len(warned) == 1
    assert [frame.clock for frame in heard.frames] == [None, None, None]


def test_the_step_can_be_set_after_a_checkpoint_was_loaded() -> None:
    model, heard = digits(), Listening()
    with watch(model, log_freq=1, backend=heard) as watcher:
        watcher.step = 1000
        train(model, 2)
    assert [frame.step for frame in heard.frames] == [1000, 1001]


def test_passes_in_eval_mode_and_under_no_grad_are_not_recorded() -> None:
    model, heard = digits(), Listening()
    with watch(model, log_freq=1, backend=heard):
        train(model, 1)
        model.eval()
        model(torch.randn(2, 1, 8, 8))
        model.train()
        with torch.no_grad():
            model(torch.randn(2, 1, 8, 8))
        train(model, 1)
    assert [frame.step for frame in heard.frames] == [0, 1]


def test_a_step_that_is_captured_into_a_cuda_graph_is_counted_and_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    model, heard, captured = digits(), Listening(), [False, True, False]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: captured.pop(0))
    with watch(model, log_freq=1, backend=heard):
        train(model)
    assert [frame.step for frame in heard.frames] == [0, 2]


@pytest.mark.parametrize("updates", [True, False])
def test_no_pass_is_recorded_that_is_captured_in_a_step_that_has_begun(
    updates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, heard = digits(), Listening()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if updates else None
    with watch(model, log_freq=1, backend=heard, optimizer=optimizer, verbose=False):
        output = model(torch.randn(4, 1, 8, 8))
        with monkeypatch.context() as capture:
            capture.setattr(torch.cuda, "is_initialized", lambda: True)
            capture.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
            output = output + model(torch.randn(4, 1, 8, 8))
        output.sum().backward()
    [recorded] = heard.frames
    assert [call.parent for call in heard.graphs[0].calls].count(None) == 1
    assert recorded.step == 0


def test_two_forward_passes_before_one_backward_pass_are_one_step() -> None:
    model, heard = digits(), Listening()
    with watch(model, log_freq=1, backend=heard):
        for _ in range(2):
            (model(torch.randn(2, 1, 8, 8)) - model(torch.randn(2, 1, 8, 8))).square().sum().backward()
    assert [frame.step for frame in heard.frames] == [0, 2]
    assert ("stem", 1, "output", "output", "grad_norm") in heard.recorded()
    assert [call.parent for call in heard.graphs[0].calls].count(None) == 2


def test_a_step_whose_backward_pass_never_comes_does_not_hold_up_the_next() -> None:
    model, heard = digits(), Listening()
    with watch(model, log_freq=1, backend=heard):
        for _ in range(3):
            model(torch.randn(2, 1, 8, 8))
        train(model, 1)
    assert [frame.step for frame in heard.frames] == [0, 1, 2, 3]


def test_two_backward_passes_through_one_graph_both_count() -> None:
    model, heard = digits(), Listening()
    with watch(model, log_freq=1, backend=heard, sample_n=None):
        output = model(torch.randn(2, 1, 8, 8))
        output.sum().backward(retain_graph=True)
        output.sum().backward()
        assert model.head.bias.grad is not None
        expected = float(model.head.bias.grad.mean())
    assert heard.row(("head", None, "param", "bias", "grad"))[0]["mean"] == pytest.approx(expected)


def test_a_single_step_is_handed_over_without_waiting_for_a_next_one() -> None:
    model, heard = digits(), Listening()
    with watch(model, log_freq=1, backend=heard):
        train(model, 1)
        assert wait_for(lambda: bool(heard.frames))
        assert [frame.step for frame in heard.frames] == [0]
        train(model, 1)
    assert [frame.step for frame in heard.frames] == [0, 1]


def test_a_watcher_that_is_finished_keeps_no_numbers() -> None:
    """It is itself kept where its viewer stays at exit."""
    model = digits()
    watcher = watch(model, log_freq=1, backend=Listening())
    train(model)
    kept = [weakref.ref(each) for each in (watcher._train._rows, watcher._train._batch) if each is not None]
    watcher.finish()
    gc.collect()
    assert [each() for each in kept] == [None, None]


@pytest.mark.parametrize(
    ("phases", "advice"),
    [
        pytest.param("train", r"to record evaluations, pass phases=\('train', 'eval'\)", id="training"),
        pytest.param(("train", "eval"), "its evaluations are recorded as a model of their own", id="evaluations, too"),
    ],
)
def test_nothing_recorded_is_said_with_the_reason(phases: str | tuple[str, ...], advice: str) -> None:
    model = digits()
    watcher = watch(model, log_freq=1, backend=Listening(), phases=phases)
    model.eval()(torch.randn(2, 1, 8, 8))
    with pytest.warns(TorchgraphWarning, match=f"no step was recorded. It was only called in eval mode.*; {advice}"):
        watcher.close()


@pytest.mark.parametrize("is_copy", [True, False])
def test_a_model_of_which_copies_are_trained_is_not_said_to_lack_the_training_mode(*, is_copy: bool) -> None:
    model = digits()
    trained = copy.deepcopy(model) if is_copy else model
    watcher = watch(model, log_freq=1, backend=Listening())
    optimizer = torch.optim.SGD(trained.parameters(), 0.1)
    for one in trained.parameters():
        one.grad = torch.ones_like(one)
    optimizer.step()
    model.eval()(torch.randn(2, 1, 8, 8))
    with pytest.warns(TorchgraphWarning, match=r"no step was recorded") as warned:
        watcher.close()
    [said] = [str(one.message) for one in warned]
    assert ("perhaps a copy of it. To record that, pass the model that the training loop calls to watch()" in said) is (
        is_copy
    )
    assert ("call model.train() first" in said) is not is_copy


class Adjoint(torch.autograd.Function):
    """Calls the model without gradients, and again in the backward pass, as an adjoint method does."""

    @staticmethod
    def forward(ctx: Any, model: nn.Module, x: Tensor, *parameters: Tensor) -> Any:
        ctx.model = model
        ctx.save_for_backward(x, *parameters)
        with torch.no_grad():
            return model(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, *parameters = ctx.saved_tensors
        with torch.enable_grad():
            return (None, None, *torch.autograd.grad(ctx.model(x), parameters, grad))


def test_a_model_that_computes_gradients_in_the_backward_pass_alone_is_not_said_to_be_in_eval_mode() -> None:
    model = nn.Linear(3, 2)
    watcher = watch(model, log_freq=1, backend=Listening())
    for _ in range(2):
        Adjoint.apply(model, torch.randn(4, 3), *model.parameters()).sum().backward()  # type: ignore[no-untyped-call]
    with pytest.warns(TorchgraphWarning, match="only within backward passes, as odeint_adjoint"):
        watcher.close()


OPTIONS = {
    "a class": (
        lambda: watch(Digits),  # type: ignore[arg-type]
        r"watch\(\) was given type. Pass the torch.nn.Module",
    ),
    "kind": (
        lambda: watch(digits(), ["gradients"]),
        r"log=\['gradients'\].* Choose from io, io_grad, params, params_grad, cost",
    ),
    "frequency": (lambda: watch(digits(), log_freq=0), "log_freq=0"),
    "bins": (lambda: watch(digits(), bins=0), "bins=0 .* from 1"),
    "sample": (lambda: watch(digits(), sample_n=0), "sample_n=0 .* from 1"),
    "huge sample": (lambda: watch(digits(), sample_n=10**40), "is not a number of elements.* from 1 to 28.*or None"),
    "nameless clock": (lambda: watch(digits(), time_log=("", lambda *_: 0.0)), r"time_log=\('', .* is not a time axis"),
    "nameless model": (lambda: watch(digits(), name="", backend="none"), "name='' is not a name for a model"),
    "no folder": (lambda: watch(digits(), logdir="", backend="record"), "logdir='' is not a folder for runs"),
    "several optimizers": (
        lambda: watch(digits(), optimizer=[]),  # type: ignore[arg-type]
        r"optimizer=\[\] is not an optimizer.* If there are several, pass one of them",
    ),
    "share": (lambda: watch(digits(), reject_outlier_proportion=1.5), "reject_outlier_proportion=1.5 .* from 0 to 1"),
    "clock": (lambda: watch(digits(), time_log="epoch"), r"time_log='epoch'.* time_log=\('epoch', lambda"),  # type: ignore[arg-type]
    "run": (lambda: watch(digits(), backend="record", run="../elsewhere"), r"run='../elsewhere'"),
    "no kinds": (lambda: watch(digits(), None), r"log=\[None\] cannot be recorded.* as a list"),  # type: ignore[arg-type]
    "phases": (lambda: watch(digits(), phases=5), r"phases=\(5,\) is not a choice"),  # type: ignore[arg-type]
    "phase": (lambda: watch(digits(), phases=("train", ["eval"])), "is not a choice of phases"),  # type: ignore[arg-type]
    "no share": (
        lambda: watch(digits(), reject_outlier_proportion="half"),  # type: ignore[arg-type]
        "reject_outlier_proportion='half' .* from 0 to 1",
    ),
    "host": (lambda: watch(digits(), host=8080), "host=8080 is not an address"),  # type: ignore[arg-type]
    "port": (lambda: watch(digits(), port="8080"), "port='8080' is not a port. Pass a whole number"),  # type: ignore[arg-type]
    "large port": (lambda: watch(digits(), port=70_000), "port=70000 .* from 1 to 65535, or 0"),
    "verbose": (lambda: watch(digits(), verbose="no"), "verbose='no' is neither True nor False"),  # type: ignore[arg-type]
    "end": (
        lambda: watch(digits(), block_at_exit="never"),  # type: ignore[arg-type]
        "block_at_exit='never' is neither .* None to do so in a terminal only",
    ),
    "upload": (
        lambda: watch(digits(), upload_record="all"),  # type: ignore[arg-type]
        "upload_record='all' is neither True nor False",
    ),
    "backend": (lambda: watch(digits(), backend="disk"), "disk.*record.*standalone|disk.*standalone.*record"),
}


@pytest.mark.parametrize(("call", "message"), OPTIONS.values(), ids=OPTIONS)
def test_a_wrong_option_is_refused_with_what_is_allowed(call: Callable[[], object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        call()


@pytest.mark.parametrize("claim", [False, 0, np.False_], ids=["False", "0", "of numpy"])
def test_what_means_false_is_taken(claim: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = digits()
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, verbose=claim, block_at_exit=claim):
        train(model)
    assert capsys.readouterr().out == ""


def test_several_models_share_a_run(tmp_path: Path) -> None:
    one, other = digits(), digits()
    first = watch(one, log_freq=1, backend="record", logdir=tmp_path, name="generator", verbose=False)
    second = watch(other, log_freq=1, backend="record", logdir=tmp_path, name="discriminator", verbose=False)
    train(one)
    train(other, 2)
    first.close()
    second.close()
    assert first.run_dir == second.run_dir
    run = open_run(str(first.run_dir))
    assert {name: run.model(name).steps.tolist() for name in run.models} == {
        "discriminator": [0, 1],
        "generator": [0, 1, 2],
    }


@pytest.mark.slow
def test_a_working_directory_that_changes_leaves_the_run_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    model = digits()
    with watch(model, log_freq=1, backend="record", logdir="runs", verbose=False) as watcher:
        monkeypatch.chdir("elsewhere")
        train(model)
        with watch(other := digits(), log_freq=1, backend="record", logdir="runs", name="b", verbose=False) as later:
            train(other, 1)
    assert Path(str(watcher.run_dir)).parent == tmp_path / "runs"
    assert Path(str(later.run_dir)).parent == tmp_path / "elsewhere" / "runs"
    assert watcher.export("page.html").startswith(b"<!doctype html>")


def test_models_with_folders_of_runs_of_their_own_share_no_run(tmp_path: Path) -> None:
    with (
        watch(one := digits(), log_freq=1, backend="record", logdir=tmp_path / "a", name="a", verbose=False) as first,
        watch(
            other := digits(), log_freq=1, backend="record", logdir=tmp_path / "b", name="b", verbose=False
        ) as second,
    ):
        train(one, 1)
        train(other, 1)
    assert [Path(str(each.run_dir)).parent.name for each in (first, second)] == ["a", "b"]


def test_a_backend_that_cannot_be_opened_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sinks.LIBRARY_BACKENDS, "tensorboard", "nowhere:open_sink")
    with pytest.raises(OptionError, match=r"No module named 'nowhere'.* Install what it needs"):
        watch(digits(), backend="tensorboard", logdir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_same_model_again_begins_a_new_run(tmp_path: Path) -> None:
    first = watch(one := digits(), log_freq=1, backend="record", logdir=tmp_path, verbose=False)
    second = watch(other := digits(), log_freq=1, backend="record", logdir=tmp_path, verbose=False)
    train(one, 1)
    train(other, 1)
    first.close()
    second.close()
    assert first.run_dir != second.run_dir


def test_two_open_models_of_one_name_in_one_run_are_refused(tmp_path: Path) -> None:
    model = digits()
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="a", verbose=False):
        train(model, 1)
        with pytest.raises(OptionError, match=r"already has an open model named 'Digits'\. Pass another name="):
            watch(digits(), backend="record", logdir=tmp_path, run="a", verbose=False)


@pytest.mark.slow
def test_a_watcher_exports_and_shows_its_run(tmp_path: Path) -> None:
    model = digits()
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, verbose=False) as watcher:
        assert watcher._repr_html_() is None, "nothing to show yet"
        train(model)
        train(model)
    page = watcher.export(tmp_path / "page.html", steps=2)
    assert (tmp_path / "page.html").read_bytes() == page
    assert page.lower().startswith(b"<!doctype html>")
    assert "<iframe" in str(watcher._repr_html_())


def test_a_watcher_without_a_folder_has_nothing_to_export(tmp_path: Path) -> None:
    model = digits()
    with watch(model, log_freq=1, backend=Listening()) as watcher:
        train(model)
        with pytest.raises(OptionError, match=r"Add 'record' to backend="):
            watcher.export(tmp_path / "page.html")


class Failing:
    """A sink that fails at its n-th record."""

    def __init__(self, at: int) -> None:
        self.left = at

    def write(self, record: Record) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError("disk full")

    def close(self) -> None:
        if self.left < 0:
            raise OSError("disk still full")


def test_a_sink_that_fails_is_left_out_and_said_once() -> None:
    model, heard = digits(), Listening()
    sinks: list[str | Sink] = [Failing(4), heard]
    with (
        pytest.warns(TorchgraphWarning, match=r"Failing failed and gets no more records: OSError: disk full") as warned,
        watch(model, log_freq=1, backend=sinks),
    ):
        train(model)
    assert len(warned) == 1
    assert [frame.step for frame in heard.frames] == [0, 1, 2]
    assert any("Failing failed" in note for note in heard.finished.notes)


FAULTS: list[tuple[type, str]] = [
    (ForwardRecorder, "enter"),
    (ForwardRecorder, "leave"),
    (ForwardRecorder, "begin"),
    (RecordedCalls, "_hook_inputs"),
    (StepGradients, "_end_backward"),
    (StepGradients, "_measure"),
    (StepAdmission, "admits"),
    (CurrentStep, "end"),
]
FAULTS += [
    (Trace, "_note"),
    (Trace, "enter"),
    (Batch, "values"),
    (Batch, "norms"),
]


@pytest.mark.parametrize(("where", "what"), FAULTS, ids=lambda each: getattr(each, "__name__", each))
@pytest.mark.parametrize("time_of_fault", [0, 3])
def test_a_fault_of_ours_leaves_training_as_it_is(
    where: type, what: str, time_of_fault: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = train(digits())
    whole, calls = getattr(where, what), []

    def faulty(*args: object, **kwargs: object) -> object:
        calls.append(1)
        if len(calls) > time_of_fault:
            raise RuntimeError("a fault of ours")
        return whole(*args, **kwargs)

    monkeypatch.setattr(where, what, faulty)
    model = digits()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with watch(model, log_freq=1, backend=Listening()):
            assert train(model) == expected
    texts = [str(one.message) for one in caught if "a fault of ours" in str(one.message)]
    assert texts or len(calls) <= time_of_fault
    assert len(set(texts)) == len(texts), "each thing is said once"


@pytest.mark.parametrize(
    ("where", "what", "said", "graphs"),
    [
        pytest.param(Trace, "_note", "the module graph of some steps is not known", 0, id="graph"),
        pytest.param(Operations, "_note", "facts about the training of some steps are not recorded", 1, id="facts"),
    ],
)
def test_a_fault_in_tracing_costs_only_what_was_traced_and_says_that(
    where: type, what: str, said: str, graphs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, heard = digits(), Listening()
    monkeypatch.setattr(where, what, lambda *_, **__: 1 / 0)
    with pytest.warns(TorchgraphWarning) as warned, watch(model, log_freq=1, backend=heard, verbose=False):
        train(model)
    assert [said in str(one.message) for one in warned] == [True]
    assert ([frame.step for frame in heard.frames], len(heard.graphs)) == ([0, 1, 2], graphs)


def test_a_module_that_cannot_be_recorded_while_it_is_traced_costs_no_other_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, heard, end = digits(), Listening(), RecordedCalls.end

    def faulty(self: RecordedCalls, opened: OpenCall, *more: Any) -> object:
        return 1 / 0 if opened.name == "stem" else end(self, opened, *more)

    monkeypatch.setattr(RecordedCalls, "end", faulty)
    with pytest.warns(TorchgraphWarning) as warned, watch(model, log_freq=1, backend=heard, verbose=False):
        train(model)
    assert ["module 'stem' is no longer recorded" in str(one.message) for one in warned] == [True, False]
    assert not any("the whole model" in str(one.message) for one in warned)


def test_warnings_turned_into_errors_do_not_reach_training(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = train(digits())
    monkeypatch.setattr(ForwardRecorder, "leave", lambda *_: 1 / 0)
    model = digits()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with watch(model, log_freq=1, backend=Listening()):
            assert train(model) == expected


def test_a_tensor_that_arrives_in_another_thread_is_not_part_of_the_step() -> None:
    import threading

    model, heard = digits(), Listening()

    class Busy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: Tensor) -> Tensor:
            other = threading.Thread(target=self.inner, args=(torch.randn(2, 1, 8, 8),))
            other.start()
            other.join()
            return self.inner(x)

    busy = Busy()
    with watch(busy, log_freq=1, backend=heard):
        busy(torch.randn(2, 1, 8, 8)).sum().backward()
    assert [call.call for call in heard.graphs[0].calls if call.module == "inner"] == [0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*no step was recorded:torchgraph_explorer.TorchgraphWarning")
def test_the_users_own_exception_in_a_compiled_model_is_what_comes_out_after_a_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Torch goes through the hooks themselves then, of which another watcher has some more."""
    model = digits()
    compiled = torch.compile(model, backend="eager")
    compiled(torch.randn(4, 1, 8, 8)).sum().backward()
    enter, faults = ForwardRecorder.enter, [ZeroDivisionError()]

    def fail_once(self: ForwardRecorder, *call: object) -> None:
        if faults:
            raise faults.pop()
        enter(self, *call)  # type: ignore[arg-type]

    monkeypatch.setattr(ForwardRecorder, "enter", fail_once)
    with (
        pytest.warns(TorchgraphWarning, match="no longer recorded"),
        watch(model, log_freq=1, backend=Listening(), verbose=False),
        watch(model, log_freq=1, backend=Listening(), verbose=False),
        pytest.raises(RuntimeError, match="expected input"),
    ):
        compiled(torch.randn(4, 3, 8, 8))
    assert not faults
