"""`log="scalars"`: the same statistics as with histograms, and every reader says that there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from tests.reduce.test_device_batch import send_elsewhere
from torchgraph_explorer import compare, open_run, watch
from torchgraph_explorer.cli import main
from torchgraph_explorer.run import Model

KINDS = ("io", "io_grad", "params", "params_grad")


class Saturated(nn.Module):
    """Its tanh gets numbers far beyond 3, and is not the last activation."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.tanh, self.last = nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.tanh(self.first(x) * 30))


def trained(**options: Any) -> tuple[list[bytes], Listening]:
    torch.manual_seed(0)
    model, heard = Saturated(), Listening()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with watch(model, log_freq=1, backend=[heard, *options.pop("backend", ())], verbose=False, **options):
        for _ in range(12):
            optimizer.zero_grad()
            model(torch.randn(64, 8)).square().mean().backward()
            optimizer.step()
    return [each.detach().numpy().tobytes() for each in model.parameters()], heard


@pytest.fixture(params=["in host memory", "elsewhere"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "elsewhere":
        send_elsewhere(monkeypatch)


@pytest.mark.slow
@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("sample_n", [None, 16])
def test_statistics_are_those_with_histograms_and_training_is_the_same(sample_n: int | None) -> None:
    (plain, whole), (same, without) = (trained(log=log, sample_n=sample_n) for log in (KINDS, "scalars"))
    assert plain == same
    for one, other in zip(whole.frames, without.frames, strict=True):
        np.testing.assert_array_equal(one.statistics, other.statistics)
        np.testing.assert_array_equal(one.series, other.series)
        assert one.fingerprints is not None
        np.testing.assert_array_equal(one.fingerprints, other.fingerprints)
        assert (len(one.histograms.counts) > 0, len(other.histograms.counts)) == (True, 0)
        assert not one.without_histogram.any()
        assert (other.without_histogram == (other.statistics[:, 1] > 0)).all()


@pytest.mark.parametrize(
    ("log", "kinds"),
    [
        pytest.param("scalars", {"value", "grad", "grad_norm", "update_ratio"}, id="of all"),
        pytest.param(["scalars"], {"value", "grad", "grad_norm", "update_ratio"}, id="in a list"),
        pytest.param(["params_grad", "scalars"], {"grad"}, id="of what is named beside it"),
    ],
)
def test_scalars_are_of_the_kinds_that_are_named_with_them(log: str | list[str], kinds: set[str]) -> None:
    _, heard = trained(log=log)
    assert {key[-1] for key in heard.series} == kinds
    assert all(one.without_histogram.any() for one in heard.frames)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logdir = tmp_path_factory.mktemp("runs")
    for name, log in (("whole", KINDS), ("without", "scalars")):
        trained(log=log, backend=["record"], logdir=logdir, run=name)
    return logdir


def model_of(runs: Path, name: str) -> Model:
    return open_run(runs / name).model()


def kinds_found(runs: Path, name: str) -> set[str]:
    return {one.kind for one in model_of(runs, name).findings()}


@pytest.mark.slow
def test_the_record_says_that_it_has_none(runs: Path) -> None:
    model = model_of(runs, "without")
    assert model.session.log == (*KINDS, "scalars")
    assert [note for note in model.notes if "no histograms are recorded" in note]
    assert model_of(runs, "whole").notes == ()


@pytest.mark.slow
def test_a_rule_that_needs_them_is_silent_and_the_command_says_so(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kinds_found(runs, "whole") - kinds_found(runs, "without") == {"saturated-activation"}
    main(["check", str(runs / "without")])
    assert "without histograms, so saturated-activation was not looked for" in capsys.readouterr().err
    main(["check", str(runs / "whole")])
    assert capsys.readouterr().err == ""


def test_runs_are_compared_by_their_statistics_and_no_distance_is_made_up(runs: Path) -> None:
    for other in ("whole", "without"):
        found = compare(model_of(runs, "without"), model_of(runs, other))
        assert found.first_divergence is None
        assert {(one.distance, one.distance_step) for one in found.series} == {(0.0, None)}
