"""What docs/guide.md, docs/find-the-bug.md and docs/views.md say of their examples is so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from examples import attention_text, find_the_bug, guide
from examples.attention_view import attention
from torchgraph_explorer.own_views.selection import selection_from
from torchgraph_explorer.record.tensors.reading import KeptTensor
from torchgraph_explorer.run import Model, open_run
from torchgraph_explorer.schema import Kind, Role, Series

pytestmark = pytest.mark.slow

STEPS_OF_BUG = 8


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    guide.record(["last_relu", "towers", "toy", "killed", "nan", "initialisation"], str(folder))
    find_the_bug.train("faulty", ends_active=True, steps=STEPS_OF_BUG, logdir=str(folder))
    attention_text.main(steps=1, logdir=str(folder))
    return folder


def model(logdir: Path, run: str) -> Model:
    return open_run(logdir / run).model()


def kept(model: Model, module: str, path: str, step: int, *, role: Role = "output", kind: Kind = "value") -> KeptTensor:
    call = None if role == "param" or path in ("target", "loss per sample", "closest sum") else 0
    return model.tensor(Series(-1, module, call, role, path, kind), step)


def test_a_relu_cannot_reach_negative_targets(logdir: Path) -> None:
    run = model(logdir, "last-relu")
    output, target = kept(run, "3", "output", 58).values, kept(run, "", "target", 58, role="attached").values
    assert (target < -1).any()
    assert (output[target < 0] < 0.5).all()


def test_one_tower_gets_less_gradient(logdir: Path) -> None:
    run = model(logdir, "towers")
    norms = [
        run.history(run.find(module="head", role="input", path=f"input[{at}]", kind="grad_norm")[0]).column("mean")
        for at in (0, 1)
    ]
    assert (norms[0] > 3 * norms[1]).all()


def test_outputs_shrink_from_layer_to_layer_until_they_are_trained(logdir: Path) -> None:
    run = model(logdir, "initialisation")
    layers = [run.find(module=str(at), role="output", kind="value")[0] for at in range(0, 17, 2)]
    first, last = np.array([run.history(one).column("std")[[0, -1]] for one in layers]).T
    assert (first[1:] < 0.7 * first[:-1]).all()
    assert last[-1] > 100 * first[-1]


def test_the_toy_network_is_pushed_beyond_what_one_expects(logdir: Path) -> None:
    gradient = kept(model(logdir, "toy"), "", "a", 0, role="param").gradient
    assert gradient is not None
    assert gradient.values.item() < 0


def test_a_dead_unit_gets_no_gradient(logdir: Path) -> None:
    gradient = kept(model(logdir, "killed"), "2", "output", 58).gradient
    assert gradient is not None
    assert not gradient.values[:, : guide.WIDTH - 4].any()


def test_nan_is_found_where_it_begins_and_its_sample_is_kept(logdir: Path) -> None:
    run = model(logdir, "nan")
    (found,) = run.findings()
    assert (found.kind, found.module, found.step) == ("nan", "2", 30)
    (rows,) = np.nonzero(np.isnan(kept(run, "2", "output", 30).values).all(1))
    assert rows.tolist() == [5]
    assert run.kept.steps.tolist() == [28, 29, 30]


def test_the_last_layer_of_the_faulty_network_divides_negative_numbers(logdir: Path) -> None:
    run = model(logdir, "faulty")
    last, output = (kept(run, module, "output", 5).values for module in ("writer.last", "writer"))
    np.testing.assert_allclose(output, np.where(last > 0, last, last / 100), rtol=1e-6)
    assert run.kept.labels[0] == "05 numbers"


def test_the_text_is_coloured_once_for_each_head(logdir: Path) -> None:
    run = model(logdir, "attention")
    nothing = dict.fromkeys(("module", "series", "index", "rank"))
    chosen = selection_from({**nothing, "step": 0, "sample": 1, "loss": "", "theme": "light"}, "attention", run)
    page = attention(chosen)
    assert page.count("<p>") == attention_text.HEADS
    assert page.count("</span>") == attention_text.HEADS * attention_text.CONTEXT
