"""What a training leaves in its W&B run, through the real client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import warm
from tests.wandb_panel.conftest import Online, Train, environment
from tests.wandb_panel.emulator import Panel, chart_of
from tests.wandb_panel.loopback import Backend, StoredRun
from torchgraph_explorer import open_run
from torchgraph_wandb.presets import preset_name

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wandb")]  # one training online, and one process that has wandb

CHART, TABLE, PAGE = "torchgraph/Net", "torchgraph/Net_table", "torchgraph/Net_page"


def summary(backend: Backend, run: StoredRun, key: str = TABLE) -> list[str]:
    """The facts in the run's latest table: model, what is told, steps."""
    rows = json.loads(backend.run_file(run, key))["data"]
    return next(packed for part, packed in rows if part == "summary").split("\t")


def logged_steps(run: StoredRun, key: str) -> list[int]:
    return [row["_step"] for row in run.history if key in row]


def test_an_open_training_is_complete_at_exit(online: Online) -> None:
    run = online.backend.only_run()
    assert summary(online.backend, run)[2] == "0|1|2|3|4|5|6|7|8|9"
    assert b"<html" in online.backend.run_file(run, PAGE)
    assert run.is_complete


def test_the_chart_names_a_preset_that_is_on_the_server(online: Online) -> None:
    assert list(online.backend.charts) == [f"ent/{preset_name()}"]
    assert chart_of(online.backend, CHART, online.backend.only_run()).strings["model"] == "Net"


def test_no_step_of_the_run_is_consumed(online: Online) -> None:
    run = online.backend.only_run()
    assert logged_steps(run, "loss") == list(range(10))
    assert online.trained.told["step"] == 10


def test_the_table_is_a_file_of_the_run_and_no_artifact(online: Online) -> None:
    kinds = {artifact["artifactTypeName"] for artifact in online.backend.artifacts.values()}
    assert kinds == {"torchgraph-record"}
    assert online.backend.asked.count("CreateArtifact") == 1


def test_the_uploaded_record_is_opened_by_its_address(online: Online) -> None:
    run = online.backend.only_run()
    script = f"""
import torchgraph_explorer as t
run = t.open_run("wandb://ent/p/{run.name}")
print(run.models, run.model().steps.tolist())
"""
    assert online.python(script).strip() == f"('Net',) {list(range(10))}"


def test_a_run_that_finishes_first_loses_nothing(train: Train, backend: Backend) -> None:
    told = train("finished").told
    assert told["is_finished"]
    assert summary(backend, backend.only_run())[2] == "0|1|2|3|4|5|6|7|8|9"
    assert open_run(told["run_dir"]).model().finished is not None


def test_late_commits_and_axes_of_the_users_own_survive(train: Train, backend: Backend) -> None:
    trained = train("committed_late")
    run = backend.only_run()
    own = [{key: row[key] for key in ("_step", "samples")} for row in run.history if "half" in row]
    assert own == [{"_step": step * 10, "samples": step * 32} for step in range(trained.told["steps"])]
    assert all("loss" in row for row in run.history if "half" in row)
    assert "must" not in trained.said
    assert len(logged_steps(run, TABLE)) >= 2


def test_a_disabled_run_still_leaves_a_record(train: Train, backend: Backend) -> None:
    told = train("disabled").told
    assert open_run(told["run_dir"]).model().steps.tolist() == [0, 1, 2]
    assert backend.runs == {}


def test_an_offline_run_shows_the_same_after_sync(train: Train, backend: Backend, tmp_path: Path, panel: Panel) -> None:
    told = train("offline").told
    assert backend.runs == {}
    script = "from torchgraph_explorer.cli import main; raise SystemExit(main(['wandb', 'publish', '--entity', 'ent']))"
    sync = ["-m", "wandb", "sync", told["folder"]]
    for arguments in (["-c", script], sync):
        done = warm.run(*arguments, modules=warm.WANDB, cwd=tmp_path, env=environment(backend, tmp_path))
        assert done.returncode == 0, done.stderr
    chart = chart_of(backend, CHART, backend.only_run())
    parts = {"summary", "insides", "nodes", "edges", "tensors", "xray", "xray_rows"}
    assert {row["part"] for row in chart.rows} - {"findings"} == parts
    assert PAGE in backend.only_run().summary
    panel.show(chart, vega=6)
    panel.click("blocks#0")
    panel.drag_out("blocks.0#0")
    assert panel.data("tensors_0", "path") == ["input[0]", "output", "residual"]
    assert panel.hover_strip(0, side=1, share=0.99)[:2] == ["x, gradient norm", "step 4"]


def test_several_runs_and_models_in_one_process_keep_apart(train: Train, backend: Backend) -> None:
    first, second = (backend.runs[number] for number in train("sweep").told["runs"])
    assert summary(backend, first, "torchgraph/first_table")[1].startswith("Net: 12 modules, 131 parameters")
    assert "torchgraph/second_table" not in first.summary
    for model in ("first", "second"):
        assert summary(backend, second, f"torchgraph/{model}_table")[2] == "0|1|2"


def test_the_runs_of_a_sweep_each_show_their_model(train: Train, backend: Backend) -> None:
    backend.jobs += [{"type": "run", "run_id": f"run{width}", "args": {"width": {"value": width}}} for width in (4, 8)]
    assert train("agent").told["runs"] == ["run4", "run8"]
    told = {name: summary(backend, run) for name, run in backend.runs.items()}
    assert {name: one[1].split(" parameters")[0] for name, one in told.items()} == {
        "run4": "Net: 12 modules, 131",
        "run8": "Net: 12 modules, 387",
    }
    assert [one[2] for one in told.values()] == ["0|1|2", "0|1|2"]
    assert all(PAGE in run.summary for run in backend.runs.values())


def test_a_refused_chart_leaves_the_page(train: Train, backend: Backend) -> None:
    backend.refuses_charts = True
    said = train("finished").said
    assert "torchgraph wandb publish --entity ent" in said
    assert "The page, which is logged too, shows the same until then." in said
    assert {PAGE, TABLE} <= set(backend.only_run().summary)


@pytest.mark.parametrize(("steps", "shown"), [(300, 39), pytest.param(1000, 33, marks=pytest.mark.exhaustive)])  # > 256
def test_very_many_steps_under_256_open_files_lose_nothing(
    train: Train, backend: Backend, steps: int, shown: int
) -> None:
    trained = train("many_steps", files=256, steps=steps, timeout=200)
    run = backend.only_run()
    assert logged_steps(run, "loss") == list(range(steps))
    assert summary(backend, run)[1].endswith(f"{steps:,} steps recorded, {shown} shown")
    assert summary(backend, run)[2].startswith("0|")
    assert summary(backend, run)[2].endswith(f"|{steps - 1}")
    named = [row[TABLE]["path"] for row in run.history if TABLE in row]
    assert len(named) <= 131
    assert all(f"run/{run.name}/{path}" in backend.files for path in named)
    assert [len(trained.told[what]) for what in ("handing over", "writing")] == [steps, steps]


def test_a_cell_that_is_run_again_and_again_goes_on_in_the_run(train: Train, backend: Backend) -> None:
    told = train("watched_again").told
    assert told["held"][-1] == told["held"][0]
    assert told["losses"] == train("unwatched").told["losses"]
    assert summary(backend, backend.runs[told["run"]])[2] == "|".join(map(str, range(10)))
    recorded = open_run(told["run_dir"]).model()
    assert (recorded.steps.tolist(), len(recorded.sessions)) == (list(range(10)), 5)
