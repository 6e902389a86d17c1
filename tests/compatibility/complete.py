"""P2: every module call is in the graph, every tensor a series, and the edges are those which the data took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch

from tests.compatibility.case import Case, Training
from tests.compatibility.observed import Forward, Observer, Seen, inputs_of, observing
from tests.compatibility.same_record import check_inline
from tests.compatibility.training import Run, run
from tests.compatibility.walk import tensors_in
from tests.listening import Listening
from torchgraph_explorer.capture.forward_passes import PASSES
from torchgraph_explorer.schema import Frame, ModuleGraph

MOST = 12
"""Findings that are told."""


def check_complete(case: Case) -> None:
    """Raise an AssertionError that tells what is missing from the record."""
    observers: list[Observer] = []

    def around(training: Training, _watcher: object) -> Any:
        observer, context = observing(training)
        observers.append(observer)
        return context

    done = run(case, watched=True, around=around)
    missing = [f"module {name!r} is scripted and takes no hooks" for name in observers[0].unhookable]
    missing += _missing(done, observers[0].forwards, case.first)
    if case.traced and done.heard.graphs and not missing:
        missing = list(_unreached(case, done, observers[0].forwards))
    assert not missing, "not complete:\n  " + "\n  ".join(dict.fromkeys(missing[:MOST]))
    if case.options.get("compiled") == "inline":  # the hooks of this oracle would be compiled, too
        check_inline(case)


def _missing(done: Run, forwards: list[Forward], first_step: int) -> Iterator[str]:
    heard = done.heard
    yield from (f"warned: {each}" for each in done.said)
    yield from (f"note at the end: {each}" for each in heard.finished.notes if each not in done.said)
    if not forwards:
        return
    if not heard.frames:
        yield f"{len(forwards)} forward passes, no frame"
        return
    if heard.frames[0].step != first_step:
        yield f"the first frame is of step {heard.frames[0].step}"
    known: set[Any] = set()
    steps = _by_step(forwards)
    bounds = [frame.step - first_step for frame in heard.frames] + [max(steps) + 1]
    for at, (first, next_one) in enumerate(pairwise(bounds)):
        beyond = first + 1 if forwards[-1].updates else next_one
        passes = [one for step in range(first, beyond) for one in steps[step]]
        yield from _missing_in_step(heard, at, passes, known)
    yield from (fault for graph in heard.graphs for fault in _malformed(graph))


def _by_step(forwards: list[Forward]) -> dict[int, list[Forward]]:
    """The passes that are to be recorded, by step: by update if there were any, else by pass through the model."""
    steps: dict[int, list[Forward]] = {}
    passes = 0
    for forward in forwards:
        entrance = forward.calls[0].module
        passes += entrance == ""
        step = steps.setdefault(forward.updates if forwards[-1].updates else max(passes - 1, 0), [])
        if sum(one.calls[0].module == entrance for one in step) < PASSES or not forwards[-1].updates:
            step.append(forward)
    return steps


def _missing_in_step(heard: Listening, at: int, forwards: list[Forward], known: set[Any]) -> Iterator[str]:
    frame = heard.frames[at]
    calls = list(_numbered(forwards))
    recorded = heard.recorded(at)
    for seen, number in calls:
        for key in _expected(seen, number):
            if key not in recorded:
                yield f"step {frame.step}: no series {key}"
    for name, path in {key for forward in forwards for key in forward.parameters}:
        if (name, None, "param", path, "grad") not in recorded:
            yield f"step {frame.step}: no series {(name, None, 'param', path, 'grad')}"
    yield from _missing_in_graph(heard, frame, forwards, known)


def _expected(seen: Seen, number: int) -> Iterator[tuple[Any, ...]]:
    yield from ((seen.module, number, "input", path, "value") for path in seen.inputs)
    yield from ((seen.module, number, "output", path, "value") for path in seen.outputs or ())
    yield from ((seen.module, number, "output", path, "grad_norm") for path in seen.reached)


def _numbered(forwards: list[Forward]) -> Iterator[tuple[Seen, int]]:
    """Each call with its number among those of its module in the step."""
    counts: Counter[str] = Counter()
    for forward in forwards:
        for seen in forward.calls:
            yield seen, counts[seen.module]
            counts[seen.module] += 1


def _missing_in_graph(heard: Listening, frame: Frame, forwards: list[Forward], known: set[Any]) -> Iterator[str]:
    signature = tuple((seen.module, number, seen.parent) for seen, number in _numbered(forwards))
    if frame.graph is None:
        if signature in known:
            yield f"step {frame.step}: no graph, although the modules were called like this before"
        known.add(signature)
        return
    known.add(signature)
    graph = next(graph for graph in reversed(heard.graphs) if graph.id == frame.graph)
    expected, actual = list(_positions(forwards)), [(one.module, one.call, one.parent) for one in graph.calls]
    if actual != expected:
        yield f"step {frame.step}: its graph has the calls {actual}, not {expected}"
        return
    offset = 0
    for forward in forwards:
        yield from _missing_edges(graph, forward, offset)
        offset += len(forward.calls)


def _positions(forwards: list[Forward]) -> Iterator[tuple[str, int, int | None]]:
    """What `ModuleGraph.calls` must say: module, number and position of the parent."""
    offset, numbers = 0, [number for _, number in _numbered(forwards)]
    for forward in forwards:
        for i, seen in enumerate(forward.calls):
            yield seen.module, numbers[offset + i], None if seen.parent is None else seen.parent + offset
        offset += len(forward.calls)


def _malformed(graph: ModuleGraph) -> Iterator[str]:
    nodes = graph.nodes
    for edge in graph.edges:
        if not (0 <= edge.source < len(nodes) and 0 <= edge.target < len(nodes)):
            yield f"graph {graph.id}: {edge} has an end that is no node"
        elif nodes[edge.source].inside != nodes[edge.target].inside:
            yield f"graph {graph.id}: {edge} leads from one inside to another"
        elif edge.source == edge.target:
            yield f"graph {graph.id}: {edge} is a loop"
    shown = {node.call for node in nodes if node.kind == "call"}
    yield from (f"graph {graph.id}: no node for {one}" for i, one in enumerate(graph.calls) if i not in shown)


def _missing_edges(graph: ModuleGraph, forward: Forward, offset: int) -> Iterator[str]:
    """Edges along which gradient flows, as autograd tells, that are not drawn as such."""
    of_call = {node.call: i for i, node in enumerate(graph.nodes) if node.kind == "call"}
    placeholders: dict[tuple[Any, str], list[int]] = {}
    for i, node in enumerate(graph.nodes):
        if node.kind == "attached":
            return  # stands between calls, which this oracle does not know
        if node.kind in ("input", "output"):
            placeholders.setdefault((node.inside, node.kind), []).append(i)
    drawn = {(edge.source, edge.target) for edge in graph.edges if edge.gradient}
    for i, seen in enumerate(forward.calls):
        target = of_call[i + offset]
        for group in seen.needed:
            assert seen.parent is not None
            parent = seen.parent + offset
            ends = _ends(group, parent, of_call, placeholders, offset)
            if not any((end, target) in drawn for end in ends):
                yield f"no gradient edge to call {seen.module!r} from any of {_told(group, forward)}"
        for path, groups in seen.needed_by_outputs.items():
            targets = [
                n
                for n in placeholders.get((i + offset, "output"), [])
                if (tensor := graph.nodes[n].tensor) is not None and tensor.path == path
            ]
            for group in groups if targets else ():
                ends = _ends(group, i + offset, of_call, placeholders, offset)
                if not any((end, targets[0]) in drawn for end in ends):
                    yield f"no gradient edge to {path} of call {seen.module!r} from any of {_told(group, forward)}"


def _ends(group: set[int], parent: int, of_call: Any, placeholders: Any, offset: int) -> list[int]:
    return [
        node
        for label in group
        for node in (placeholders.get((parent, "input"), []) if label == -1 else [of_call[label + offset]])
    ]


def _told(group: set[int], forward: Forward) -> list[str]:
    return ["its inputs" if label == -1 else f"call {forward.calls[label].module!r}" for label in sorted(group)]


def _unreached(case: Case, done: Run, forwards: list[Forward]) -> Iterator[str]:
    """Outputs of the model which change when an input is poisoned, and which no edges lead back to that input."""
    graph = done.heard.graphs[0]
    if [one.module for one in graph.calls].count("") != 1 or done.heard.frames[0].graph != graph.id:
        return
    for sources, target in _poisoned(case):
        if not any(_leads(graph, source, target) for source in sources):
            yield f"{target} is computed from {sources[0]}, and no edges lead there"


def _leads(graph: ModuleGraph, source: str, target: str) -> bool:
    inside = {
        (node.kind, node.tensor.path): i
        for i, node in enumerate(graph.nodes)
        if node.inside == 0 and node.kind in ("input", "output") and node.tensor is not None
    }
    if ("output", target) not in inside or ("input", source) not in inside:
        return False
    sources: dict[int, set[int]] = {}
    for edge in graph.edges:
        sources.setdefault(edge.target, set()).add(edge.source)
    todo, seen = [inside["output", target]], set()
    while todo:
        here = todo.pop()
        seen.add(here)
        todo += sources.get(here, set()) - seen
    return inside["input", source] in seen


class _Enough(Exception):
    """The first call of the model was found."""


def _first_call(case: Case, poison: str | None) -> Any:
    """What the model returns in its first call, with one of its inputs filled with NaN."""
    found: list[Any] = []

    def around(training: Training, _watcher: object) -> Any:
        def enter(_module: Any, args: Any, kwargs: Any) -> None:
            for path, tensor in inputs_of(args, kwargs):
                if path == poison:
                    with torch.no_grad():
                        tensor.detach().fill_(float("nan"))

        def leave(_module: Any, args: Any, kwargs: Any, output: Any) -> None:
            inputs = [path for path, tensor in inputs_of(args, kwargs) if tensor.is_floating_point()]
            outputs = {
                f"output{path}": bool(tensor.detach().isnan().any())
                for path, tensor in tensors_in(output)
                if tensor.layout == torch.strided and not tensor.is_nested and tensor.is_floating_point()
            }
            found.append((inputs, outputs, twins(args, kwargs)))
            raise _Enough

        model = training.inner or training.model
        model.register_forward_pre_hook(enter, with_kwargs=True, prepend=True)
        model.register_forward_hook(leave, with_kwargs=True)
        training.optimizers = ()
        return _Nothing()

    try:
        run(Case(case.theme, case.name, case.make, steps=1), watched=False, around=around)
    except _Enough:
        pass
    except (RuntimeError, ValueError, NotImplementedError):  # the model checks its input, and will not be poisoned
        return [], {}, {}
    return found[0] if found else ([], {}, {})


class _Nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def _poisoned(case: Case) -> Iterator[tuple[list[str], str]]:
    """Pairs of input and output; inputs that are one tensor are one group."""
    inputs, healthy, same = _first_call(case, None)
    for source in inputs:
        _, ill, _ = _first_call(case, source)
        yield from ((same[source], target) for target in healthy if ill.get(target) and not healthy[target])


def twins(args: Any, kwargs: Any) -> dict[str, list[str]]:
    """For each input, all the paths at which the same tensor is given."""
    found = inputs_of(args, kwargs)
    return {path: [other for other, twin in found if twin is tensor] for path, tensor in found}
