"""A model that is watched before its W&B run begins, as TorchExplorer's examples do it, through the real client."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from torch import nn

from tests import warm
from tests.server.pages import read_page
from tests.tables import exhaustive, thinned
from tests.wandb_panel.conftest import Train, environment
from tests.wandb_panel.loopback import Backend, StoredRun
from torchgraph_explorer import open_run, watch

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wandb")]  # one training online, and one process that has wandb

PAGE = "torchgraph/{}_page"


def shown_steps(backend: Backend, run: StoredRun, model: str) -> str:
    """The steps in the chart's table."""
    rows = json.loads(backend.run_file(run, f"torchgraph/{model}_table"))["data"]
    return next(packed for part, packed in rows if part == "summary").split("\t")[2]


@pytest.mark.filterwarnings("ignore:.*no step was recorded:torchgraph_explorer.TorchgraphWarning")
def test_without_an_active_run_it_is_said_that_one_is_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with watch(nn.Linear(2, 2), backend="wandb", logdir=tmp_path):
        pass
    assert "W&B: no run is active. The panels will be in the first run that begins" in capsys.readouterr().err


def test_a_run_that_begins_in_the_middle_of_the_training_gets_all_steps(train: Train, backend: Backend) -> None:
    trained = train("begun_late")
    run = backend.only_run()
    assert shown_steps(backend, run, "Net") == "0|1|2|3|4|5"
    assert PAGE.format("Net") in run.summary
    assert [row["_step"] for row in run.history if "loss" in row] == [0, 1, 2], "its own steps are as unwatched"
    assert open_run(trained.told["run_dir"]).model().finished is not None
    assert "no W&B run began" not in trained.said


def test_a_run_that_ends_right_after_it_was_noticed_gets_the_step(train: Train, backend: Backend) -> None:
    train("begun_late_for_one_step")
    assert shown_steps(backend, backend.only_run(), "Net") == "0"


def test_where_no_run_ever_begins_it_is_said_at_the_end(train: Train, backend: Backend) -> None:
    trained = train("never_begun")
    assert backend.runs == {}
    assert trained.said.count("Net: no W&B run began while it was watched, so nothing was logged to W&B.") == 1
    assert open_run(trained.told["run_dir"]).model().steps.tolist() == [0, 1, 2]


@pytest.mark.parametrize("megabytes", thinned([0, 1], 1), ids="{} MB of kept tensors".format)
def test_an_evaluation_is_logged_to_a_late_run_too(megabytes: float, train: Train, backend: Backend) -> None:
    train("begun_late_with_evaluation", megabytes=megabytes)
    run = backend.only_run()
    assert shown_steps(backend, run, "Net") == "0|1|2"
    assert shown_steps(backend, run, "Net_eval") == "3"
    for name, steps in (("Net", [0, 1, 2]), ("Net_eval", [3])):
        kept = read_page(backend.run_file(run, f"torchgraph/{name}_page")).model.get("tensors")
        assert (kept and kept["kept"]["steps"]) == (steps if megabytes else None)


LIGHTNING = """
import lightning, torch, wandb
from pytorch_lightning.loggers import WandbLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from torchgraph_explorer import LIGHTNING_EPOCHS, watch

class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        return self.model(x)

    def training_step(self, batch, _number):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)

def main(backend="wandb"):
    model = Classifier()
    watch(model, log_freq=5, time_log=LIGHTNING_EPOCHS, backend=backend)
    data = DataLoader(TensorDataset(torch.randn(20, 4), torch.randint(3, (20,))), batch_size=2)
    logger = WandbLogger(project="p", save_dir="saved", name="late")
    trainer = lightning.Trainer(
        max_epochs=2, logger=logger, accelerator="cpu", enable_progress_bar=False, enable_model_summary=False
    )
    trainer.fit(model, data)
    wandb.finish()

main()
"""

INITIALISED = """
import torch, wandb
import torchgraph_explorer as torchexplorer

torchexplorer.setup()
wandb.init(project="p")
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
torchexplorer.watch(model, log_freq=1, backend="wandb")
for _ in range(3):
    model(torch.randn(5, 4)).sum().backward()
    wandb.log({"loss": 1.0})
"""


@pytest.mark.parametrize(
    ("script", "needs", "model", "steps", "losses"),
    [
        pytest.param(INITIALISED, "wandb", "Sequential", "0|1|2", 3, id="set up, begun, watched"),
        exhaustive(
            pytest.param(LIGHTNING, "pytorch_lightning", "Classifier", "0|5|10|15", 0, id="Lightning, watched before")
        ),
    ],
)
def test_a_script_written_for_torchexplorer_logs_to_its_run(
    script: str, needs: str, model: str, steps: str, losses: int, backend: Backend, tmp_path: Path
) -> None:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    surroundings = {**environment(backend, tmp_path), "WANDB__DISABLE_STATS": "true", "PYTHONWARNINGS": "ignore"}
    done = warm.run("-c", script, modules=warm.WANDB, env=surroundings, cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    run = backend.only_run()
    assert shown_steps(backend, run, model) == steps
    assert PAGE.format(model) in run.summary
    assert len([row for row in run.history if "loss" in row]) == losses
