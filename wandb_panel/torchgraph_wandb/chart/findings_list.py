"""What is wrong in the training: the line above the graph, and the list that it opens."""

from __future__ import annotations

from torchgraph_wandb.chart.datasets import run_lines
from torchgraph_wandb.chart.vega import (
    OUTSIDE,
    Spec,
    colour,
    dataset,
    derived,
    formula,
    group,
    keep,
    mark,
    on,
    state,
    text,
    when,
)
from torchgraph_wandb.finding_rows import FINDING_FIELDS
from torchgraph_wandb.text_encoding import LIST_SEPARATOR

ROW, HEAD = 34, 22
"""Heights of a finding in the list, and of the line above them."""

INDENT = 14
"""How far what follows from another finding is moved to the right."""

SEVERITY_COLOUR = (
    "(datum.severity == 'error' ? paint.bad : datum.severity == 'warning' ? paint.warn_mark : paint.accent)"
)
SEVERITY_SHAPE = "datum.severity == 'error' ? 'diamond' : datum.severity == 'warning' ? 'triangle-up' : 'circle'"


def _counted(number: str, word: str) -> str:
    return f"({number} ? {number} + ({number} == 1 ? ' {word}' : ' {word}s') : '')"


_NUMBERS = (
    f"{_counted('error_count', 'error')} + (error_count && warning_count ? ', ' : '') + "
    f"{_counted('warning_count', 'warning')} + "
    f"(error_count || warning_count ? '' : {_counted('finding_count', 'note')})"
)
_SAID = (
    f"!finding_count ? '' : {_NUMBERS} + ':  ' + first_finding.kind + "
    "(first_finding.place == 'the whole run' ? '' : ' at ' + first_finding.place) + ', ' + first_finding.when + "
    "(finding_count > 1 ? '   ·   click for all' : '   ·   click for more')"
)


def finding_signals() -> list[Spec]:
    """The list, and what the line above the graph says."""
    rows = "length(data('findings_of_run'))"
    group = "'\\n' + datum.group + '\\n'"
    unfolded = f"replace(findings_unfolded, {group}, '\\n')"
    wheeled = (
        f"findings_open && x() < findings_w && y() > top ? "
        f"clamp(findings_top + (event.deltaY > 0 ? 2 : -2), 0, max(0, {rows} - 2)) : findings_top"
    )
    return [
        derived("finding_count", "length(data('told_of_run'))"),
        derived("error_count", "length(data('errors_of_run'))"),
        derived("warning_count", "length(data('warnings_of_run'))"),
        derived(
            "first_finding",
            "finding_count ? data('findings_of_run')[0] : {kind: '', place: '', when: '', tip_lines: []}",
        ),
        derived("findings_text", _SAID),
        derived("findings_banner_h", f"finding_count && height >= 360 ? {HEAD} : 0"),
        state(
            "findings_open",
            "false",
            on("@findings_banner:click, @findings_button:click", "!findings_open"),
            on("@finding_row:click", "datum.part == 'head'"),
            on(f"@find:click, {OUTSIDE}", "false"),
            on("window:keydown", "event.key == 'Escape' ? false : findings_open"),
        ),
        # The groups of findings that say the same whose members are shown, each between line feeds.
        state(
            "findings_unfolded",
            "'\\n'",
            on(
                "@finding_row:click",
                f"datum.part != 'head' ? findings_unfolded : indexof(findings_unfolded, {group}) >= 0 ? {unfolded} : "
                "findings_unfolded + datum.group + '\\n'",
            ),
            when("run", "'\\n'"),
        ),
        derived("findings_w", "min(430, width)"),
        derived("findings_rows", f"findings_open ? max(1, floor((stage_h - {HEAD + 4})/{ROW})) : 0"),
        state("findings_top", "0", on("wheel!", wheeled), when("findings_open", "0"), when("run", "0")),
    ]


def finding_data() -> list[Spec]:
    """The findings of all selected runs, of the chosen one, and those that the list has room for."""
    return [
        dataset("all_findings", "wandb", *run_lines("findings", *FINDING_FIELDS)),
        dataset(
            "findings_of_run",
            "all_findings",
            keep("datum.run == run && datum.kind != ''"),
            {"type": "window", "ops": ["row_number"], "as": ["order"]},
            formula("is_unfolded", "indexof(findings_unfolded, '\\n' + datum.group + '\\n') >= 0"),
            keep("datum.part != 'member' || datum.is_unfolded"),
            {"type": "window", "sort": {"field": "order"}, "ops": ["row_number"], "as": ["number"]},
            formula("tip_lines", f"split(datum.lines, '{LIST_SEPARATOR}')"),
        ),
        dataset("told_of_run", "all_findings", keep("datum.run == run && datum.kind != '' && datum.part != 'head'")),
        dataset("errors_of_run", "told_of_run", keep("datum.severity == 'error'")),
        dataset("warnings_of_run", "told_of_run", keep("datum.severity == 'warning'")),
        dataset(
            "findings_listed",
            "findings_of_run",
            keep("datum.number > findings_top && datum.number <= findings_top + findings_rows"),
        ),
    ]


def findings_list() -> Spec:
    """The list: root causes, and indented below each what follows from it. A click goes to the node and the step."""
    y = f"{HEAD} + (datum.number - findings_top - 1)*{ROW}"
    left = f"(10 + {INDENT}*(toNumber(datum.level) + (datum.part == 'member' ? 1 : 0)))"
    rows = "length(data('findings_of_run'))"
    span = f"(findings_top + 1) + '–' + min({rows}, findings_top + findings_rows) + ' of ' + {rows}"
    fold = "(datum.part == 'head' ? (datum.is_unfolded ? '▾ ' : '▸ ') : '')"
    return group(
        "findings_list",
        text(
            f"findings_open ? 'Findings ' + ({span}) + ';  what follows from another is indented' : ''",
            x={"value": 10},
            y={"value": HEAD / 2},
            size=10,
            ink="faint",
            limit="findings_w - 20",
        ),
        mark(
            "rect",
            name="finding_row",
            listens=True,
            data="findings_listed",
            x={"value": 3},
            y=y,
            width="findings_w - 6",
            height={"value": ROW},
            fill="datum.key != '' && datum.key == found ? paint.glow : paint.paper",
            stroke=colour("line"),
            cursor={"value": "pointer"},
        ),
        mark(
            "symbol",
            data="findings_listed",
            x=f"{left} + 5",
            y=f"{y} + 11",
            size={"value": 55},
            shape=SEVERITY_SHAPE,
            fill=SEVERITY_COLOUR,
        ),
        text(
            f"{fold} + datum.kind + (datum.place == 'the whole run' ? '' : '  at ' + datum.place)",
            data="findings_listed",
            x=f"{left} + 16",
            y=f"{y} + 11",
            fontWeight={"value": 600},
            limit=f"findings_w - {left} - 120",
        ),
        text(
            "datum.when",
            data="findings_listed",
            x="findings_w - 12",
            y=f"{y} + 11",
            align={"value": "right"},
            size=10,
            ink="soft",
            limit="96",
        ),
        text(
            "length(datum.tip_lines) > 1 ? datum.tip_lines[1] + (length(datum.tip_lines) > 2 ? ' …' : '') : ''",
            data="findings_listed",
            x=f"{left} + 16",
            y=f"{y} + 25",
            size=10,
            ink="faint",
            limit=f"findings_w - {left} - 30",
        ),
        listens=True,
        x={"value": 0},
        y="top",
        width="findings_open ? findings_w : 0",
        height="findings_open ? stage_h : 0",
        fill=colour("paper"),
        stroke=colour("frame"),
    )
