"""Finds parameters that no optimizer has, or that are frozen in the midst of a network that is trained.

The evidence is the names that the live training recorded: of parameters without an optimizer, frozen ones, and those of
the optimizers' groups; and whether their values change and gradients come to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import TORCH, Places, Weight, dimensions
from torchgraph_explorer.findings.rules import participation
from torchgraph_explorer.findings.rules.facts import facts_at, operations, rows_with
from torchgraph_explorer.findings.rules.frozen_later import stays_frozen
from torchgraph_explorer.findings.rules.frozen_zero import frozen_at_zero
from torchgraph_explorer.findings.rules.made import is_as_made, is_of_kind_made
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, held, listed, named, quoted
from torchgraph_explorer.findings.rules.ties import is_standard_normal
from torchgraph_explorer.schema import EXTENT, Extent, Shape

HELD_SHARE, MADE_SHARE = 0.75, 0.5
"""Largest share of frozen elements, of those of all matrices, that is no purpose: although an optimizer has them, and
although they still have their initial values. Who freezes more means it."""

LEAST_STEPS = 50
"""Fewest steps from the first to the last recorded one after which an optimizer without an update is reported."""

MOST_NAMES, MOST_GROUPS = 1000, 64
"""How many names of a group, and groups of an update, are recorded at most: with so many, some may be missing."""

FEW = 0.25
"""Largest number of elements that are left out before the trained layers, over that of frozen ones, of adapters: who
freezes all others and leaves these means to train them."""

HELD = 0.25
"""Least share of the recorded steps, up to the last one, at which a parameter is frozen."""


def not_in_optimizer(evidence: Evidence) -> Iterator[Finding]:
    """Parameters get gradients, and no optimizer has them.

    Where the live training did not record which ones no optimizer has, they are those that never change while others
    do.
    """
    yield from _made_for_one_pass(evidence)
    rows = rows_with(evidence, lambda facts: facts.without_optimizer is not None)
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
    is_backbone &= not _are_adapters(evidence, modules) and not _are_beside(evidence, modules, trained)
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
    """Report layers whose optimizer has a learning rate of zero for them, or makes no update, at all recorded steps.

    Only torch's own layers are looked at: other modules may have parameters that are trained later, as those of a
    search for architectures.
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
        owner, info = weight
        if not owner.class_path.startswith(TORCH) or not info.requires_grad or weight.name in others:
            continue
        if _gets_gradient(evidence, owner.name, info.path) and not is_changed(evidence, owner.name, info.path):
            modules.setdefault(owner.name, []).append(info.path)
    order = evidence.places.order
    layers = {owner.name for owner, _ in evidence.places.weights() if owner.class_path.startswith(TORCH)}
    moved_layers = {name.rpartition(".")[0] for name in moved} & layers
    first = min(map(order, moved_layers), default=0)
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
    """Whether each of `modules` has trained modules inside, so that only parameters of its own are left out."""
    return all(any(name.startswith(f"{module}." if module else "") for name in trained) for module in modules)


def _are_beside(evidence: Evidence, modules: Iterable[str], trained: set[str]) -> bool:
    """Whether the training loop also calls trained modules with what comes from none of `modules`.

    All that the head of a backbone is given comes from the backbone. A critic is given actions from elsewhere, too, and
    a discriminator data.
    """
    for graph in evidence.model.graphs:
        places = Places([graph])
        left = [number for number, call in enumerate(places.calls) if call.module in modules]
        for number, call in enumerate(places.calls):
            is_own = call.parent is None and any(f"{name}.".startswith(f"{call.module}.") for name in trained)
            if call.module and is_own and not any(places.leads_to(first, number) for first in left):
                return True
    return False


def _are_adapters(evidence: Evidence, modules: Mapping[str, list[str]]) -> bool:
    """Whether matrices are among the parameters of `modules`, and all are few beside those that are frozen."""
    weights = list(evidence.places.weights())
    frozen = sum(weight.size for weight in weights if not weight.info.requires_grad)
    left = [weight for weight in weights if weight.info.path in modules.get(weight.module.name, ())]
    has_matrix = any(dimensions(weight.info) > 1 for weight in left)
    return has_matrix and sum(weight.size for weight in left) <= FEW * frozen


def _remade(evidence: Evidence, rows: list[int]) -> dict[str, list[str]]:
    """The parameters that the forward pass makes anew at several steps, and that no optimizer holds, by module."""
    known = [facts_at(evidence, row) for row in rows]
    found = Counter(name for facts in known for name in facts.remade if name in (facts.without_optimizer or ()))
    modules: dict[str, list[str]] = {}
    for name, count in found.items():
        if count >= LEAST_ROWS:
            module, _, path = name.rpartition(".")
            modules.setdefault(module, []).append(path)
    return modules


def _made_in_forward(evidence: Evidence, modules: dict[str, list[str]]) -> Iterator[Finding]:
    """Report parameters, by module, that the forward pass makes anew each time."""
    for module in sorted(modules, key=evidence.places.order):
        names = listed(modules[module])
        yield finding(
            evidence,
            "not-in-optimizer",
            "warning",
            at=module,
            rows=rows_with(evidence, lambda facts: bool(facts.remade)),
            numbers={"parameters": len(modules[module])},
            text=f"The forward pass makes {names} of {named(module)} anew each time. No optimizer has what it makes, "
            "and the gradient is lost with it.",
            advice="Make it once, in `__init__` and before the optimizer, and only use it in `forward`.",
        )


def _made_for_one_pass(evidence: Evidence) -> Iterator[Finding]:
    """Report modules whose forward pass makes parameters that belong to no module of the model."""
    modules: dict[str, list[tuple[int, Shape]]] = {}
    for row, one in operations(evidence, "made"):
        modules.setdefault(one.module, []).append((row, one.before))
    for module in sorted(modules, key=evidence.places.order):
        rows, shapes = zip(*modules[module], strict=True)
        sizes = listed([str(list(shape)) for shape in dict.fromkeys(shapes)])
        yield finding(
            evidence,
            "not-in-optimizer",
            "warning",
            at=module,
            rows=sorted(set(rows)),
            numbers={"parameters": len(shapes), "modules": len(modules)},
            text=f"The forward pass of {named(module)} makes parameters of its own, with the sizes {sizes}, which "
            "belong to no module of the model. They get gradients, but no optimizer has them: what they learn is lost.",
            advice="Make the layer once, in `__init__` and before the optimizer, and only call it in `forward`.",
        )


def _unregistered(evidence: Evidence, rows: list[int], without: set[str]) -> Iterator[Finding]:
    """Report parameters that are kept where torch does not find them, that get gradients, and that no optimizer has."""
    known = {(weight.module.name, weight.info.path) for weight in evidence.places.weights()}
    known |= {(series.module, series.path) for series in evidence.series if series.role == "param"}
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
    """Report an optimizer that steps without any parameter of the model, but holds others of the same shapes."""
    rows = rows_with(evidence, lambda facts: bool(facts.orphans) and not facts.groups)
    if len(rows) < LEAST_ROWS or not participation.all_unchanged(evidence):
        return
    own = Counter(weight.info.shape for weight in evidence.places.weights())
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
"""Least number of parameters that an optimizer holds instead of the model's, over the number of the model's, if it was
made for an earlier model."""

_REPLACED = (
    " It holds parameters like these instead, which are not in the model and get no gradient: it was made before the "
    "module was replaced."
)


_UNFROZEN = (
    " They got no gradients at first, as frozen parameters do, and were unfrozen later. An optimizer that was given "
    "only the trainable parameters before then does not have them."
)


def _was_unfrozen(evidence: Evidence, module: str, paths: list[str], rows: list[int]) -> bool:  # noqa: PLR0917
    """Whether no gradient came to the parameters `paths` of `module` at several first steps although it was called."""
    first = min((_rows_with_gradient(evidence, module, path)[:1] for path in paths), default=[])
    inputs = [column for column in evidence.of_kind("value", "input") if evidence.series[column].module == module]
    called = [row for row in rows if first and row < first[0] and evidence.is_there[row, inputs].any()]
    return len(called) >= LEAST_ROWS


def _was_replaced(evidence: Evidence, module: str, paths: list[str], rows: list[int]) -> bool:  # noqa: PLR0917
    """Whether an optimizer holds a matrix that is not the model's for each of the matrices `paths` of `module`.

    It has to have the shape of the module's, but for one size.
    """
    orphans = Counter(shape for row in rows[-1:] for shape in facts_at(evidence, row).orphans)
    params = evidence.places.modules[module].params if module in evidence.places.modules else ()
    shapes = [info.shape for info in params if info.path in paths and len(info.shape) > 1]
    for shape in shapes:
        replaced = next((orphan for orphan in orphans if _are_alike(orphan, shape)), None)
        if replaced is None:
            return False
        orphans -= Counter([replaced])
    return bool(shapes)


def _are_alike(first: Shape, second: Shape) -> bool:
    """Whether two shapes have the same sizes, or all but one: a head may have been replaced by one of more classes."""
    return len(first) == len(second) and sum(a != b for a, b in zip(first, second, strict=True)) <= 1


def _rows_with_gradient(evidence: Evidence, module: str, path: str) -> list[int]:
    """The rows at which a parameter had a gradient of that step.

    The first rows are left out if they have one that stays the same and is not zero: it was left when the parameter was
    frozen.
    """
    column = evidence.find(module, None, "param", path, "grad")
    if column is None:
        return []
    rows = np.flatnonzero(evidence.is_there[:, column])
    known = np.stack([evidence.column(name, column)[rows] for name in ("l2_norm", "mean", "max")])
    is_left = np.append((known[:, 1:] == known[:, :-1]).all(axis=0), False) & (known[0] > 0)
    left = int(np.argmin(is_left)) if len(rows) else 0
    found: list[int] = rows[left + 1 if left else 0 :].tolist()
    return found


def _gets_gradient(evidence: Evidence, module: str, path: str) -> bool:
    """Whether a parameter has a gradient other than zero at most of the steps at which it has one.

    A gradient that is the same at all of them does not count: it is left from a training before, as that of a teacher.
    """
    column = evidence.find(module, None, "param", path, "grad")
    if column is None or participation.is_left_over(evidence, column):
        return False
    peaks = evidence.peaks[:, column]
    return bool(np.nanmedian(peaks) > 0) if np.isfinite(peaks).any() else False


def is_changed(evidence: Evidence, module: str, path: str, *, since: int = 0) -> bool:
    """Whether the parameter's values differ between recorded steps, from the row `since` on.

    Where only a sample of its elements was measured, whose statistics always vary, the first and the last fingerprint
    are compared.
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
    """Matrices are frozen behind trained layers, and an optimizer has them, or they still have their initial values.

    Matrices before the trained layers are looked at, too, if they are part of a new head whose backbone is frozen.
    Matrices of zeros are looked at wherever they are.
    """
    yield from frozen_at_zero(evidence)
    yield from stays_frozen(evidence)
    rows = rows_with(evidence, lambda facts: facts.frozen_in_optimizer is not None)
    if len(rows) < LEAST_ROWS:
        return
    places = evidence.places
    weights = [weight for weight in places.weights() if _is_called_matrix(evidence, weight)]
    trained = [weight for weight in weights if _gets_gradient(evidence, weight.module.name, weight.info.path)]
    layers = [weight for weight in trained if weight.module.class_path.startswith(TORCH)]  # no prompt, and no image
    first = min((places.order(weight.module.name) for weight in layers), default=None)
    if first is None:
        return
    trained_names = {weight.name for weight in trained}
    frozen = [weight for weight in weights if weight.name not in trained_names and not weight.info.requires_grad]
    share = sum(weight.size for weight in frozen) / sum(weight.size for weight in weights)
    in_part = {weight.module.name for weight in trained}
    new = _new_behind_others(evidence, frozen, first)
    for weight in frozen:
        if not weight.module.class_path.startswith(TORCH):  # its author may well have made a table or a mask
            continue
        if weight.module.name in in_part:  # chosen one by one, as the lengths of weight_norm in DINO's last layer
            continue
        if _is_table(evidence, weight):
            continue
        is_behind = places.order(weight.module.name) > first
        seen = _frozen_rows(evidence, weight, rows, share) if is_behind else rows if weight in new else None
        if seen is None:
            continue
        yield finding(
            evidence,
            "frozen-by-accident",
            "warning",
            at=weight.module.name,
            rows=seen,
            numbers={"frozen_share": share, "trained": len(trained)},
            text=f"`{quoted(weight.info.path)}` of {named(weight.module.name)} has `requires_grad=False` and never "
            f"changes, {'while layers before it are trained' if is_behind else _NEW}.",
            advice="Set `requires_grad_(True)` for it. If it is frozen on purpose, do not give it to the optimizer.",
        )


def _is_called_matrix(evidence: Evidence, weight: Weight) -> bool:
    """Whether a parameter has two or more dimensions, and its module is called."""
    return dimensions(weight.info) > 1 and weight.module.name in evidence.places.called


_NEW = (
    "although its weights are those of a new layer: the frozen layers before it have trained weights, and the layers "
    "after it are trained"
)


def _new_behind_others(evidence: Evidence, frozen: list[Weight], first: int) -> list[Weight]:
    """The frozen layers with initial values that come after all frozen ones with others, and before all trained ones.

    They are the part of a new head that was frozen together with the backbone. `first` is the place of the first
    trained layer in the order of execution.
    """
    order = evidence.places.order
    known = [weight for weight in frozen if is_of_kind_made(evidence, weight)]
    others = [order(weight.module.name) for weight in known if not is_as_made(evidence, weight)]
    new = [weight for weight in known if max(others, default=first) < order(weight.module.name) < first]
    return [] if any(is_changed(evidence, weight.module.name, weight.info.path) for weight in new) else new


def _is_table(evidence: Evidence, weight: Weight) -> bool:
    """Whether a parameter is an embedding with other than initial values, as positions of sines or vectors of words."""
    module = weight.module.name
    column = evidence.find(module, None, "param", weight.info.path)
    is_embedding = "Embedding" in evidence.places.class_of(module)
    return is_embedding and (column is None or not is_standard_normal(evidence, column))


def _frozen_rows(evidence: Evidence, weight: Weight, rows: list[int], share: float) -> list[int] | None:  # noqa: PLR0917
    """The rows, until the last one, at which a parameter is frozen by accident; None if there are none.

    An optimizer holds it at these rows; or it still has its initial values, and never changes. `share` is that of the
    elements of frozen matrices.
    """
    module, path = weight.module.name, weight.info.path
    is_in_optimizer = [weight.name in (facts_at(evidence, row).frozen_in_optimizer or ()) for row in rows]
    kept = held(np.array(is_in_optimizer), evidence.steps[rows], share=HELD)
    if kept is not None and share < HELD_SHARE:  # a teacher that follows by itself may well be frozen for it
        return None if is_changed(evidence, module, path, since=rows[kept[0]]) else [rows[at] for at in kept]
    is_new = share < MADE_SHARE and is_as_made(evidence, weight)
    return rows if is_new and not is_changed(evidence, module, path) else None
