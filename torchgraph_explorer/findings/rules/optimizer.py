"""Parameters that no optimizer has, or that are frozen in the midst of a network that is trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import Weight, dimensions
from torchgraph_explorer.findings.rules import participation
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.made import is_as_made, is_of_kind_made
from torchgraph_explorer.findings.rules.own_layers import TORCH
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, held, listed, named, quoted
from torchgraph_explorer.findings.rules.ties import is_standard_normal
from torchgraph_explorer.schema import EXTENT, Extent, Shape

HELD_SHARE, MADE_SHARE = 0.75, 0.5
"""Share of the elements of all weights from which on freezing them is taken for meant, although an optimizer has them,
or although they are as they were made."""

LEAST_STEPS = 100
"""Steps that the whole run must have before an optimizer that made no update is taken for forgotten."""

MOST_NAMES, MOST_GROUPS = 1000, 64
"""Names of a group, and groups of an update, that are recorded: of more, some may be missing."""

HELD = 0.25
"""Share of the recorded steps, up to the last one, at which they have to be frozen."""


def not_in_optimizer(evidence: Evidence) -> Iterator[Finding]:
    """Parameters get gradients, and no optimizer has them. Without that fact: weights that never change."""
    rows = rows_with(evidence, lambda one: one.without_optimizer is not None)
    if not rows:
        yield from _of_another_model(evidence)
        yield from participation.not_in_optimizer(evidence)
        return
    lists = {row: {*(facts_at(evidence, row).without_optimizer or ())} for row in rows}
    without = set().union(*lists.values()) - {name for row in rows for name in facts_at(evidence, row).written}
    modules: dict[str, list[str]] = {}
    for name in sorted(without):
        module, _, path = name.rpartition(".")
        is_never_held = all(name in lists[row] for row in _rows_with_gradient(evidence, module, path) if row in lists)
        if is_never_held and _gets_gradient(evidence, module, path) and not is_changed(evidence, module, path):
            modules.setdefault(module, []).append(path)
    remade = _remade(evidence, rows)
    yield from _made_in_forward(evidence, remade)
    yield from _unregistered(evidence, rows, without)
    yield from _never_stepped(evidence, rows, without)
    modules = {module: paths for module, paths in modules.items() if module not in remade}
    order = evidence.places.order
    trained = {
        name.rpartition(".")[0] for row in rows for group in facts_at(evidence, row).groups for name in group.parameters
    }
    if not modules or not trained:
        return
    is_backbone = max(map(order, modules)) < min(map(order, trained)) and not _are_around(modules, trained)
    unfrozen = {module for module, paths in modules.items() if _was_unfrozen(evidence, module, paths, rows)}
    for module in sorted(modules, key=order):
        names = listed(modules[module])
        was_replaced = _was_replaced(evidence, module, modules[module], rows)
        full = {f"{module}.{path}".removeprefix(".") for path in modules[module]}
        yield finding(
            evidence,
            "not-in-optimizer",
            "info" if is_backbone and not was_replaced and module not in unfrozen else "warning",
            at=module,
            rows=[row for row in rows if full & lists[row]],
            numbers={"parameters": len(modules[module]), "modules": len(modules), "trained_modules": len(trained)},
            text=f"No optimizer has {names} of {named(module)}: gradients come back, but the values never change."
            f"{_REPLACED if was_replaced else _UNFROZEN if module in unfrozen else ''}",
            advice="Give its parameters to the optimizer, after the module was made and put into the model. If it is "
            "frozen on purpose, set `requires_grad=False`: that saves computing its gradient.",
        )


def _never_stepped(evidence: Evidence, rows: list[int], without: set[str]) -> Iterator[Finding]:
    """Layers that an optimizer holds, but at a rate of zero, or none that makes an update, at all recorded steps.

    Not parameters of other modules: those of a search for architectures, say, may well be trained later.
    """
    groups = [group for row in rows for group in facts_at(evidence, row).groups]
    stepped = {name for group in groups for name in group.parameters}
    moved = {name for group in groups if group.learning_rate != 0 for name in group.parameters}
    is_known = all(len(group.parameters) < MOST_NAMES for group in groups) and all(
        len(facts_at(evidence, row).groups) < MOST_GROUPS for row in rows
    )
    if not moved or not is_known or len(rows) < LEAST_ROWS or int(evidence.steps[-1] - evidence.steps[0]) < LEAST_STEPS:
        return
    modules, others = dict[str, list[str]](), moved | without
    for weight in evidence.places.weights():
        of, info = weight
        if not of.class_path.startswith(TORCH) or not info.requires_grad or weight.name in others:
            continue
        if _gets_gradient(evidence, of.name, info.path) and not is_changed(evidence, of.name, info.path):
            modules.setdefault(of.name, []).append(info.path)
    order = evidence.places.order
    layers = {of.name for of, _ in evidence.places.weights() if of.class_path.startswith(TORCH)}
    first = min((order(one) for one in {name.rpartition(".")[0] for name in moved} & layers), default=0)
    for module in sorted(modules, key=order):
        names = listed(modules[module])
        is_still = all(f"{module}.{path}".removeprefix(".") in stepped for path in modules[module])
        why = (
            "has a learning rate of zero for it at each recorded step"
            if is_still
            else "makes no update at any recorded step, while other optimizers do"
        )
        yield finding(
            evidence,
            "not-in-optimizer",
            "info" if is_still and max(map(order, modules)) < first else "warning",
            at=module,
            rows=rows,
            numbers={"parameters": len(modules[module]), "modules": len(modules)},
            text=f"The optimizer that has {names} of {named(module)} {why}. Gradients come back, but the values never "
            "change.",
            advice=f"{_RATE if is_still else 'Call `step()` of each optimizer.'} If it is frozen on purpose, set "
            "`requires_grad=False`: that saves computing its gradient.",
        )


_RATE = "Give its group a learning rate, and look at what the schedule gives to each group."


def _are_around(modules: Iterable[str], trained: set[str]) -> bool:
    """Whether each of `modules` has ones within it that are trained: parameters of its own were left out, no layers."""
    return all(any(one.startswith(f"{module}." if module else "") for one in trained) for module in modules)


def _remade(evidence: Evidence, rows: list[int]) -> dict[str, list[str]]:
    """By module: the parameters that each step that was looked at has made anew, and that no optimizer holds."""
    known = [facts_at(evidence, row) for row in rows]
    found = Counter(name for one in known for name in one.remade if name in (one.without_optimizer or ()))
    modules: dict[str, list[str]] = {}
    for name, count in found.items():
        if count >= LEAST_ROWS:
            module, _, path = name.rpartition(".")
            modules.setdefault(module, []).append(path)
    return modules


def _made_in_forward(evidence: Evidence, modules: dict[str, list[str]]) -> Iterator[Finding]:
    for module in sorted(modules, key=evidence.places.order):
        names = listed(modules[module])
        yield finding(
            evidence,
            "not-in-optimizer",
            "warning",
            at=module,
            rows=rows_with(evidence, lambda one: bool(one.remade)),
            numbers={"parameters": len(modules[module])},
            text=f"The forward pass makes {names} of {named(module)} anew each time. No optimizer has what it makes, "
            "and the gradient is lost with it.",
            advice="Make it once, in `__init__` and before the optimizer, and only use it in `forward`.",
        )


def _unregistered(evidence: Evidence, rows: list[int], without: set[str]) -> Iterator[Finding]:
    """Parameters that modules keep where torch does not find them, that get gradients, and that no optimizer has."""
    known = {(one.module.name, one.info.path) for one in evidence.places.weights()}
    known |= {(one.module, one.path) for one in evidence.series if one.role == "param"}
    counts = Counter(name for row in rows for name in facts_at(evidence, row).without_optimizer or ())
    owners: dict[str, list[str]] = {}
    for name in sorted(without - {f"{module}.{path}".removeprefix(".") for module, path in known}):
        if counts[name] >= LEAST_ROWS:
            owners.setdefault(_owner(evidence, name), []).append(name)
    for owner in sorted(owners, key=evidence.places.order):
        names = owners[owner]
        is_one = len(names) == 1
        yield finding(
            evidence,
            "not-in-optimizer",
            "warning",
            at=owner,
            rows=[row for row in rows if names[0] in (facts_at(evidence, row).without_optimizer or ())],
            numbers={"parameters": len(names)},
            text=f"{named(owner)} uses {listed(names)} without registering {'it' if is_one else 'them'}: "
            f"{'it gets' if is_one else 'they get'} gradients, but {'is' if is_one else 'are'} not in `parameters()`, "
            f"and no optimizer has {'it' if is_one else 'them'}.",
            advice="Keep modules in an `nn.ModuleList` or `nn.ModuleDict` instead of a list or dictionary, and tensors "
            "as `nn.Parameter`. Then make the optimizer.",
        )


def _owner(evidence: Evidence, name: str) -> str:
    """The innermost module that keeps a parameter, by its name, such as `block.layers[0].weight`."""
    path = name.partition("[")[0]
    while path and (path := path.rpartition(".")[0]) not in evidence.places.modules:
        pass
    return path


def _of_another_model(evidence: Evidence) -> Iterator[Finding]:
    """An optimizer steps that has nothing of the model, but unused parameters of the shapes of the model's."""
    rows = rows_with(evidence, lambda one: bool(one.orphans) and not one.groups)
    if len(rows) < LEAST_ROWS or not participation.all_unchanged(evidence):
        return
    own = Counter(one.info.shape for one in evidence.places.weights())
    orphans = Counter[Shape](facts_at(evidence, rows[-1]).orphans)
    if orphans - own or orphans.total() < LIKE_SHARE * own.total():
        return
    yield finding(
        evidence,
        "not-in-optimizer",
        "error",
        at="",
        rows=rows,
        numbers={"parameters": own.total(), "held_instead": orphans.total()},
        text="No optimizer has a parameter of the model: gradients come back, but the values never change. The "
        "optimizer that steps holds parameters of the same shapes, which are not in the model and get no gradient: it "
        "was made before the model was made again, copied, or given other parameters.",
        advice="Make the optimizer after the last statement that makes, copies, loads or converts the model.",
    )


LIKE_SHARE = 0.5
"""So many of the model's parameters have one of the same shape in an optimizer that was made for an earlier model."""

_REPLACED = (
    " It holds parameters like these instead, which are not in the model and get no gradient: it was made before the "
    "module was replaced."
)


_UNFROZEN = (
    " They got no gradients at first, as frozen parameters do, and were unfrozen later. An optimizer that was given "
    "only the trainable parameters before then does not have them."
)


def _was_unfrozen(evidence: Evidence, module: str, paths: list[str], rows: list[int]) -> bool:  # noqa: PLR0917
    """Whether gradients came to none of these of `module` at first, while it was called, as others were trained."""
    first = min((_rows_with_gradient(evidence, module, path)[:1] for path in paths), default=[])
    inputs = [number for number in evidence.of_kind("value", "input") if evidence.series[number].module == module]
    is_called = [row for row in rows if first and row < first[0] and evidence.is_there[row, inputs].any()]
    return len(is_called) >= LEAST_ROWS


def _was_replaced(evidence: Evidence, module: str, paths: list[str], rows: list[int]) -> bool:  # noqa: PLR0917
    """Whether an optimizer holds an unused matrix for each of these of `module`: of its shape, but for one size."""
    orphans = Counter(shape for row in rows[-1:] for shape in facts_at(evidence, row).orphans)
    params = evidence.places.modules[module].params if module in evidence.places.modules else ()
    shapes = [one.shape for one in params if one.path in paths and len(one.shape) > 1]
    for shape in shapes:
        like = next((one for one in orphans if _are_alike(one, shape)), None)
        if like is None:
            return False
        orphans -= Counter([like])
    return bool(shapes)


def _are_alike(first: Shape, second: Shape) -> bool:
    """Whether two shapes have the same sizes, or all but one: a head may have been replaced by one of more classes."""
    return len(first) == len(second) and sum(one != other for one, other in zip(first, second, strict=True)) <= 1


def _rows_with_gradient(evidence: Evidence, module: str, path: str) -> list[int]:
    """The rows at which a parameter had a gradient. Before, it may not have been made, or was frozen.

    A gradient that was left when it was frozen stays the same: such rows do not count, but for zeros.
    """
    column = evidence.find(module, None, "param", path, "grad")
    if column is None:
        return []
    rows = np.flatnonzero(evidence.is_there[:, column])
    known = np.stack([evidence.column(name, column)[rows] for name in ("l2_norm", "mean", "max")])
    is_left = np.append((known[:, 1:] == known[:, :-1]).all(axis=0), False) & (known[0] > 0)
    first = int(np.argmin(is_left)) if len(rows) else 0
    found: list[int] = rows[first + 1 if first else 0 :].tolist()
    return found


def _gets_gradient(evidence: Evidence, module: str, path: str) -> bool:
    column = evidence.find(module, None, "param", path, "grad")
    if column is None:
        return False
    peaks = evidence.peaks[:, column]
    return bool(np.nanmedian(peaks) > 0) if np.isfinite(peaks).any() else False


def is_changed(evidence: Evidence, module: str, path: str, *, since: int = 0) -> bool:
    """Whether the parameter's values differ between recorded steps, from the row `since` on.

    Statistics of a sample tell nothing: of a large parameter, the first and the last fingerprint are compared.
    """
    column = evidence.find(module, None, "param", path)
    rows = np.array([]) if column is None else since + np.flatnonzero(evidence.is_there[since:, column])
    if column is None or len(rows) < 2:
        return False
    if (evidence.column("count", column)[rows] != evidence.column("sampled", column)[rows]).any():
        first, last = (evidence.fingerprints(int(row))[column] for row in (rows[0], rows[-1]))
        return bool(first != last and (first & last & np.uint64(EXTENT)) == Extent.ALL)
    return any(len(np.unique(evidence.column(name, column)[rows])) > 1 for name in ("min", "max", "mean", "l2_norm"))


def frozen_by_accident(evidence: Evidence) -> Iterator[Finding]:
    """Frozen weights behind ones that are trained, which an optimizer has, or which are as they were made."""
    rows = rows_with(evidence, lambda one: one.frozen_in_optimizer is not None)
    if len(rows) < LEAST_ROWS:
        return
    places = evidence.places
    weights = [one for one in places.weights() if dimensions(one.info) > 1 and one.module.name in places.called]
    trained = [one for one in weights if _gets_gradient(evidence, one.module.name, one.info.path)]
    layers = [one for one in trained if one.module.class_path.startswith(TORCH)]  # and not a prompt, or an image
    first = min((places.order(one.module.name) for one in layers), default=None)
    if first is None:
        return
    are_trained = {(one.module.name, one.info.path) for one in trained}
    frozen = [
        one for one in weights if (one.module.name, one.info.path) not in are_trained and not one.info.requires_grad
    ]
    share = sum(one.size for one in frozen) / sum(one.size for one in weights)
    new = _new_behind_others(evidence, frozen, first)
    for one in frozen:
        if not one.module.class_path.startswith(TORCH):  # its author may well have made a table or a mask
            continue
        if _is_table(evidence, one):
            continue
        is_behind = places.order(one.module.name) > first
        seen = _frozen_rows(evidence, one, rows, share) if is_behind else rows if one in new else None
        if seen is None:
            continue
        yield finding(
            evidence,
            "frozen-by-accident",
            "warning",
            at=one.module.name,
            rows=seen,
            numbers={"frozen_share": share, "trained": len(trained)},
            text=f"`{quoted(one.info.path)}` of {named(one.module.name)} has `requires_grad=False` and never changes, "
            f"{'while layers before it are trained' if is_behind else _NEW}.",
            advice="Set `requires_grad_(True)` for it. If it is frozen on purpose, do not give it to the optimizer.",
        )


_NEW = (
    "although its weights are those of a new layer: the frozen layers before it have trained weights, and the layers "
    "after it are trained"
)


def _new_behind_others(evidence: Evidence, frozen: list[Weight], first: int) -> list[Weight]:
    """The frozen layers that are as they were made, behind all frozen ones that are not, and before all trained ones.

    So it is where what freezes a backbone takes a part of the new head with it.
    """
    order = evidence.places.order
    known = [one for one in frozen if is_of_kind_made(evidence, one)]
    others = [order(one.module.name) for one in known if not is_as_made(evidence, one)]
    new = [one for one in known if max(others, default=first) < order(one.module.name) < first]
    return [] if any(is_changed(evidence, one.module.name, one.info.path) for one in new) else new


def _is_table(evidence: Evidence, weight: Weight) -> bool:
    """Whether it is an embedding of other numbers than torch gives it: positions of sines, or vectors of words."""
    module = weight.module.name
    column = evidence.find(module, None, "param", weight.info.path)
    is_embedding = "Embedding" in evidence.places.class_of(module)
    return is_embedding and (column is None or not is_standard_normal(evidence, column))


def _frozen_rows(evidence: Evidence, weight: Weight, rows: list[int], share: float) -> list[int] | None:  # noqa: PLR0917
    """The rows up to the last one at which the weight is frozen although that cannot be meant; None without any."""
    module, path = weight.module.name, weight.info.path
    name = f"{module}.{path}" if module else path
    flags = np.array([name in (facts_at(evidence, row).frozen_in_optimizer or ()) for row in rows])
    kept = held(flags, share=HELD)
    if kept is not None and share < HELD_SHARE:  # a teacher that follows by itself may well be frozen for it
        return None if is_changed(evidence, module, path, since=rows[kept[0]]) else [rows[at] for at in kept]
    is_new = share < MADE_SHARE and is_as_made(evidence, weight)
    return rows if is_new and not is_changed(evidence, module, path) else None
