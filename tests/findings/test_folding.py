"""What is told as one: calls of a module, modules with one fault, and what follows from what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from tests.findings.records import Values, recorded
from tests.findings.test_rules import NORMAL, perceptron, put, steps, together
from torchgraph_explorer import watch
from torchgraph_explorer.finding import Finding, Severity
from torchgraph_explorer.findings.calls import once_a_module
from torchgraph_explorer.findings.causes import in_order
from torchgraph_explorer.findings.engine import find
from torchgraph_explorer.findings.places import Places
from torchgraph_explorer.findings.report import as_lines, as_roots, as_text
from torchgraph_explorer.findings.report import place as words_of_place
from torchgraph_explorer.run import open_run

LAYERS = ("fc1", "fc2", "fc3")
PLACES = Places([perceptron()])


def at(
    kind: str,
    place: str | None,
    step: int,
    severity: Severity = "warning",
    *,
    call: int | None = None,
    path: str | None = None,
) -> Finding:
    return Finding(kind=kind, module=place, step=step, severity=severity, call=call, path=path, text="Text.")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param([("fc1", 0, "output", 3), ("fc1", 1, "output", 3)], [("fc1", 0, 3, 2)], id="two calls"),
        pytest.param(
            [("fc1", 0, "output", 5), ("fc1", 1, "output", 3)], [("fc1", 1, 3, 2)], id="the second is earlier"
        ),
        pytest.param([("fc1", 1, None, 3), ("fc1", 0, None, 3)], [("fc1", 0, 3, 2)], id="the second is found first"),
        pytest.param(
            [("fc1", 0, "output", 3), ("fc2", 1, "output", 3)],
            [("fc1", 0, 3, 1), ("fc2", 1, 3, 1)],
            id="two modules",
        ),
        pytest.param(
            [("fc1", 0, "output[0]", 3), ("fc1", 1, "output[1]", 3)],
            [("fc1", 0, 3, 1), ("fc1", 1, 3, 1)],
            id="two tensors",
        ),
        pytest.param(
            [("fc1", None, "weight", 0), ("fc1", None, "weight", 0)],
            [("fc1", None, 0, 1), ("fc1", None, 0, 1)],
            id="of no single call",
        ),
        pytest.param([("fc1", call, "output", 0) for call in range(99)], [("fc1", 0, 0, 99)], id="many calls"),
    ],
)
def test_calls_of_a_module_are_told_as_one(
    found: list[tuple[str, int | None, str | None, int]],
    expected: list[tuple[str, int | None, int, int]],
) -> None:
    findings = [at("dead-units", place, step, call=call, path=path) for place, call, path, step in found]
    told = once_a_module(findings, most=50)
    assert [(one.module, one.call, one.step, one.evidence.get("calls", 1)) for one in told] == expected
    for one in told:
        assert one.text.startswith("Text.")
        assert ("of the module in a step" in one.text) is ("calls" in one.evidence)


def test_calls_that_are_told_as_one_have_the_worst_severity() -> None:
    both = [at("dead-units", "fc1", 0, "warning", call=0), at("dead-units", "fc1", 2, "error", call=1)]
    [one] = once_a_module(both, most=50)
    assert (one.call, one.step, one.severity) == (0, 0, "error")


def test_calls_leave_room_for_other_modules(tmp_path: Path) -> None:
    def rule(_evidence: object) -> list[Finding]:
        return [at("dead-units", place, 0, call=call, path="output") for place in LAYERS for call in range(40)]

    model = recorded(tmp_path, perceptron(), steps(count=2))
    assert [(one.module, one.call) for one in find(model, {"dead-units": rule})] == [(name, 0) for name in LAYERS]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            [at("attention-logits-growing", name, 20) for name in reversed(LAYERS)],
            [("fc1", None), ("fc2", "fc1"), ("fc3", "fc1")],
            id="attention, at one step",
        ),
        pytest.param(
            [at("attention-logits-growing", name, step) for name, step in zip(LAYERS, (30, 20, 10), strict=True)],
            [("fc3", None), ("fc2", "fc3"), ("fc1", "fc3")],
            id="attention, the last module first",
        ),
        pytest.param(
            [at("normalisation-in-eval", name, 0, "info") for name in LAYERS],
            [("fc1", None), ("fc2", "fc1"), ("fc3", "fc1")],
            id="worth knowing",
        ),
        pytest.param(
            [at("normalisation-in-eval", "fc1", 0, "info"), at("normalisation-in-eval", "fc2", 0)],
            [("fc2", None), ("fc1", None)],
            id="what is only worth knowing explains no warning",
        ),
        pytest.param(
            [at("input-not-normalised", name, 0) for name in LAYERS],
            [(name, None) for name in LAYERS],
            id="inputs, each with a scale of its own",
        ),
        pytest.param(
            [at("dead-units", "fc1", 30), at("dead-units", "fc2", 10)],
            [("fc2", None), ("fc1", None)],
            id="dead units before those that were dead first",
        ),
    ],
)
def test_modules_with_the_same_fault_are_folded_below_the_first(
    found: list[Finding], expected: list[tuple[str, str | None]]
) -> None:
    told = [(one.module, one.causes[0].module if one.causes else None) for one in in_order(found, PLACES)]
    assert told == expected


@pytest.mark.parametrize(
    ("cause", "since", "kind", "begins", "is_folded"),
    [
        ("exploding-activation", 10, "attention-logits-growing", 20, True),
        ("exploding-activation", 20, "attention-logits-growing", 20, True),
        ("exploding-activation", 21, "attention-logits-growing", 20, False),
        ("update-too-large", 10, "attention-logits-growing", 20, True),
        ("bad-init-scale", 0, "attention-logits-growing", 20, True),
        ("bad-init-scale", 0, "clipping-always", 0, True),
        ("input-not-normalised", 0, "clipping-always", 0, True),
        ("exploding-gradient", 0, "clipping-always", 0, True),
        ("exploding-gradient", 5, "clipping-always", 0, False),
        ("update-too-large", 0, "clipping-always", 0, False),
    ],
)
def test_a_finding_is_folded_below_what_it_follows_from(  # the columns of the table
    cause: str, since: int, kind: str, begins: int, is_folded: bool
) -> None:
    found = in_order([at(kind, None, begins), at(cause, "fc1", since)], PLACES)
    assert [one.kind for one in found if one.causes] == ([kind] if is_folded else [])


def test_modules_with_the_same_fault_are_counted_in_the_terminal() -> None:
    found = in_order([at("attention-logits-growing", name, 20) for name in LAYERS], PLACES)
    [line], [root] = as_lines(found), as_roots(found)
    assert line == "warning: attention-logits-growing at fc1 and 2 more, since step 20: Text."
    assert root == "warning: attention-logits-growing at fc1 and 2 more, step 20"


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_attn = nn.Linear(4, 12, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.c_attn(x).chunk(3, dim=-1)
        return nn.functional.scaled_dot_product_attention(query, key, value)


class Blocks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Attention(), Attention()

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).tanh())


@pytest.mark.slow
def test_attention_is_told_once_although_gradients_are_accumulated(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Blocks()
    with watch(model, backend="record", log_freq=1, logdir=tmp_path, verbose=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
        for _ in range(8):
            for _ in range(2):
                model(torch.randn(2, 5, 4)).mean().backward()
            with torch.no_grad():
                model.first.c_attn.weight *= 1.8
                model.second.c_attn.weight *= 1.8
            optimizer.step()
            optimizer.zero_grad()
    found = [one for one in open_run(tmp_path).model().findings() if one.kind == "attention-logits-growing"]
    assert [(one.module, one.call, one.evidence["calls"]) for one in found] == [("first", 0, 2), ("second", 0, 2)]


class Ratios(NamedTuple):
    """Ratios of updates and weights at the first steps, and from then on."""

    first: tuple[float, ...]
    then: float = 0.01


def moved(ratios: Ratios, count: int) -> list[Values]:
    def ratio(step: int) -> list[float]:
        return [ratios.first[step] if step < len(ratios.first) else ratios.then]

    return steps(together(*(put(name, "param", "weight", "update_ratio", value=ratio) for name in LAYERS)), count)


@pytest.mark.slow
@pytest.mark.parametrize("grows_at", [None, 2, 12])
@pytest.mark.parametrize(
    ("ratios", "is_large"),
    [
        pytest.param(Ratios((0.25, 0.13)), {2: True, 12: True}, id="large at first"),
        pytest.param(Ratios((0.25,)), {2: True, 12: False}, id="large at the first step only"),
        pytest.param(Ratios((0.01,) * 8 + (0.2,) * 4), {2: False, 12: True}, id="large after a warm-up"),
        pytest.param(Ratios((0.01, 0.02)), {2: False, 12: False}, id="small"),
        pytest.param(Ratios((0.01,) * 14 + (0.2,) * 3), {2: False, 12: False}, id="large afterwards"),
    ],
)
def test_a_few_large_updates_are_told_if_something_grows_after_them(
    ratios: Ratios, is_large: dict[int, bool], grows_at: int | None, tmp_path: Path
) -> None:
    values = moved(ratios, 20)
    for step, one in enumerate(values):
        if grows_at is not None and step >= grows_at:
            one["fc3", "output", "output", "value"] = NORMAL * 1e5  # type: ignore[index]
    found = recorded(tmp_path, perceptron(), values).findings()
    told = [(one.kind, [cause.kind for cause in one.causes]) for one in found]
    growth = "exploding-activation"
    if grows_at is None:
        assert told == []
    elif not is_large[grows_at]:
        assert told == [(growth, [])]
    else:
        assert told == [("update-too-large", []), (growth, ["update-too-large"])]
        assert found[0].severity == "warning"
        assert found[0].text.endswith(f"`{growth}` follows, from step {grows_at} on.")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        pytest.param(("fc1", 0, "output"), "fc1 output", id="the first call"),
        pytest.param(("fc1", 1, "output"), "fc1 (call 2) output", id="the second, as the viewer counts"),
        pytest.param(("fc1", None, "weight"), "fc1 weight", id="a parameter"),
        pytest.param(("", 2, None), "the model (call 3)", id="the model"),
        pytest.param((None, None, None), "the whole run", id="nowhere"),
    ],
)
def test_a_place_is_written_as_the_viewer_writes_it(
    found: tuple[str | None, int | None, str | None], words: str
) -> None:
    module, call, path = found
    assert (
        words_of_place(Finding(kind="kind", module=module, call=call, path=path, step=0, severity="warning", text=""))
        == words
    )


def test_root_causes_are_set_apart_in_a_terminal() -> None:
    cause = at("nan", "fc1", 0)
    follows = replace(at("dead-units", "fc2", 1), causes=(cause,))
    text = as_text({"net": (cause, follows, at("collapse", "fc3", 0))})
    assert [line.split(" at")[0].strip() for line in text.splitlines() if " at " in line or not line] == [
        "warning  nan",
        "warning  dead-units",
        "",
        "warning  collapse",
        "",
    ]
