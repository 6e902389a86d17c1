"""`torchgraph explain` and `explain`: what each kind of finding means, wherever the package is installed from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchgraph_explorer import NotFoundError, TorchgraphError, explain
from torchgraph_explorer.cli import main
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.kinds import entries
from torchgraph_explorer.findings.kinds.entries import explanations
from torchgraph_explorer.findings.kinds.explanation import Explanation, as_list, as_text
from torchgraph_explorer.findings.kinds.markdown import Block, Bullets, Line, Paragraph, Span, Table, blocks_of, line_of
from torchgraph_explorer.findings.report import as_summary
from torchgraph_explorer.findings.rules import RULES

PAGE = Path(__file__).parent.parent.parent / "docs/finding-kinds.md"


def test_each_kind_is_explained_in_its_parts() -> None:
    kinds = [one for one in explanations().values() if one.is_kind]
    assert {one.name for one in kinds} == {*RULES, "rule-failed"}
    assert {tuple(part.name for part in one.parts[:5]) for one in kinds} == {
        (
            "What it means",
            "When it is reported",
            "When it is not reported, or may be wrong",
            "What to do",
            "Severity",
        )
    }
    assert [one.name for one in kinds if not one.line.endswith(".") or not one.group] == []


def blocks() -> Iterator[Block]:
    return (block for one in explanations().values() for part in one.parts for block in part.blocks)


def lines_of(block: Block) -> list[Line]:
    match block:
        case Paragraph(line=line):
            return [line]
        case Bullets(items=items):
            return [*items]
        case Table(rows=rows):
            return [cell for row in rows for cell in row]


def test_all_markup_of_the_page_is_understood() -> None:
    spans = [span for block in blocks() for line in lines_of(block) for span in line]
    left = re.compile(r"[`*]|\]\(|\||<|^- |^#|^\d\. ")
    assert [span for span in spans if span.style != "code" and left.search(span.text)] == []


def test_no_item_of_a_list_and_no_row_of_a_table_is_lost() -> None:
    page = PAGE.read_text(encoding="utf-8")
    items = sum(len(block.items) for block in blocks() if isinstance(block, Bullets))
    rows = sum(len(block.rows) for block in blocks() if isinstance(block, Table))
    assert items == len(re.findall(r"^ *- ", page, re.MULTILINE))
    assert rows == len(re.findall(r"^\|[^-]", page, re.MULTILINE))


def test_every_entry_that_is_linked_to_exists() -> None:
    assert {name for one in explanations().values() for name in one.leads_to} - {*explanations()} == set()


@pytest.mark.parametrize("width", [40, 80])
def test_every_entry_is_as_narrow_as_the_terminal(width: int) -> None:
    too_wide = [
        line
        for one in explanations().values()
        for line in as_text(one, width).split("\n")
        if len(line) > width and not re.match(r"^ *(- )?\S+$|^  torchgraph explain \S+$", line)
    ]
    assert too_wide == []


def test_the_list_has_each_kind_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    told = capsys.readouterr().out
    assert max(map(len, told.split("\n"))) <= 80
    assert re.search(r"^Activations and gradients\n(  .*\n)+?  dead-units +A ReLU, or many of its units", told, re.M)
    assert [name for name in explanations() if name not in told] == []


@pytest.mark.parametrize("asked", [["dead-units"], ["Dead", "units"], ["dead_units"], [" DEAD-UNITS "]])
def test_the_command_explains_a_kind_however_it_is_written(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *asked]) == 0
    told = capsys.readouterr().out
    assert told.startswith("dead-units: A ReLU, or many of its units, give only zeros.\n\nWhat it means\n  Nearly all")
    assert "\n  - At least 98 % of the output is zero.\n" in told
    assert told.endswith("\nSee also\n  torchgraph explain units\n" + told[told.rindex("  torchgraph explain what") :])


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        pytest.param("dead-unit", "Did you mean dead-units", id="spelt alike"),
        pytest.param("softmax", "Did you mean softmax-before-loss", id="a word of it"),
        pytest.param("relu", "Did you mean dead-units or activation-before-loss?", id="a word of its line"),
        pytest.param("loss-too-high", "Kinds of rules of your own have no entry.", id="of a rule of one's own"),
        pytest.param("\x1b[2J", r"'\x1b[2J'. `torchgraph explain` lists all kinds.", id="control characters"),
        pytest.param("x" * 100_000, f"{'x' * 80!r}. `torchgraph explain`", id="very long"),
    ],
)
def test_an_unknown_kind_names_the_nearest(kind: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", kind]) == 2
    assert hint in capsys.readouterr().err
    with pytest.raises(NotFoundError, match="There is no kind of finding"):
        explain(kind)


def test_markup_becomes_styles_and_links() -> None:
    assert line_of("*No `x`.* **So** [it\nis](#the-loss): a * b") == (
        Span("No ", "emphasis"),
        Span("x", "code"),
        Span(".", "emphasis"),
        Span(" "),
        Span("So", "strong"),
        Span(" "),
        Span("it is", "", "#the-loss"),
        Span(": a * b"),
    )
    assert blocks_of("One.\n\n- a\n  b\n- c\n\n| x | y |\n|---|---|\n| 1 | `2` |\n") == (
        Paragraph((Span("One."),)),
        Bullets(((Span("a b"),), (Span("c"),))),
        Table((((Span("x"),), (Span("y"),)), ((Span("1"),), (Span("2", "code"),)))),
    )


def test_an_address_on_the_web_is_printed_and_other_links_are_not() -> None:
    assert "convergence (https://arxiv.org/abs/1412.6980) needs it" in " ".join(str(explain("betas-swapped")).split())
    assert "measuring.md" not in str(explain("nan"))


def test_the_pages_of_a_wheel_are_read_from_within_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "finding-kinds.md").write_text("## G\n\n### odd\n\n**What it means.** Odd.\n", encoding="utf-8")
    (tmp_path / "findings.md").write_text("- [odd](finding-kinds.md#odd): It is odd.\n", encoding="utf-8")
    monkeypatch.setattr(entries, "SHIPPED", tmp_path)
    read: dict[str, Explanation] = explanations.__wrapped__()
    assert [(one.name, one.line, one.group, one.is_kind) for one in read.values()] == [("odd", "It is odd.", "G", True)]


def test_a_package_without_the_pages_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "SHIPPED", tmp_path)
    with pytest.raises(TorchgraphError, match=r"finding-kinds\.md is missing .* Install the package again"):
        explanations.__wrapped__()


def test_a_summary_leads_to_a_kind_of_the_package_only() -> None:
    own, known = (Finding(kind=kind, step=0, text="Text.") for kind in ("loss-too-high", "nan"))
    assert "explain" not in as_summary("net", [own], "check")[-1]
    assert as_summary("net", [own, known], "check")[-1] == "  what it means: torchgraph explain nan"


def test_the_list_is_as_narrow_as_the_terminal() -> None:
    assert max(map(len, as_list(explanations().values(), 60).split("\n"))) <= 60
