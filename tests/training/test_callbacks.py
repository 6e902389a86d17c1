"""Callbacks of Lightning, Hugging Face's Trainer and accelerate watch from a training's beginning to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import Keep, open_run
from torchgraph_explorer.training.watcher import Watcher

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("frameworks"),  # one process imports the trainers
    pytest.mark.filterwarnings("ignore"),  # what they advise
]


class Trained:
    """A trainer that has trained, or failed.

    Attributes:
        callback: The callback, if there was one.
        weights: Of the model, by bytes.
        checkpoint: Where the state was saved.
    """

    def __init__(self, callback: Any, model: nn.Module, checkpoint: str) -> None:
        self.callback, self.model, self.checkpoint = callback, model, checkpoint
        self.weights = [each.detach().numpy().tobytes() for each in model.parameters()]

    @property
    def watcher(self) -> Watcher:
        assert isinstance(self.callback.watcher, Watcher)
        return self.callback.watcher

    @property
    def steps(self) -> list[int]:
        model = open_run(str(self.watcher.run_dir)).model()
        assert model.finished is not None
        assert (model.notes, model.finished.notes) == ((), ())
        return model.steps.tolist()

    @property
    def is_bare(self) -> bool:
        """Whether nothing is watched any more."""
        hooks = [each._forward_pre_hooks or each._forward_hooks for each in self.model.modules()]
        return self.watcher.finished and not any(hooks)


FAILS_AT = 3


class Failure(Exception):
    pass


def lightning_trained(
    folder: Path, *, steps: int, resume: str | None = None, fails: bool = False, callback: Any = None, every: int = 2
) -> Trained:
    import lightning
    from lightning.pytorch.demos.boring_classes import BoringModel

    class Model(BoringModel):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if fails and self.global_step == FAILS_AT:
                raise Failure
            result: Any = super().training_step(batch, batch_idx)
            self.log("loss", result["loss"])
            return result

        def validation_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("val/loss", self(batch).mean())

    torch.manual_seed(0)
    model = Model()
    quiet: Any = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing"), False)
    trainer = lightning.Trainer(
        max_steps=steps,
        limit_val_batches=1,
        val_check_interval=3,  # batches
        log_every_n_steps=every,
        accumulate_grad_batches=2,
        accelerator="cpu",
        callbacks=[callback] if callback else [],
        default_root_dir=folder,
        **quiet,
    )
    try:
        trainer.fit(model, ckpt_path=resume)
    except Failure:
        return Trained(callback, model, "")
    trainer.save_checkpoint(folder / f"{steps}.ckpt")
    return Trained(callback, model, str(folder / f"{steps}.ckpt"))


class Net(nn.Module):
    def __init__(self, *, fails: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.passes_left = 2 * FAILS_AT if fails else -1  # two passes in an update

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        if self.passes_left == 0:
            raise Failure
        self.passes_left -= 1
        out = self.linear(x)
        return {"loss": out.square().mean(), "out": out}


def transformers_trained(
    folder: Path, *, steps: int, resume: str | None = None, fails: bool = False, callback: Any = None
) -> Trained:
    from transformers import Trainer, TrainingArguments

    torch.manual_seed(0)
    model = Net(fails=fails)
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        optim="sgd",  # keeps no count of its updates
        lr_scheduler_type="constant",
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        logging_steps=2,
        save_steps=steps,
    )
    rows = [{"x": torch.randn(3), "labels": torch.ones(2)} for _ in range(64)]
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[callback] if callback else [])
    try:
        trainer.train(resume_from_checkpoint=resume)
    except Failure:
        return Trained(callback, model, "")
    return Trained(callback, model, str(folder / f"checkpoint-{steps}"))


def lightning_callback(folder: Path, **options: Any) -> Any:
    from torchgraph_explorer.callbacks.lightning import WatchCallback

    return WatchCallback(backend="record", logdir=folder / "runs", verbose=False, **options)


def transformers_callback(folder: Path, **options: Any) -> Any:
    from torchgraph_explorer.callbacks.transformers import WatchCallback

    return WatchCallback(backend="record", logdir=folder / "runs", verbose=False, **options)


trainers = pytest.mark.parametrize(
    ("train", "callback"),
    [
        pytest.param(lightning_trained, lightning_callback, id="Lightning"),
        pytest.param(transformers_trained, transformers_callback, id="transformers"),
    ],
)


@trainers
def test_a_training_is_watched_and_goes_on_from_its_checkpoint(train: Any, callback: Any, tmp_path: Path) -> None:
    plain = train(tmp_path, steps=4)
    watched = train(tmp_path, steps=4, callback=callback(tmp_path, log_freq=1))
    assert watched.weights == plain.weights
    assert watched.steps == [0, 1, 2, 3]
    assert watched.is_bare
    resumed = train(tmp_path, steps=6, resume=watched.checkpoint, callback=callback(tmp_path, log_freq=1))
    assert resumed.steps == [4, 5]
    assert resumed.watcher.run_dir != watched.watcher.run_dir
    assert resumed.weights == train(tmp_path, steps=6, resume=watched.checkpoint).weights


@trainers
def test_a_training_that_fails_is_recorded_up_to_there_and_another_one_can_be_watched(
    train: Any, callback: Any, tmp_path: Path
) -> None:
    one = callback(tmp_path, log_freq=1)
    failed = train(tmp_path, steps=6, fails=True, callback=one)
    first = failed.watcher
    again = train(tmp_path, steps=2, callback=one)
    assert first is not again.watcher
    assert first.finished
    assert open_run(str(first.run_dir)).model().steps.tolist()[:FAILS_AT] == [*range(FAILS_AT)]
    assert again.steps == [0, 1]


def test_lightning_takes_the_watch_off_a_training_that_fails(tmp_path: Path) -> None:
    failed = lightning_trained(tmp_path, steps=6, fails=True, callback=lightning_callback(tmp_path))
    assert failed.is_bare


def test_what_waits_for_an_exception_is_kept_where_one_ends_the_training_of_lightning(tmp_path: Path) -> None:
    keep = Keep("*", when="flagged", before=1)
    failed = lightning_trained(
        tmp_path, steps=6, fails=True, callback=lightning_callback(tmp_path, log_freq=1, keep=keep)
    )
    model = open_run(str(failed.watcher.run_dir)).model()
    [latest] = model.kept.steps[-1:]
    assert "exception: Failure" in model.kept_at(int(latest)).reasons[0]


@trainers
def test_an_option_that_watch_does_not_have_is_refused_at_once(train: Any, callback: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'log_frequency'"):
        callback(tmp_path, log_frequency=1)


def scalars(trained: Trained) -> dict[str, list[int]]:
    """The steps at which each scalar was logged."""
    return {
        name: each.steps.tolist() for name, each in open_run(str(trained.watcher.run_dir)).model().scalars().items()
    }


def test_what_lightning_logs_is_recorded_as_often_as_it_says(tmp_path: Path) -> None:
    trained = lightning_trained(tmp_path, steps=5, callback=lightning_callback(tmp_path, log_freq=100))
    logged = scalars(trained)
    assert logged["val/loss"] == [1, 2, 4]  # after each third batch; two make an update
    assert logged["loss"] == [1, 2, 3, 4]  # then, and after each second update


def test_lightning_may_log_at_no_step_but_after_evaluations(tmp_path: Path) -> None:
    trained = lightning_trained(tmp_path, steps=5, every=0, callback=lightning_callback(tmp_path, log_freq=100))
    assert scalars(trained)["loss"] == [1, 2, 4]


def test_what_transformers_logs_is_recorded(tmp_path: Path) -> None:
    trained = transformers_trained(tmp_path, steps=5, callback=transformers_callback(tmp_path, log_freq=100))
    logged = scalars(trained)
    assert logged["train/loss"] == logged["train/learning_rate"] == [1, 3]
    assert logged["train/train_runtime"] == [4]


SAME = {"rate": 0.1, "numpy": np.float32(2)}
"""The same objects at each step."""

NO_NUMBERS = {"said": "a word", "several": torch.ones(3), "complex": torch.ones(1, dtype=torch.complex64)}


def accelerate_trained(folder: Path, *, is_watched: bool) -> tuple[list[bytes], Any]:
    from accelerate import Accelerator

    from torchgraph_explorer.callbacks.accelerate import WatchTracker

    torch.manual_seed(0)
    model: Any = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    tracker = WatchTracker(model, backend="record", logdir=folder, log_freq=2, verbose=False)
    accelerator = Accelerator(cpu=True, log_with=tracker if is_watched else None)
    prepared, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    accelerator.init_trackers("a project", config={"lr": 0.1})
    for step in range(6):
        optimizer.zero_grad()
        loss = prepared(torch.randn(3, 4)).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        accelerator.log({"loss": loss.item(), "tensor": loss, **SAME, **NO_NUMBERS}, step=step)
    accelerator.end_training()
    return [each.detach().numpy().tobytes() for each in model.parameters()], tracker


def test_a_loop_of_accelerate_is_watched_from_its_trackers_to_its_end(tmp_path: Path) -> None:
    plain, unused = accelerate_trained(tmp_path, is_watched=False)
    watched, tracker = accelerate_trained(tmp_path, is_watched=True)
    assert watched == plain
    assert unused.tracker is None
    model = open_run(str(tracker.tracker.run_dir)).model()
    assert (model.steps.tolist(), model.notes) == ([0, 2, 4], ())
    steps = {name: scalar.steps.tolist() for name, scalar in model.scalars().items()}
    assert steps == {key: [*range(6)] for key in ("loss", "tensor", *SAME)}
    assert tracker.tracker.finished
