"""docs/finding-kinds.md has an entry for each kind, with what the code says of it; docs/findings.md lists them all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest

from torchgraph_explorer.capture.facts import late
from torchgraph_explorer.finding import SEVERITIES
from torchgraph_explorer.findings.rules import (
    RULES,
    activations,
    advantages,
    ascent,
    attention,
    batch_softmax,
    batches,
    beginning,
    branches,
    broadcast,
    chance,
    copied,
    critics,
    cross_entropies,
    depth,
    dice,
    experts,
    frozen_later,
    generated,
    growth,
    inputs,
    judge_labels,
    judge_sigmoids,
    judges,
    last_dropout,
    latents,
    learning,
    left_scale,
    loop,
    loss,
    means,
    modes,
    nonfinite,
    norms,
    one_class,
    one_sample,
    optimizer,
    participation,
    penalties,
    precision,
    rates,
    ratios,
    recreated,
    same_noise,
    scales,
    sequences,
    sharp_attention,
    single_units,
    softmax,
    spike,
    standardised,
    states,
    sure_policies,
    targets,
    tokens,
    twins,
    undone,
    units,
    updates,
    zero_gradients,
)

ROOT = Path(__file__).parent.parent.parent
PAGE, OVERVIEW = ROOT / "docs/finding-kinds.md", ROOT / "docs/findings.md"
FINDINGS = ROOT / "torchgraph_explorer/findings"

OF_THE_ENGINE = "rule-failed"
"""The kind that no rule has."""

PARTS = (
    "What it means",
    "When it is reported",
    "When it is not reported, or may be wrong",
    "What to do",
    "Severity",
)
MOST_WORDS = 75
"""Of what a finding means: it is read in ten seconds."""

MOST_OF_A_LINE = 15
"""Words of a kind in the overview."""

HEADING = re.compile(r"^### ([a-z]+(?:-[a-z]+)*)$", re.MULTILINE)
PART = re.compile(r"^\*\*([^*]+)\.\*\*", re.MULTILINE)
LISTED = re.compile(r"^- \[([\w-]+)\]\((\S+)\): (.+)$", re.MULTILINE)


class Entry(NamedTuple):
    """What the page says of a kind: the names of its parts in their order, and their texts."""

    names: list[str]
    texts: dict[str, str]


def entries(page: str) -> Iterator[tuple[str, Entry]]:
    for kind, text in split(HEADING, page):
        parts = split(PART, re.split(r"^##", text, maxsplit=1, flags=re.MULTILINE)[0])
        yield kind, Entry([name for name, _ in parts], {name: " ".join(part.split()) for name, part in parts})


def split(heading: re.Pattern[str], text: str) -> list[tuple[str, str]]:
    """What follows each heading, up to the next one."""
    _, *parts = heading.split(text)
    return list(zip(parts[::2], parts[1::2], strict=True))


FOUND = list(entries(PAGE.read_text(encoding="utf-8")))
ENTRIES = dict(FOUND)
KINDS = [*RULES, OF_THE_ENGINE]


def test_each_kind_has_one_entry_and_each_entry_is_of_a_kind() -> None:
    assert sorted(kind for kind, _ in FOUND) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_has_all_its_parts(kind: str) -> None:
    entry = ENTRIES[kind]
    assert entry.names == [*PARTS]
    assert [name for name, text in entry.texts.items() if not text.endswith((".", "|"))] == []
    assert len(entry.texts["What it means"].split()) <= MOST_WORDS


def test_the_overview_has_all_kinds_in_the_order_of_their_entries() -> None:
    listed = LISTED.findall(OVERVIEW.read_text(encoding="utf-8"))
    assert [kind for kind, *_ in listed] == [kind for kind, _ in FOUND if kind != OF_THE_ENGINE]
    assert [link for kind, link, _ in listed if link != f"finding-kinds.md#{kind}"] == []
    assert [line for *_, line in listed if not line.endswith(".") or len(line.split()) > MOST_OF_A_LINE] == []


def test_an_entry_that_lacks_something_would_be_found() -> None:
    page = "## A\n\n### dead-units\n\n**What it means.** Zeros.\n\n**Severity.** `info`.\n\n## B\n\n### Units\n\nx\n"
    ((kind, entry),) = entries(page)
    assert (kind, entry.names) == ("dead-units", ["What it means", "Severity"])
    assert entry.texts == {"What it means": "Zeros.", "Severity": "`info`."}


@pytest.fixture(scope="module")
def severities() -> dict[str, set[str]]:
    """By kind, the severities that stand in the code where findings of it are made. All rules are read for them."""
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for file in FINDINGS.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            for kind, severity in kinds_and_severities(call):
                where = tree if isinstance(severity, ast.Name) else severity  # a variable is set in the same file
                found[kind] |= words(where) & {*SEVERITIES}
    return found


def kinds_and_severities(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    named = {one.arg: one.value for one in call.keywords}
    pairs = [*zip(call.args, call.args[1:], strict=False)]
    if "kind" in named and "severity" in named:
        pairs.append((named["kind"], named["severity"]))
    for kind, severity in pairs:
        if isinstance(kind, ast.Constant) and kind.value in KINDS:
            yield str(kind.value), severity


def words(tree: ast.AST) -> set[str]:
    return {one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_has_the_severities_of_the_code(kind: str, severities: dict[str, set[str]]) -> None:
    told = {*re.findall(r"`(\w+)`", ENTRIES[kind].texts["Severity"])} & {*SEVERITIES}
    assert told == severities[kind] != set()


SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def number(written: str) -> Fraction:
    """The value of a threshold as the page writes it: `90 %`, `5·10⁻⁶`, `1/64`, `1.03 times`."""
    factor = Fraction(1, 100) if written.endswith("%") else Fraction(1)
    found = re.sub(r" (%|times|steps|values|samples).*", "", written)
    mantissa, _, power = found.rpartition("·") if "10" in found and "·" in found else ("1", "", found)
    if re.search(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]", power):
        return Fraction(mantissa) * Fraction(10) ** int(power.removeprefix("10").translate(SUPERSCRIPTS))
    return Fraction(found) * factor


THRESHOLDS = [
    ("nan", nonfinite.LEAST_NEVER, "8"),
    ("overflow-ahead", growth.NEAR_LIMIT, "75 %"),
    ("overflow-ahead", precision.LOST, "50 %"),
    ("overflow-ahead", precision.FEW_BITS, "1/64"),
    ("loss-scale-loop", updates.LEAST_SKIPPED, "3"),
    ("loss-scale-loop", updates.SKIPPED_SHARE, "30 %"),
    ("update-lost-to-rounding", precision.UNCHANGED, "75 %"),
    ("exploding-gradient", growth.GRADIENT_GROWTH, "100 times"),
    ("exploding-gradient", growth.GRADIENT_BEYOND_WEIGHTS, "1000 times"),
    ("exploding-activation", growth.ACTIVATION_GROWTH, "1000 times"),
    ("vanishing-gradient", depth.LEAST_LAYERS, "3"),
    ("vanishing-gradient", depth.LOST, "10⁻⁴"),
    ("vanishing-gradient", depth.LOST_BESIDE_USUAL, "10⁻²"),
    ("vanishing-gradient", depth.LOST_AT_ONCE, "10⁻⁵"),
    ("vanishing-gradient", depth.LEAST_STEPS, "5"),
    ("dead-units", units.DEAD_SHARE, "98 %"),
    ("dead-units", single_units.DEAD_SHARE, "60 %"),
    ("dead-units", single_units.MANY_DEAD, "75 %"),
    ("dead-units", units.HELD, "25 %"),
    ("saturated-activation", units.SATURATED_SHARE, "60 %"),
    ("saturated-activation", units.FLAT["Sigmoid"], "5.3"),
    ("saturated-activation", loss.SOLVED, "1 %"),
    ("constant-output", units.CONSTANT, "10⁻⁶"),
    ("collapse", single_units.ALIKE, "10⁻³"),
    ("collapse", single_units.LEVEL, "10 %"),
    ("imbalanced-branches", branches.APART, "300 times"),
    ("imbalanced-branches", branches.SWAMPED, "100 times"),
    ("expert-imbalance", experts.IN_USE, "0.4"),
    ("attention-logits-growing", attention.LARGE, "10"),
    ("attention-logits-growing", attention.GROWN, "5 times"),
    ("posterior-collapse", latents.LITTLE, "0.1"),
    ("posterior-collapse", latents.LEAST_STEPS, "200 steps"),
    ("symmetric-units", single_units.EQUAL_SHARE, "50 %"),
    ("bad-init-scale", beginning.LARGE_GAIN, "4"),
    ("bad-init-scale", beginning.SMALL_GAIN, "0.05"),
    ("bad-init-scale", beginning.LARGE_WITHOUT_BOUND, "3"),
    ("bad-init-scale", beginning.ONE_LARGE_GAIN, "10"),
    ("attention-saturated", sharp_attention.SHARP, "0.5"),
    ("attention-saturated", sharp_attention.LEAST_KEYS, "8"),
    ("input-not-normalised", beginning.LARGE_INPUT, "10"),
    ("input-not-normalised", beginning.SMALL_INPUT, "0.01"),
    ("constant-input", inputs.LEAST_STEPS, "4"),
    ("no-gradient", participation.LEAST_UNCHANGED, "4"),
    ("no-gradient", zero_gradients.GROWS, "0.01 %"),
    ("not-in-optimizer", optimizer.LEAST_STEPS, "50 steps"),
    ("frozen-by-accident", optimizer.HELD_SHARE, "75 %"),
    ("frozen-by-accident", optimizer.MADE_SHARE, "50 %"),
    ("frozen-by-accident", frozen_later.LEAST_STEPS, "3"),
    ("no-zero-grad", loop.LEFTOVER_SHARE, "50 %"),
    ("gradients-cleared", loop.CLIPPED_SHARE, "95 %"),
    ("gradients-cleared", loop.MOST_CLIPPED, "10¹⁸"),
    ("clipping-always", loop.CLIPPED, "0.05"),
    ("clipping-always", loop.CLIPPED_ADAPTIVE, "0.001"),
    ("clipping-after-step", loop.SAME_GRADIENT, "2 %"),
    ("clipping-after-step", late.MOST_ASKED, "16"),
    ("weight-decay-dominates", loop.DECOUPLED_RATIO, "0.5"),
    ("weight-decay-dominates", loop.DECAYED, "0.1"),
    ("weight-decay-dominates", loop.SHRUNK, "80 %"),
    ("weight-decay-dominates", penalties.OFTEN, "40 %"),
    ("weight-decay-dominates", penalties.MOST, "90 %"),
    ("weight-decay-dominates", penalties.EQUAL_SIZES, "98 %"),
    ("update-too-small", updates.SMALL_RATIO, "5·10⁻⁶"),
    ("update-too-small", updates.SLOW_RATIO, "3·10⁻⁵"),
    ("update-too-small", updates.STILL, "10⁻⁵"),
    ("update-too-large", updates.LARGE_RATIO, "0.1"),
    ("update-too-large", updates.LARGE_SHARE, "30 %"),
    ("update-too-large", updates.LEAST_UPDATES, "25 steps"),
    ("update-too-large", updates.REPLACING_RATIO, "1"),
    ("update-too-large", ratios.USUAL_GAIN, "0.3"),
    ("update-too-large", left_scale.LEAST, "4096 times"),
    ("learning-rate-gone", rates.GONE / 1.0001, "10⁻⁴"),
    ("learning-rate-gone", rates.FALLEN / 1.0001, "1 %"),
    ("learning-rate-gone", rates.HELD, "50 %"),
    ("learning-rate-gone", rates.EARLY / 1.0001, "10⁻³"),
    ("learning-rate-gone", rates.MOST_OF_RUN, "80 %"),
    ("state-detached", states.LEAST_STEPS, "4"),
    ("batch-as-sequence", sequences.FOLLOWING, "90 %"),
    ("loss-of-mean", means.LEAST_STEPS, "8"),
    ("loss-of-mean", means.VARIES, "1 %"),
    ("loss-of-mean", means.EQUAL, "0.01 %"),
    ("targets-broadcast", advantages.VARIES, "2 %"),
    ("targets-broadcast", critics.LEAST_OF_ERROR, "0.49"),
    ("targets-broadcast", critics.DIFFERS, "5 %"),
    ("targets-out-of-range", generated.BEYOND, "5 %"),
    ("normalised-over-batch", standardised.EXACT, "0.2 %"),
    ("optimizer-recreated", recreated.OFTEN, "0.75"),
    ("update-undone", undone.OFTEN, "90 %"),
    ("update-undone", undone.LEFT, "10 %"),
    ("update-undone", undone.LEFT_BETWEEN, "1 %"),
    ("update-undone", undone.MOST_LEFT, "60 %"),
    ("update-undone", undone.READABLE, "10⁻⁵"),
    ("logits-before-nll", dice.BEYOND, "1.05"),
    ("vanishing-gradient", judges.FLAT, "1 %"),
    ("vanishing-gradient", judges.SURE, "0.02"),
    ("vanishing-gradient", judges.LEAST_STEPS, "20"),
    ("loss-not-falling", loss.LEAST_VALUES, "40 values"),
    ("loss-not-falling", loss.FELL, "5 %"),
    ("loss-not-falling", loss.MAY_HAVE_FALLEN, "10 %"),
    ("loss-not-falling", loss.KNOWN, "80 %"),
    ("loss-not-falling", loss.AT_CHANCE, "2 %"),
    ("loss-negated", ascent.NEVER_FELL, "90 %"),
    ("loss-negated", ascent.ALIKE, "5 %"),
    ("loss-diverging", loss.ABOVE_NOISE, "6 times"),
    ("loss-diverging", loss.RISEN, "50 %"),
    ("loss-diverging", loss.LOST, "75 %"),
    ("loss-diverging", 1 - loss.ERROR_FELL, "5 %"),
    ("loss-spike", spike.JUMP, "10 times"),
    ("loss-spike", spike.OF_BEGINNING, "25 %"),
    ("loss-spike", spike.MOVED, "8 times"),
    ("softmax-before-loss", softmax.LEAST_OF_SIGMOID, "0.3"),
    ("softmax-before-loss", softmax.MOST_OF_SIGMOID, "0.76"),
    ("softmax-before-loss", judge_sigmoids.EXACT, "0.001"),
    ("softmax-before-loss", cross_entropies.AS_EXPECTED, "20 %"),
    ("activation-before-loss", activations.ZEROS, "1.25"),
    ("activation-before-loss", activations.NEAR_BOUND, "0.95"),
    ("activation-before-loss", activations.LEAST_ZEROS, "2 %"),
    ("dropout-on-output", last_dropout.MOST_DROPPED, "95 %"),
    ("label-smoothing-extreme", copied.LEAST_RIGHT, "50 %"),
    ("samples-left-out", one_sample.LEAST_STEPS, "4"),
    ("samples-left-out", one_sample.LEAST_SAMPLES, "8 samples"),
    ("targets-out-of-range", targets.AS_LOGGED, "2 %"),
    ("targets-out-of-range", targets.STOPPED, "50 %"),
    ("targets-not-scaled", scales.FAR, "30 times"),
    ("targets-not-scaled", scales.LEAST_UPDATES, "100 steps"),
    ("targets-broadcast", broadcast.FOLLOWS, "90 %"),
    ("loss-not-falling", chance.MOVED_FAR, "50 %"),
    ("loss-not-falling", chance.AS_LARGE, "99.6 %"),
    ("loss-not-falling", chance.EACH, "90 %"),
    ("loss-not-falling", chance.MOST_CLASSES, "20"),
    ("one-class-batches", one_class.ONE_WAY, "90 %"),
    ("one-class-batches", judge_labels.LEAST_STEPS, "4"),
    ("one-class-batches", judge_sigmoids.EXACT, "0.001"),
    ("one-class-batches", one_class.MOSTLY, "80 %"),
    ("one-class-batches", one_class.UNLEARNED, "1.03 times"),
    ("one-class-batches", one_class.ALL_ONE_WAY, "98 %"),
    ("one-class-batches", one_class.SAMPLES_OF_ONE, "500 samples"),
    ("one-class-batches", one_class.LEAST_SAMPLES, "6 samples"),
    ("repeated-batch", batches.LEAST_STEPS, "8"),
    ("repeated-batch", batches.IN_A_ROW, "5 steps"),
    ("repeated-batch", same_noise.LEAST_STEPS, "6"),
    ("softmax-over-batch", batch_softmax.LEAST_SAMPLES, "3 samples"),
    ("future-visible", tokens.ALL, "99 %"),
    ("future-visible", tokens.VISIBLE, "1 %"),
    ("answers-in-inputs", tokens.ALL, "99 %"),
    ("targets-shifted-twice", tokens.ALIKE, "90 %"),
    ("padding-in-loss", tokens.PADDED, "10 %"),
    ("padding-in-loss", tokens.OFTEN_PADDED, "50 %"),
    ("padding-in-loss", tokens.OFTEN_LABELLED, "25 %"),
    ("saturated-activation", sure_policies.GONE, "10⁻⁶"),
    ("saturated-activation", sure_policies.LEAST_LOGIT, "7"),
    ("collapse", twins.EQUAL, "10⁻⁵"),
    ("collapse", twins.TOGETHER, "0.01"),
    ("collapse", twins.CAME, "0.05"),
    ("dropout-extreme", units.MOST_DROPPED, "0.8"),
    ("dropout-extreme", units.LEAST_DROPS, "4 steps"),
    ("normalisation-in-eval", modes.MISFIT, "3 times"),
    ("batch-of-one", modes.MANY_POSITIONS, "256"),
    ("norm-momentum", norms.MOST_MOMENTUM, "0.9"),
]
"""A kind, a constant of its rule, and how its entry writes it."""


@pytest.mark.parametrize(
    ("kind", "value", "written"), [pytest.param(*one, id=f"{one[0]} {one[2]}") for one in THRESHOLDS]
)
def test_an_entry_has_the_thresholds_of_the_code(kind: str, value: float, written: str) -> None:
    assert float(number(written)) == pytest.approx(value, rel=1e-9)
    assert re.search(rf"(?<![\d.·]){re.escape(written)}(?!\d|\.\d)", " ".join(ENTRIES[kind].texts.values()))


def test_the_page_has_the_thresholds_of_a_training_that_learns() -> None:
    (section,) = [text for name, text in split(re.compile(r"^### (What is large.*)$", re.MULTILINE), PAGE.read_text())]
    assert (learning.FALLEN, learning.RISEN, learning.NEARLY_GONE) == (0.8, 2.0, 0.1)
    assert "at most 80 % of its first value" in section
    assert "never more than twice its first value" in section
    assert "at most a tenth of its beginning" in section
