"""The examples of the public names: in their docstrings, or for constants on docs/api.md, where test_docs runs them."""

from __future__ import annotations

import doctest
import inspect
import pathlib
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

import torchgraph_explorer
from torchgraph_explorer.demo import DigitsNet
from torchgraph_explorer.run import Model, Run

API = Path(__file__).parent.parent / "docs/api.md"
PUBLIC = {name: getattr(torchgraph_explorer, name) for name in torchgraph_explorer.__all__} | {
    "Model": Model,
    "Run": Run,
}
CONSTANTS = [name for name, value in PUBLIC.items() if not (inspect.isclass(value) or inspect.isfunction(value))]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("api examples")]  # they share a run


def train(model: nn.Module) -> None:
    model(torch.rand(2, 1, 8, 8)).sum().backward()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `runs`, which holds one run that was recorded."""
    folder = tmp_path_factory.mktemp("examples")
    model = DigitsNet()
    with torchgraph_explorer.watch(
        model, log_freq=50, backend="record", logdir=str(folder / "runs"), run="example", verbose=False
    ) as watcher:
        for step in range(51):
            train(model)
            if step in (1, 50):
                watcher.log({"loss": 1 / (1 + step)})
    return folder


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - set(CONSTANTS)))
def test_the_example_of_a_public_name_does_what_it_says(
    name: str, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/example").symlink_to(runs / "runs/example", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    names = {**PUBLIC, **{"model": DigitsNet(), "train": train, "torch": torch, "nn": nn}}
    names |= {"pathlib": pathlib, "warnings": warnings}
    docstring = inspect.getdoc(PUBLIC[name]) or ""
    example = doctest.DocTestParser().get_doctest(docstring, names, name, None, 0)
    assert example.examples, f"{name} has no example"
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    told: list[str] = []
    with warnings.catch_warnings():
        done = doctest.DocTestRunner(verbose=False, optionflags=flags).run(example, out=told.append)
    assert done.failed == 0, "".join(told)


def test_the_page_of_the_api_shows_every_public_name() -> None:
    page = API.read_text(encoding="utf-8")
    assert [name for name in PUBLIC if f"`{name}`" not in page and f".{name}()" not in page] == []
    documented = [name for name in PUBLIC if name not in CONSTANTS]
    assert [name for name in documented if f":: {name}" not in page and f".{name}()" not in page] == []


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_is_used_in_the_code_of_the_page(name: str) -> None:
    assert name in API.read_text(encoding="utf-8").split("```python")[1].partition("```")[0]
