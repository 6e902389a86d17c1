"""What pages show of a source: a chain of tensors, a selection, and the links. One thread computes, many ask.

A change only notes what is wanted. The model's own thread computes what follows from it, part by part, and publishes
each part when it is there. A newer change ends a computation that is under way.
"""

from __future__ import annotations

import atexit
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from secrets import randbelow
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from torchgraph_explorer.console import reason
from torchgraph_explorer.errors import NotFoundError, OptionError, TorchgraphError
from torchgraph_explorer.exploring.case import Array, as_array
from torchgraph_explorer.exploring.changes import edited, region, target_of
from torchgraph_explorer.exploring.grouping import Grouping, by_default
from torchgraph_explorer.exploring.products import prepare
from torchgraph_explorer.exploring.session import Target
from torchgraph_explorer.exploring.source import NO_MODEL, Source, TensorFacts
from torchgraph_explorer.server.flow import Links

MOST_ALONE = 600
"""Elements of a tensor that are linked one by one, if nothing else is chosen."""

MOST_GROUPS = 4096
"""Groups of a tensor that are linked."""

SECONDS_UNASKED = 5.0
"""Links that would take longer are computed only if they are asked for."""

SECONDS_TO_SETTLE = 0.15
"""After an edit, further ones are waited for so long."""

SECONDS_BETWEEN_LOOKS = 1.0
"""How often it is looked whether Python code has edited the inputs, or changed the model."""

SECONDS_TO_END = 10.0
"""How long closing waits for a computation to end."""

LONGEST_CHAIN = 12

MOST_WORDS = 4096
"""Tokens of a tensor whose words are shown."""

MOST_FOUND = 20
"""Tokens that a search for a word finds."""

FILE_NAME = re.compile(r"[\w-][\w.-]{0,99}\.npz", re.ASCII)

Key: TypeAlias = object


@dataclass(frozen=True)
class Wanted:
    """What pages want to see.

    Attributes:
        chain: Names of tensors, in the order of execution.
        selection: A tensor of the chain and elements of it, as a page gives them; None without.
        target: The name of the target, and the target; None for the loss.
        dims: The dimensions by which the elements of a tensor are grouped in links, by name, where that was chosen.
        asked: Keys of links that are computed however long that takes.
        dropped: Keys of links whose computation was cancelled.
    """

    chain: tuple[str, ...] = ()
    selection: tuple[str, Any] | None = None
    target: tuple[str, Target | None] = ("loss", None)
    dims: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    asked: frozenset[Key] = frozenset()
    dropped: frozenset[Key] = frozenset()


@dataclass(frozen=True)
class Part:
    """A part of what is shown.

    Attributes:
        key: What it was computed from.
        stamp: Another number for each content.
        content: Arrays, or links; None if there is a fault.
        fault: Why it is not there.
    """

    key: Key
    stamp: int
    content: Any = None
    fault: str | None = None


class Superseded(Exception):
    """Something newer is wanted, or the computation was cancelled."""


class TooLongError(TorchgraphError):
    """Links take long, and were not asked for."""


class Desk:
    """A source and what is wanted of it (a `server.flow.FlowSource`)."""

    def __init__(self, source: Source, *, folder: Path, on_end: Callable[[], object] = lambda: None) -> None:
        """Show `source`; cases are saved in `folder`. `on_end` is called when a page ends the session."""
        self._source, self._folder, self._on_end = source, folder, on_end
        self._news = threading.Condition()
        self._wanted, self._facts = Wanted(), list[TensorFacts]()
        self._parts: dict[str, Part] = {}
        self._version = randbelow(1 << 40)  # a program that is started again at the same address has others
        self._generation = self._stamp = 0
        self._done = -1
        self._aimed: Target | None = None
        self._edited_at = 0.0
        self._busy: dict[str, object] | None = None
        self._values = ("", "")
        self._words: Mapping[str, list[str]] = {}
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="torchgraph-flow", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # a page in a notebook may be open until then

    def close(self) -> None:
        """Compute no more. Waits a while for what is under way: torch must not be at work when the process ends."""
        atexit.unregister(self.close)
        with self._news:
            self._is_closed = True
            self._generation += 1
            self._news.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(SECONDS_TO_END)

    def state(self, *, known: int, seconds: float) -> Mapping[str, object]:
        """Everything but numbers; see http_api.md."""
        with self._news:
            self._news.wait_for(lambda: self._version != known or self._is_closed, seconds)
            wanted, edits = self._wanted, self._source.edits
            return {
                "version": self._version,
                "title": self._source.title,
                "tensors": [
                    {"name": one.name, "shape": one.shape, "dtype": one.dtype, "gradient": one.has_gradient}
                    for one in self._facts
                ],
                "inputs": [] if edits is None else list(edits.original),
                "chain": wanted.chain,
                "dims": [list(self._grouping(wanted, name).dims) for name in wanted.chain],
                "selection": None
                if wanted.selection is None
                else {"tensor": wanted.selection[0], "elements": wanted.selection[1]},
                "target": {"name": wanted.target[0], "now": self._values[0], "before": self._values[1]},
                "edits": None
                if edits is None
                else {"undoable": edits.undoable, "redoable": edits.redoable, "edited": edits.is_edited},
                "parts": {
                    name: {"stamp": part.stamp, "fault": part.fault, "isThere": part.content is not None}
                    for name, part in self._parts.items()
                },
                "words": self._words,
                "hasWords": self._source.vocabulary is not None,
                "estimates": [self._source.is_estimate(a, b) for a, b in pairs(wanted.chain)],
                "isCurrent": self._done == self._generation,
                "busy": self._busy,
            }

    def tensor(self, name: str, quantity: str, when: str) -> Array:
        """The numbers of a tensor of the chain."""
        part = "selection" if quantity == "contribution" else "tensors"
        arrays: Mapping[object, Array] = self._content(part)
        key = name if quantity == "contribution" else (name, quantity, "now" if when == "difference" else when)
        if key not in arrays:
            raise NotFoundError(
                f"There is no {quantity} of {name!r:.80}. No gradient can reach it, or it is not there yet."
            )
        found = arrays[key]
        if when != "difference" or quantity == "contribution":
            return found
        with np.errstate(invalid="ignore"):
            return np.asarray(found.astype(np.float64) - arrays[name, quantity, "before"])

    def links(self, pair: int) -> Links:
        """The links between tensor `pair` of the chain and the next one."""
        found: Links = self._content(f"links{pair}")
        return found

    def words(self, text: str) -> Sequence[tuple[int, str]]:
        """Tokens whose words are like `text`, the most like it first."""
        vocabulary = self._source.vocabulary
        return [] if vocabulary is None else vocabulary.search(text, most=MOST_FOUND)

    def _content(self, part: str) -> Any:
        with self._news:
            found = self._parts.get(part)
        if found is None or found.content is None:
            raise NotFoundError((found and found.fault) or "It is not computed yet.")
        return found.content

    def change(self, what: str, arguments: Mapping[str, Any]) -> Mapping[str, object]:
        """Note what is wanted now."""
        act = CHANGES.get(what)
        if act is None:
            raise NotFoundError(f"There is no change {what!r:.40}. Changes are {', '.join(CHANGES)}.")
        act(self, arguments)
        return {"version": self._version}

    # What changes do. Each is called in a thread of the server.

    def _choose_chain(self, arguments: Mapping[str, Any]) -> None:
        names = [str(name) for name in arguments["names"]]
        order = {one.name: i for i, one in enumerate(self._facts)}
        unknown = [name for name in names if name not in order]
        if unknown or not 1 < len(set(names)) <= LONGEST_CHAIN:
            raise OptionError(f"A chain has 2 to {LONGEST_CHAIN} different tensors; unknown are {unknown!r:.80}.")
        chain = tuple(sorted(set(names), key=order.__getitem__))
        keeps = self._wanted.selection is not None and self._wanted.selection[0] in chain
        self._want(chain=chain, **({} if keeps else {"selection": None}))

    def _select(self, arguments: Mapping[str, Any]) -> None:
        if arguments.get("tensor") is None:
            self._want(selection=None)
            return
        name, elements = str(arguments["tensor"]), arguments["elements"]
        if name not in self._wanted.chain:
            raise OptionError(f"{name!r:.80} is not in the chain.")
        for one in elements:
            region(one, self._fact(name).shape)
        self._want(selection=(name, elements))

    def _choose_target(self, arguments: Mapping[str, Any]) -> None:
        self._want(target=target_of(arguments))

    def _choose_dims(self, arguments: Mapping[str, Any]) -> None:
        name, dims = str(arguments["tensor"]), tuple(int(dim) for dim in arguments["dims"])
        grouping = Grouping(self._fact(name).shape, dims)
        if grouping.count > MOST_GROUPS:
            raise OptionError(f"{name!r} would have {grouping.count:,} groups; at most {MOST_GROUPS:,} are linked.")
        self._want(dims={**self._wanted.dims, name: dims})

    def _edit(self, arguments: Mapping[str, Any]) -> None:
        edits = self._source.edits
        if edits is None:
            raise OptionError(f"{NO_MODEL}, so that its input cannot be edited.")
        kind = arguments["kind"]
        if kind in ("undo", "redo", "reset"):
            getattr(edits, kind)()
        else:
            name = str(arguments["tensor"])
            if name not in edits.original:
                raise OptionError(
                    f"{name!r:.80} is not an input. The inputs are {', '.join(map(repr, edits.original))}."
                )
            edits.replace(name, edited(edits.now[name], kind, arguments))
        self._edited_at = time.monotonic()
        self._want()

    def _ask_links(self, _arguments: Mapping[str, Any]) -> None:
        self._want(asked=self._links_keys(self._wanted), dropped=frozenset())

    def _cancel(self, _arguments: Mapping[str, Any]) -> None:
        self._want(dropped=self._links_keys(self._wanted))

    def _save(self, arguments: Mapping[str, Any]) -> None:
        name = str(arguments["name"])
        if FILE_NAME.fullmatch(name) is None:
            raise OptionError(
                f"{name!r:.80} is not a file name. Pass letters, digits, '.', '-' and '_', ending in .npz."
            )
        self._source.case().save(self._folder / name)

    def _end(self, _arguments: Mapping[str, Any]) -> None:
        self._on_end()

    def _want(self, **changed: Any) -> None:
        with self._news:
            self._wanted = replace(self._wanted, **changed)
            self._generation += 1
            self._version += 1
            self._news.notify_all()

    # What is computed. All of it in the model's thread.

    def _work(self) -> None:
        state = None
        while True:
            with self._news:
                self._news.wait_for(lambda: self._generation != self._done or self._is_closed, SECONDS_BETWEEN_LOOKS)
                if self._is_closed:
                    return
            now = self._state()  # waits for what other code has asked the source
            with self._news:
                if self._generation == self._done:
                    if now == state:
                        continue
                    self._generation += 1  # the inputs or the model were changed by other code
                generation, state = self._generation, now
            try:
                self._wait_for_edits(generation)
                self._compute(generation)
            except Superseded:
                continue
            except Exception as fault:  # ours; the page must not wait for ever
                self._set("model", (), None, reason(fault))
            self._finish(generation)
            with suppress(Exception):  # it only saves time; what needs it says what fails, and computes without it
                prepare()

    def _state(self) -> object:
        """The source's state; None if it cannot be told, and then what is computed says why."""
        with suppress(Exception):
            return self._source.state()
        return None

    def _finish(self, generation: int) -> None:
        with self._news:
            self._done, self._busy = generation, None
            self._version += 1
            self._news.notify_all()

    def _wait_for_edits(self, generation: int) -> None:
        while (left := self._edited_at + SECONDS_TO_SETTLE - time.monotonic()) > 0:
            with self._news:
                self._news.wait_for(lambda: self._generation != generation, left)
            self._require_newest(generation)

    def _compute(self, generation: int) -> None:
        if not self._facts or self._parts["model"].fault is not None:
            self._part("model", self._source.state(), self._look)
        self._require_newest(generation)
        wanted = self._wanted  # a page may change it at any moment, also back again
        if wanted.target[1] is not self._aimed:
            self._aimed = wanted.target[1]
            self._source.aim(self._aimed)
        self._part("tensors", (self._source.state(), wanted.chain), lambda: self._tensors(wanted))
        self._require_newest(generation)
        key = self._source.state(), wanted.chain, repr(wanted.selection)
        self._part("selection", key, lambda: self._selection(wanted))
        for pair in range(len(wanted.chain) - 1):
            self._require_newest(generation)
            self._compute_links(wanted, pair, generation)

    def _look(self) -> object:
        """The tensors of the first pass, and a chain of some of them."""
        facts = self._source.facts()
        with self._news:
            self._facts = facts
            self._wanted = replace(self._wanted, chain=self._wanted.chain or first_chain(facts))
        return ()

    def _tensors(self, wanted: Wanted) -> dict[object, Array]:
        found: dict[object, Array] = {}
        edits = self._source.edits
        is_edited = edits is not None and edits.now is not edits.original
        for name in wanted.chain:
            for when in ("now", "before") if is_edited else ("now",):
                found[name, "value", when] = as_array(self._source.value(name, when=when))
                if self._fact(name).has_gradient:
                    found[name, "gradient", when] = as_array(self._source.gradient(name, when=when))
        for key in [key for key in found if not is_edited]:
            found[(*key[:2], "before")] = found[key]  # type: ignore[index]
        self._values = self._source.target_values()
        self._words = self._spelled(wanted.chain, found)
        return found

    def _spelled(self, chain: Sequence[str], found: Mapping[object, Array]) -> dict[str, list[str]]:
        """The words of the tensors of whole numbers in `chain`."""
        vocabulary = self._source.vocabulary
        if vocabulary is None:
            return {}
        arrays = {name: found[name, "value", "now"] for name in chain}
        return {
            name: [vocabulary.spell(int(number)) for number in array.flat]
            for name, array in arrays.items()
            if array.dtype.kind in "iu" and array.size <= MOST_WORDS
        }

    def _selection(self, wanted: Wanted) -> dict[object, Array]:
        if wanted.selection is None:
            return {}
        name, elements = wanted.selection
        shape = self._fact(name).shape
        index = [region(one, shape) for one in elements]
        chain = [one for one in wanted.chain if self._fact(one).has_gradient]
        at = chain.index(name)
        parts = [*self._source.received(name, index, chain[:at]), *self._source.sent(name, index, chain[at + 1 :])]
        return dict(zip([*chain[:at], *chain[at + 1 :]], map(as_array, parts), strict=True))

    def _compute_links(self, wanted: Wanted, pair: int, generation: int) -> None:
        a, b = wanted.chain[pair : pair + 2]
        key, name = self._links_key(wanted, pair), f"links{pair}"
        if not (self._fact(a).has_gradient and self._fact(b).has_gradient):
            self._set(name, key, None, "No gradient can reach one of these tensors.")
            return
        if key in wanted.dropped:
            self._set(name, key, None, "Cancelled.")
            return
        by = self._grouping(wanted, a), self._grouping(wanted, b)
        began, is_asked = time.perf_counter(), key in wanted.asked

        def progress(done: int, count: int) -> None:
            self._require_newest(generation)
            seconds = (time.perf_counter() - began) * count / max(done, 1)
            if done and seconds > SECONDS_UNASKED and not is_asked:
                raise TooLongError(
                    f"These links take about {seconds:,.0f} s: a backward pass for each of {count:,} groups."
                )
            self._publish_busy({"what": f"Links from {a} to {b}", "done": done, "count": count})

        def compute() -> Links:
            flows, past = self._source.groups(a, b, by=by, progress=progress)
            return Links(as_array(flows), as_array(past))

        self._part(name, key, compute)

    def _part(self, name: str, key: Key, compute: Callable[[], object]) -> None:
        """Publish a part, unless it is there already."""
        known = self._parts.get(name)
        if known is not None and known.key == key and not (known.content is None and key in self._wanted.asked):
            return
        self._publish_busy({"what": name, "done": 0, "count": 0})
        content, fault = None, None
        try:
            content = compute()
        except Superseded:
            raise
        except TorchgraphError as wrong:
            fault = str(wrong)
        except Exception as wrong:  # of the user's model or loss, to be shown
            fault = reason(wrong)
        self._set(name, key, content, fault)

    def _set(self, name: str, key: Key, content: object, fault: str | None) -> None:  # noqa: PLR0917
        with self._news:
            known = self._parts.get(name)
            if known is not None and (known.key, known.fault, known.content is None) == (key, fault, content is None):
                return
            self._stamp += 1
            self._parts[name] = Part(key, self._stamp, content, fault)
            self._version += 1
            self._news.notify_all()

    def _publish_busy(self, busy: dict[str, object] | None) -> None:
        with self._news:
            if busy != self._busy:
                self._busy = busy
                self._version += 1
                self._news.notify_all()

    def _require_newest(self, generation: int) -> None:
        if self._generation != generation:
            raise Superseded

    def _links_keys(self, wanted: Wanted) -> frozenset[Key]:
        return frozenset(self._links_key(wanted, pair) for pair in range(len(wanted.chain) - 1))

    def _links_key(self, wanted: Wanted, pair: int) -> Key:
        a, b = wanted.chain[pair : pair + 2]
        return self._source.state(), a, b, self._grouping(wanted, a), self._grouping(wanted, b)

    def _grouping(self, wanted: Wanted, name: str) -> Grouping:
        shape = self._fact(name).shape
        dims = wanted.dims.get(name)
        return by_default(shape, MOST_ALONE) if dims is None else Grouping(shape, dims)

    def _fact(self, name: str) -> TensorFacts:
        found = next((one for one in self._facts if one.name == name), None)
        if found is None:
            raise NotFoundError(f"There is no tensor {name!r:.80}.")
        return found


CHANGES: Mapping[str, Callable[[Desk, Mapping[str, Any]], None]] = MappingProxyType(
    {
        "chain": Desk._choose_chain,
        "select": Desk._select,
        "target": Desk._choose_target,
        "dims": Desk._choose_dims,
        "edit": Desk._edit,
        "links": Desk._ask_links,
        "cancel": Desk._cancel,
        "save": Desk._save,
        "end": Desk._end,
    }
)


def pairs(chain: Sequence[str]) -> list[tuple[str, str]]:
    """Neighbours."""
    return list(pairwise(chain))


def first_chain(facts: Sequence[TensorFacts]) -> tuple[str, ...]:
    """The first input, some tensors that modules with weights return, and the last one that a gradient can reach.

    Of several tensors that a call returns, the first one: others, such as the last states of an LSTM, are often unused.
    """
    reached = [one for one in facts if one.has_gradient]
    calls: dict[str, TensorFacts] = {}
    for one in reached[1:-1]:
        if one.is_weighed:
            calls.setdefault(one.name.partition(":output")[0], one)
    within = list(calls.values())
    some = [within[round(i)] for i in np.linspace(0, len(within) - 1, min(3, len(within)))]
    return tuple(dict.fromkeys(one.name for one in [*facts[:1], *reached[:1], *some, *reached[-1:]]))
