"""The table of a model that calls a module again and again, or whose edges are labels."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pytest
import torch
from torch import Tensor, nn

from torchgraph_explorer import attach, open_run, watch
from torchgraph_wandb.graph_layout import MOST_CALLS
from torchgraph_wandb.nonfinite_marks import INSIDE, OWN
from torchgraph_wandb.nonfinite_search import NOT_SEARCHED, continue_search
from torchgraph_wandb.snapshot_process import chart_data
from torchgraph_wandb.table import FIELDS, table_rows
from torchgraph_wandb.text_encoding import ALPHABET, LIST_SEPARATOR

CALLS, BAD_CALL = 30, 7

Lines: TypeAlias = "dict[str, list[dict[str, str]]]"


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 4)

    def forward(self, x: Tensor, factor: float) -> Tensor:
        return torch.tanh(self.gate(x)) * factor


class Loop(nn.Module):
    """Calls its cell again and again; one call that the chart would not hold gives NaN from the third step on."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head, self.passes = Cell(), nn.Linear(4, 1), 0

    def forward(self, x: Tensor) -> Tensor:
        self.passes += 1
        for call in range(CALLS):
            y = self.cell(x, torch.nan if (self.passes, call) == (3, BAD_CALL) else 1.0)
            x = torch.nan_to_num(attach(y, self, "state"))
        return self.head(x)


class Dense(nn.Module):
    """Each layer gets what all layers before it gave."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(8)])

    def forward(self, x: Tensor) -> Tensor:
        found = [x]
        for layer in self.layers:
            found.append(layer(torch.stack(found).sum(0)))
        return found[-1]


def lines_of(model: nn.Module, logdir: Path) -> Lines:
    """The lines of the table after four steps."""
    torch.manual_seed(0)
    with watch(model, log_freq=1, backend="record", logdir=logdir, verbose=False):
        for _ in range(4):
            model(torch.randn(2, 4)).sum().backward()
    record = open_run(logdir).model()
    found: Lines = {}
    for part, text in table_rows(chart_data(record, continue_search(record, NOT_SEARCHED), engine="rows")):
        found.setdefault(part, [])
        found[part] += [dict(zip(FIELDS[part], line.split("\t"), strict=True)) for line in text.split("\n")]
    return found


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    return lines_of(Loop(), tmp_path_factory.mktemp("loop"))


def cells_of(lines: Lines) -> list[dict[str, str]]:
    return [line for line in lines["nodes"] if line["key"] == line["owner"] and line["key"].startswith("cell#")]


def calls_of(lines: Lines, module: str) -> list[int]:
    keys = (line["key"].rsplit("#", 1) for line in lines["nodes"] if line["key"] == line["owner"])
    return [int(call) for name, call in keys if name == module]


def flags(line: dict[str, str]) -> list[int]:
    return [ALPHABET.index(one) for one in line["marks"]]


@pytest.mark.slow
def test_the_calls_of_a_module_are_one_box_of_which_some_are_held(loop: Lines) -> None:
    held = cells_of(loop)
    assert {(line["label"], line["box"], line["at"]) for line in held} == {
        (f"cell ×{CALLS}", held[0]["box"], held[0]["at"])
    }
    calls = calls_of(loop, "cell")
    assert (calls[0], calls[-1]) == (0, CALLS - 1)
    assert len(calls) <= MOST_CALLS + 1
    assert [line["detail"] for line in held] == [f"Cell #{call + 1}" for call in calls]


def test_exactly_one_call_is_the_one_to_show_wherever_the_slider_stands(loop: Lines) -> None:
    turns = [line["turn"].split(LIST_SEPARATOR) for line in cells_of(loop)]
    assert [int(number) for number, *_ in turns] == list(range(len(turns)))
    for place in (0.0, 0.31, 0.5, 0.98, 1.0):
        assert sum(float(first) <= place < float(end) for *_, first, end in turns) == 1
    for _, _, share, first, end in turns:
        assert float(first) <= float(share) < float(end)


def test_the_call_that_first_gave_nan_is_held_and_the_others_say_that_there_is_one(loop: Lines) -> None:
    assert BAD_CALL in calls_of(loop, "cell")
    [summary] = loop["summary"]
    assert summary["first_nonfinite"].split(LIST_SEPARATOR)[2].startswith(f"cell#{BAD_CALL}")
    marks = {line["key"]: flags(line)[2] for line in loop["nodes"]}
    last = f"cell#{CALLS - 1}"  # no gradient from the bad call reaches it
    assert marks[f"cell#{BAD_CALL}"] & OWN
    assert not marks[last] & OWN
    assert marks[last] & INSIDE


def test_only_calls_that_are_held_have_insides_tensors_and_room_in_the_table(loop: Lines) -> None:
    cells = set(calls_of(loop, "cell"))
    assert set(calls_of(loop, "cell.gate")) == cells
    assert {line["key"] for line in loop["insides"]} == {"top", "#0", *(f"cell#{call}" for call in cells)}
    owners = {line["owner"] for line in loop["tensors"] if line["owner"].startswith("cell#")}
    assert owners == {f"cell#{call}" for call in cells}
    states = {line["path"] for line in loop["tensors"] if line["role"] == "attached"}
    assert 2 <= len(states) <= MOST_CALLS + 1


def test_what_leads_to_a_call_leads_to_one_that_is_held(loop: Lines) -> None:
    keys = {line["key"] for line in loop["nodes"]}
    insides = {line["key"] for line in loop["insides"]}
    for line in (*loop["xray_rows"], *loop["findings"]):
        assert line["key"] in keys | {""}
        assert line["inside"] in insides | {""}
    assert any(line["key"] for line in loop["xray_rows"])


@pytest.mark.slow
def test_stubs_have_labels_at_both_ends_and_no_line_until_asked_for(tmp_path: Path) -> None:
    lines = lines_of(Dense(), tmp_path)
    boxes = {line["at"]: line["label"] for line in lines["nodes"] if line["inside"] == "#0"}
    ends = [line["ends"].split("/") for line in lines["edges"] if line["ends"]]
    assert ends
    leaving = {line["at"]: line["text"] for line in lines["stubs"] if line["arrives"] == "0"}
    assert leaving == {at: f"→ {sum(source == at for source, _ in ends)}" for at, _ in ends}
    for line in lines["stubs"]:
        if line["arrives"] == "1" and line["leads"]:
            assert [line["leads"], line["at"]] in ends
            assert line["text"] == boxes[line["leads"]]
