"""Names of panels in a W&B run."""

from __future__ import annotations

import pytest

from torchgraph_wandb.panels import chart_key, page_key, table_key


@pytest.mark.parametrize("name", ["Net", "Net_2", "my-model", "модель"])
def test_a_plain_name_is_the_panels_name(name: str) -> None:
    keys = [key(name) for key in (chart_key, table_key, page_key)]
    assert keys == [f"torchgraph/{name}", f"torchgraph/{name}_table", f"torchgraph/{name}_page"]


def test_names_that_differ_in_odd_characters_have_panels_of_their_own() -> None:
    names = ["a/b", "a.b", "a b", "a_b", "..", "/", "", "x" * 300, "x" * 301, "\ud800", "<b>|\t"]
    assert len({chart_key(name) for name in names}) == len(names)


@pytest.mark.parametrize("name", ["x" * 300, "模" * 300, "\U0001f600" * 300], ids=["ascii", "chinese", "emoji"])
def test_a_long_name_still_makes_a_file_name(name: str) -> None:
    wandbs = len("_table_1000000_") + 20 + len(".table.json")
    assert len(table_key(name).removeprefix("torchgraph/").encode()) + wandbs < 255
