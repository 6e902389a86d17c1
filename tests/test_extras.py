"""The command that a message names for a missing library."""

from __future__ import annotations

import importlib.metadata

import pytest

from torchgraph_explorer.extras import installing


def test_it_names_the_libraries_of_the_extra_alone() -> None:
    assert installing("demo") == 'pip install "rich>=13" "scikit-learn>=1.3"'


@pytest.mark.parametrize("extra", ["tensorboard", "wandb"])
def test_it_asks_no_index_for_this_package(extra: str) -> None:
    assert installing(extra).startswith("pip install ")
    assert f'"{extra}>=' in installing(extra)
    assert "torchgraph" not in installing(extra)


def test_a_source_tree_that_is_not_installed_is_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("torchgraph_explorer.extras.requires", missing)
    assert installing("wandb") == 'pip install ".[wandb]"'
