"""The examples, run as they stand with the real libraries."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from tests import warm
from tests.wandb_panel.conftest import environment
from tests.wandb_panel.loopback import Backend

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wandb")]  # one process that has wandb


# Lightning has a test of its own in test_deferred_start.py, and the Trainer one in tests/training.
@pytest.mark.parametrize(
    ("example", "needs", "length", "model", "metric", "steps"),
    [
        pytest.param("wandb_training", "wandb", "30", "Sequential", "loss", [0, 10, 20], id="plain loop"),
        pytest.param(
            "wandb_lightning",
            "lightning",
            "2",
            "Sequential",
            "loss",
            [0, 10, 20, 30],
            id="Lightning",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            "wandb_transformers",
            "transformers",
            "25",
            "BertForSequenceClassification",
            "train/loss",
            [0, 10, 20],
            id="Hugging Face Trainer",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_an_example_logs_chart_and_page_beside_its_own_metrics(
    example: str, needs: str, length: str, model: str, metric: str, steps: list[int], backend: Backend, tmp_path: Path
) -> None:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    surroundings = {**environment(backend, tmp_path), "HF_HUB_OFFLINE": "1", "WANDB__DISABLE_STATS": "true"}
    command = ["-m", f"examples.{example}", length]
    done = warm.run(*command, modules=warm.WANDB, env=surroundings, cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    run = backend.only_run()
    table = json.loads(backend.run_file(run, f"torchgraph/{model}_table"))
    summary = next(packed for part, packed in table["data"] if part == "summary").split("\t")
    assert summary[2] == "|".join(map(str, steps))
    assert f"torchgraph/{model}_page" in run.summary
    assert f"torchgraph/{model}" in run.config["_wandb"]["value"]["visualize"]
    assert len([row for row in run.history if metric in row]) >= 3
    assert "must be" not in done.stderr
