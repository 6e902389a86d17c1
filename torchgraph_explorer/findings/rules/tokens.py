"""Finds models of sequences of tokens that are given what they have to answer, or that are taught padding.

The evidence is the right answers, which the gradients at the logits tell: the live training compared them with the
tokens that the model was given, and measured what attention sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.classes import LIBRARIES, RECURRENT
from torchgraph_explorer.findings.rules.copied import EQUAL, LEAST_STEPS, target_in_inputs
from torchgraph_explorer.findings.rules.facts import facts_at, numbers_of, operations, rows_with
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named
from torchgraph_explorer.schema import Call, Operation

ALL = 0.99
"""Least share of the places, at each step, whose right answer is the token in question, if all are."""

ALIKE = 0.9
"""Largest share of the places whose right answer is another token than the one in question, if that is chance."""

VISIBLE = 0.01
"""Largest mean weight that a query of causal attention gives to later keys."""

PADDED, OFTEN_PADDED = 0.1, 0.5
"""Least share of the right answers that are padding behind padding, to be reported; and to be a warning."""

OFTEN_LABELLED = 0.25
"""As `OFTEN_PADDED`, of labels of tokens: they need no padding to learn where a text ends."""

HIDDEN, MOST_HIDDEN, MASKED = 0.05, 0.6, 0.5
"""Least and largest share of the places that the loss leaves out, if these are the masked ones; and least share of
these that have the most common token, and that are between other places."""

ENDS = 2
"""Least number of places by which the padding of some samples is longer than that of others."""


_LABELS = "input['labels']"


class _Input(NamedTuple):
    """An input of tokens `[samples, length]` that an embedding takes as it is.

    Attributes:
        path: Its path.
        length: Its second size; 0 if that varies.
        following: Share of the places whose right answer is the next token of the input, at the step with the least.
        same: Share of the places whose right answer is the token at the same place, likewise.
        most: The largest token.
    """

    path: str
    length: int
    following: float
    same: float
    most: float


def future_visible(evidence: Evidence) -> Iterator[Finding]:
    """The answers are the next tokens of the input, and attention or recurrence goes both ways: the model sees them."""
    yield from _numbers_visible(evidence)
    inputs = [tokens for tokens in _inputs(evidence) if tokens.most > 1]
    for tokens in inputs:
        others = [other for other in inputs if other.path != tokens.path]
        if tokens.following < ALL or not tokens.length:
            continue
        is_clear = not any(other.length in {0, tokens.length} for other in others)
        found = _looks_ahead(evidence, tokens.length, of_decoder=not is_clear)
        if found is None and not others:
            found = _goes_both_ways(evidence, tokens.length)
        if found is None:
            continue
        module, row = found
        yield finding(
            evidence,
            "future-visible",
            "warning",
            at=module,
            rows=range(row, len(evidence)),
            numbers={"share": tokens.following},
            text=f"The right answer at each place is the next token of `{tokens.path}`, and {named(module)} lets each "
            "place see the tokens after it. The model can read off the answers, which it will not have when it is "
            "used.",
            advice="Mask the keys after each query (`is_causal=True`, or a triangular mask), or let the recurrence go "
            "one way only.",
        )
        return


def _numbers_visible(evidence: Evidence) -> Iterator[Finding]:
    """The same of numbers: the target at each place is what is given at the next one."""
    seen = numbers_of(evidence, "ahead")
    root = evidence.places.root
    sizes = root.outputs[0].shape if root is not None and root.outputs else ()
    length = sizes[1] if len(sizes) > 1 else None
    if len(seen) < LEAST_STEPS or length is None or not all(numbers[0] < EQUAL for _, numbers in seen):
        return
    looking = _looks_ahead(evidence, length) or _goes_both_ways(evidence, length)
    if looking is not None:
        yield finding(
            evidence,
            "future-visible",
            "warning",
            at=looking[0],
            rows=[row for row, _ in seen],
            numbers={"distance": max(numbers[0] for _, numbers in seen)},
            text=f"The target at each place is what the input has at the next one, and {named(looking[0])} lets each "
            "place see those after it. The model can read off the answers, which it will not have when it is used.",
            advice="Let the recurrence go one way only, or mask the keys after each query; or ask for what comes after "
            "the whole window.",
        )


def _looks_ahead(evidence: Evidence, length: int, *, of_decoder: bool = False) -> tuple[str, int] | None:
    """The first module whose attention over sequences of this length sees later places, and the row of that.

    With `of_decoder`, only the attention of torch's decoders to themselves counts: that of an encoder of as many tokens
    may see all of them, and that to an encoder, too.
    """
    for row, attention in operations(evidence, "attention"):
        layer, _, name = attention.module.rpartition(".")
        if of_decoder and (name != "self_attn" or evidence.places.class_of(layer) != "TransformerDecoderLayer"):
            continue
        if attention.before == (length, length) and attention.numbers[0] > VISIBLE:
            return attention.module, row
    return None


def _goes_both_ways(evidence: Evidence, length: int) -> tuple[str, int] | None:
    """The first bidirectional recurrence, or convolution over this length that is padded on both sides; and the row 0.

    None without either.
    """
    places = evidence.places
    for call in places.calls:
        name = places.torch_class_of(call.module)
        if name in RECURRENT and places.option(call.module, "bidirectional") == "True":
            return call.module, 0
        if name == "Conv1d" and _keeps_length(call, length) and _is_wide(evidence, call.module):
            return call.module, 0
    return None


def _keeps_length(call: Call, length: int) -> bool:
    """Whether a convolution takes and gives this length, so that it pads both sides.

    A causal one pads one side before the convolution, which then takes a longer sequence.
    """
    return [info.shape[-1] for info in (*call.inputs, *call.outputs) if info.shape] == [length, length]


def _is_wide(evidence: Evidence, module: str) -> bool:
    """Whether a convolution goes over more than one place, and none of its weights is zero, as masked ones are."""
    weight = evidence.find(module, None, "param", "weight")
    kernel = evidence.places.option(module, "kernel_size")
    return weight is not None and kernel not in {None, "(1,)"} and not np.nanmax(evidence.zero_shares[:, weight]) > 0


def answers_in_inputs(evidence: Evidence) -> Iterator[Finding]:
    """The answer at each place is the very token that the model is given there.

    An autoencoder may have such answers on purpose. Without other inputs of tokens, the model is no autoencoder if
    its attention over these tokens is causal, or if a single recurrence goes one way over them. With others, such as
    those of a translation, a decoder should be given the token before each answer.
    """
    yield from target_in_inputs(evidence)
    inputs = [tokens for tokens in _inputs(evidence) if tokens.most > 1]
    given = [tokens for tokens in inputs if tokens.same >= ALL]
    if not given:
        return
    others = [one for one in inputs if one not in given]
    is_fault = not _shifts_within(evidence, given) and (
        _is_causal(evidence, given) or _recurs_over_tokens(evidence)
        if not others
        else all(max(tokens.following, tokens.same) < ALIKE for tokens in others)
    )
    if not is_fault:
        yield from _hidden_left_out(evidence, given)
    else:
        yield finding(
            evidence,
            "answers-in-inputs",
            "warning",
            at="",
            rows=range(len(evidence)),
            numbers={"share": given[0].same},
            text=f"The right answer at each place is the token of `{given[0].path}` at the same place: the model is "
            "given the answers, and only has to copy them.",
            advice="Shift them: hand the model the tokens without the last one, and ask for those without the first "
            "one, `model(tokens[:, :-1])` and `tokens[:, 1:]`.",
        )


def _hidden_left_out(evidence: Evidence, given: list[_Input]) -> Iterator[Finding]:
    """Report a loss that leaves out the places whose token is hidden by that of a mask, and asks for all others.

    Padding may be left out as well, but that is at the ends of sequences.
    """
    seen = [(row, hidden.numbers) for row, hidden in operations(evidence, "hidden") if hidden.module == given[0].path]
    if len(seen) < LEAST_ROWS:
        return
    for _, (left_out, with_mask, learned, between) in seen:
        if not HIDDEN <= left_out <= MOST_HIDDEN or min(with_mask, between) < MASKED or learned > 1 - ALL:
            return
    share = float(np.median([numbers[0] for _, numbers in seen]))
    yield finding(
        evidence,
        "answers-in-inputs",
        "warning",
        at="",
        rows=[row for row, _ in seen],
        numbers={"share": given[0].same, "hidden": share},
        text=f"The loss leaves out {share:.0%} of the places, those whose token is hidden by a mask, and asks for the "
        f"tokens of all others, which the model is given in `{given[0].path}` and need only copy.",
        advice="Ask for what is hidden: `labels[~is_masked] = -100`, and not `labels[is_masked] = -100`.",
    )


def _shifts_within(evidence: Evidence, inputs: list[_Input]) -> bool:
    """Whether the model puts a beginning before the rows of these sequences, and so may shift them by itself."""
    lengths = {one.length + more for one in inputs for more in (0, 1)}
    return any(one.before[0] in lengths for _, one in operations(evidence, "shift"))


def _is_causal(evidence: Evidence, inputs: list[_Input]) -> bool:
    """Whether there is attention over these sequences, and none of it sees later places.

    Attention over another length is that of an encoder, whose sequence the answers are not in.
    """
    lengths = {(one.length, one.length) for one in inputs}
    found: list[Operation] = [one for _, one in operations(evidence, "attention") if one.before in lengths]
    return bool(found) and all(one.numbers[0] <= VISIBLE for one in found)


def _recurs_over_tokens(evidence: Evidence) -> bool:
    """Whether there is one call of a recurrence, no attention, and it goes one way over what an embedding gives."""
    places = evidence.places
    recurrent = [number for number, call in enumerate(places.calls) if places.torch_class_of(call.module) in RECURRENT]
    if len(recurrent) != 1 or any(True for _ in operations(evidence, "attention")):
        return False
    if places.option(places.calls[recurrent[0]].module, "bidirectional") == "True":
        return False
    source = places.producer(recurrent[0])
    while source is not None and places.class_of(places.calls[source].module) in _EACH_PLACE:
        source = places.producer(source)
    return source is not None and places.class_of(places.calls[source].module) == "Embedding"


_EACH_PLACE = frozenset({"Dropout", "LayerNorm", "Linear", "ReLU"})
"""Classes of modules that compute each place from the same place only."""


def shifted_twice(evidence: Evidence) -> Iterator[Finding]:
    """The answer at each place is the token after the next one: targets that were shifted are shifted again."""
    seen: dict[str, list[tuple[int, float]]] = {}
    for row, found in operations(evidence, "second"):
        seen.setdefault(found.module, []).append((row, found.numbers[0]))
    for tokens in _inputs(evidence):
        known = seen.get(tokens.path, [])
        shares = [share for _, share in known]
        if tokens.most <= 1 or len(known) < LEAST_ROWS or min(shares) < ALL:
            continue
        if max(tokens.following, tokens.same) > ALIKE:
            continue
        yield finding(
            evidence,
            "targets-shifted-twice",
            "warning",
            at="",
            rows=[row for row, _ in known],
            numbers={"share": min(shares), "next": tokens.following},
            text=f"The right answer at each place is the token after the next one of `{tokens.path}`: the targets "
            "are shifted twice. This happens if the batch has shifted tokens, and the loss or the model shifts them "
            "again.",
            advice="Shift once: hand the same tokens as inputs and labels to a model that shifts, as those of Hugging "
            "Face do, or compare logits and shifted targets without leaving out a place of either.",
        )
        return


def padding_in_loss(evidence: Evidence) -> Iterator[Finding]:
    """Many of the answers that the loss counts are padding that follows padding."""
    rows = rows_with(evidence, lambda facts: bool(facts.tokens))
    shares = [max(answers.padding for answers in facts_at(evidence, row).tokens) for row in rows]
    if not any(shares):
        rows, shares = _trailing(evidence)
    if not any(shares) or not _are_answers_tokens(evidence, rows):
        yield from _labelled_padding(evidence)
        return
    if len(rows) < LEAST_ROWS or np.median(shares) < PADDED:
        return
    share = float(np.median(shares))
    yield _padding(
        evidence,
        rows,
        share,
        text=f"{share:.0%} of the right answers are padding that follows padding, and the loss counts them: the "
        "model is taught to continue padding, and its loss and accuracy look better than they are.",
        advice="Give the loss `ignore_index` with the token of padding. Or multiply the loss by a mask, and divide by "
        "the number of tokens that are left.",
    )


def _are_answers_tokens(evidence: Evidence, rows: list[int]) -> bool:
    """Whether most answers are tokens that the model is given next, or at the same place; else they are labels."""
    tokens = [one for row in rows for one in facts_at(evidence, row).tokens]
    return any(max(one.following, one.same) > ALIKE for one in tokens)


def _padding(
    evidence: Evidence, rows: list[int], share: float, *, text: str, advice: str, often: float = OFTEN_PADDED
) -> Finding:
    """The finding that this share of the answers is padding, which is a warning from `often` on."""
    return finding(
        evidence,
        "padding-in-loss",
        "warning" if share >= often else "info",
        at="",
        rows=rows,
        numbers={"share": share},
        text=text,
        advice=advice,
    )


def _labelled_padding(evidence: Evidence) -> Iterator[Finding]:
    """Report labels of padding, such as a 0 that is a class as well.

    Padding is a token that only ends sequences, some of them earlier than others, and has the same label everywhere.
    """
    seen = numbers_of(evidence, "ends")
    shares = [numbers[0] for _, numbers in seen]
    is_padding = all(numbers[1] == 0 and numbers[2] >= ALL for _, numbers in seen)
    if len(seen) < LEAST_ROWS or not is_padding or max(one[3] for _, one in seen) < ENDS or np.median(shares) < PADDED:
        return
    share = float(np.median(shares))
    yield _padding(
        evidence,
        [row for row, _ in seen],
        share,
        text=f"{share:.0%} of the answers are for a token that only ends sequences, as padding does. All of these have "
        "one label, and the loss counts them: loss and accuracy look better than they are, and that class is learned "
        "from padding.",
        advice="Give padding the label -100, which `cross_entropy` ignores, or multiply the loss by a mask and divide "
        "by the number of tokens that are left.",
        often=OFTEN_LABELLED,
    )


def _trailing(evidence: Evidence) -> tuple[list[int], list[float]]:
    """The rows, and the shares of the answers, of padding whose token no embedding names as its `padding_idx`.

    It is a token that only stands at the ends of sequences, at some more often than at others. Both lists are empty if
    there is none.
    """
    seen = numbers_of(evidence, "trailing")
    ends = [numbers[3] for _, numbers in seen]
    if not seen or max(ends) < ENDS or not all(numbers[1] == 0 and numbers[2] >= ALL for _, numbers in seen):
        return [], []
    return [row for row, _ in seen], [numbers[0] for _, numbers in seen]


def _inputs(evidence: Evidence) -> list[_Input]:
    """The inputs of tokens that embeddings take as they are, which labels that are handed to the model are not.

    Models of libraries never embed their `labels` as they are: they shift them for the decoder. Some, as mBART, move
    the last token to the beginning, so that what is embedded has the statistics of the labels.
    """
    rows = rows_with(evidence, lambda facts: bool(facts.tokens))
    if len(rows) < LEAST_ROWS:
        return []
    known: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        for answers in facts_at(evidence, row).tokens:
            known.setdefault(answers.path, []).append((answers.following, answers.same))
    found = []
    for path, shares in known.items():
        column = evidence.find("", 0, "input", path)
        if path == _LABELS and evidence.places.modules[""].class_path.startswith(LIBRARIES):
            continue
        if column is not None and _is_embedded(evidence, column):
            following, same = map(min, zip(*shares, strict=True))
            found.append(_Input(path, _length(evidence, column), following, same, _most(evidence, column)))
    return found


def _length(evidence: Evidence, column: int) -> int:
    """The second size of an input of two dimensions; 0 if it varies, or there are others."""
    info = evidence.places.tensor(evidence.series[column])
    return (info.shape[1] or 0) if info is not None and len(info.shape) == 2 else 0


def _most(evidence: Evidence, column: int) -> float:
    """The largest element of an input over all steps."""
    return float(np.nanmax(evidence.column("max", column), initial=0))


def _is_embedded(evidence: Evidence, column: int) -> bool:
    """Whether an embedding is given this input of the model: a tensor with the same statistics at all steps.

    Any module counts as an embedding that has a matrix `weight`, as torch's `Embedding`, and no other input. Where
    several inputs of the model have these statistics, as labels that are the tokens in reverse, it is known of all if
    there are more embeddings than others of these inputs.
    """
    inputs = [*evidence.of_kind("value", "input")]
    given = Counter((evidence.series[one].module, evidence.series[one].call) for one in inputs)
    same = [one for one in inputs if one != column and _are_alike(evidence, column, one)]
    others = sum(not evidence.series[one].module for one in same)
    series = ((one, evidence.series[one]) for one in same)
    takers = [one for one, each in series if given[each.module, each.call] == 1 and _has_matrix(evidence, each.module)]
    return len(takers) > others and not all(_goes_elsewhere(evidence, column, one) for one in takers)


def _are_alike(evidence: Evidence, column: int, other: int) -> bool:
    """Whether two tensors have the same statistics at all steps."""
    pairs = ((evidence.column(name, one) for one in (column, other)) for name in ("mean", "std", "count", "max"))
    return all(np.array_equal(first, second, equal_nan=True) for first, second in pairs)


def _goes_elsewhere(evidence: Evidence, column: int, other: int) -> bool:
    """Whether the outermost call around the series `other` takes inputs of the model, but not the one of `column`.

    Then `other` is another tensor with equal statistics, such as the same sequence in reverse.
    """
    graph, calls = evidence.places.graph, evidence.places.calls
    series = evidence.series[other]
    number = next((at for at, one in enumerate(calls) if (one.module, one.call) == (series.module, series.call)), None)
    if graph is None or number is None:
        return False
    while calls[number].parent not in {0, None}:
        number = calls[number].parent or 0
    nodes = graph.nodes
    sources = [nodes[edge.source] for edge in graph.edges if nodes[edge.target].call == number]
    own = [node for node in sources if node.kind == "input" and node.inside == 0]
    given = {node.tensor.path for node in own if node.tensor is not None}
    return bool(given) and evidence.series[column].path not in given


def _has_matrix(evidence: Evidence, module: str) -> bool:
    """Whether a module has a parameter `weight` of two dimensions."""
    column = evidence.find(module, None, "param", "weight")
    info = None if column is None else evidence.places.tensor(evidence.series[column])
    return info is not None and len(info.shape) == 2
