"""Finds parameters that do not take part in the training: without gradient, never called, or in no optimizer.

The evidence is which parameters have gradients and which ones change over the recorded steps, and the module graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import Weight, dimensions
from torchgraph_explorer.findings.rules.classes import LIBRARIES, RECURRENT, recurrent_part
from torchgraph_explorer.findings.rules.depth import vanishing_gradient
from torchgraph_explorer.findings.rules.made import is_as_made
from torchgraph_explorer.findings.rules.only_penalised import only_penalised
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, listed, named
from torchgraph_explorer.findings.rules.single_class import single_class
from torchgraph_explorer.findings.rules.zero_gradients import matrices_by_zero_gradient, rows_of_zeros
from torchgraph_explorer.schema import EXTENT, Extent, Series

LEAST_UNCHANGED = 4
"""Fewest recorded steps over which weights, or gradients of zero, stay the same to be reported."""

SMALL_PART = 0.25
"""Largest share of the elements of a library's model that may be left without a gradient on purpose."""


def no_gradient(evidence: Evidence) -> Iterator[Finding]:
    """A trainable parameter of a module that ran never gets a gradient and never changes."""
    if none_has_gradient(evidence):
        yield finding(
            evidence,
            "no-gradient",
            "warning",
            at="",
            rows=range(len(evidence)),
            numbers={"parameters": sum(1 for _ in evidence.places.weights())},
            text="The model runs and an optimizer steps, but no gradient ever comes back to any of its parameters.",
            advice="Look for a `backward()` that is missing, or that comes after the `step()` it is for and before a "
            "`zero_grad()`; and for `.detach()`, `.item()`, `.data` or a new `torch.tensor(...)` between the model and "
            "the loss.",
        )
    if (zeros := rows_of_zeros(evidence)) is not None and not any(single_class(evidence)):
        yield finding(
            evidence,
            "no-gradient",
            "warning",
            at="",
            rows=zeros,
            numbers={"steps": len(zeros)},
            text=f"At all {len(zeros)} recorded steps, the gradients at the model's output and of all its parameters "
            "are zero: the loss does not change with what the model answers.",
            advice="Look between the model and the loss for a threshold, a comparison, a rounding, an `argmax` or "
            "`sign`, for a `clamp` whose limits the outputs are beyond, and for a softmax over a single class.",
        )
    without = _without_gradient(evidence)
    chosen, left = _chosen(evidence, without), _left_by_library(evidence, without.keys())
    unlearned = _unlearned(evidence, without)
    for module, weights in without.items():
        if module not in evidence.places.called:
            continue
        # A vector that stands for masked inputs has no gradient where a transformer is fine-tuned without masking.
        is_meant = all("mask" in weight.info.path for weight in weights) or module in left
        is_missed = _output_requires_grad(evidence, module) or module in chosen or module in unlearned
        yield finding(
            evidence,
            "no-gradient",
            "warning" if is_missed and not is_meant else "info",
            at=module,
            rows=range(len(evidence)),
            numbers={"parameters": len(weights)},
            text=f"{named(module)} runs, but no gradient ever comes back to its {_names(weights)}, which can be "
            "trained."
            f"{_CHOSEN if module in chosen else _UNLEARNED if module in unlearned else ''}",
            advice="Look for `.detach()`, `.item()`, `.data`, `torch.no_grad()`, or a result that the loss does not "
            "depend on. If it is frozen on purpose, set `requires_grad=False`."
            f"{_CHECKPOINT if module in chosen else ''}",
        )
    yield from _zeros(evidence)
    yield from only_penalised(evidence)


def _left_by_library(evidence: Evidence, without: Collection[str]) -> set[str]:
    """Those of the modules `without` a gradient that are a small part of a library's model that is trained.

    One of them is a pooler whose output a user's own head does not take.
    """
    trained, missed = Counter[str](), Counter[str]()
    tops: dict[str, str] = {}
    for weight in evidence.places.weights():
        module = weight.module.name
        top = _library_model(evidence, module)
        if top is None or not weight.info.requires_grad:
            continue
        (missed if module in without else trained)[top] += weight.size
        above = evidence.places.modules.get(module.rpartition(".")[0])
        if module in without and above is not None and above.class_path.startswith(LIBRARIES):
            tops[module] = top
    return {module for module, top in tops.items() if missed[top] < SMALL_PART * (missed[top] + trained[top])}


def _library_model(evidence: Evidence, module: str) -> str | None:
    """The name of the outermost model of a library around a module, or of the module itself; None without one."""
    modules = evidence.places.modules
    names = ["", *(module[:end] for end in _ends(module))]
    return next((name for name in names if name in modules and modules[name].class_path.startswith(LIBRARIES)), None)


_CHOSEN = (
    " It runs without an autograd graph, as under `no_grad`, although an optimizer has these parameters. Most of the "
    "other parameters that run so were frozen one by one."
)
_CHECKPOINT = (
    " In a checkpoint, pass `use_reentrant=False`, or let what goes in require a gradient: "
    "`model.enable_input_require_grads()`."
)


_UNLEARNED = (
    " It runs without an autograd graph, as under `no_grad`, although an optimizer has these parameters, they still "
    "have their initial values, and layers that are trained take its output."
)


def _unlearned(evidence: Evidence, without: dict[str, list[Weight]]) -> set[str]:
    """The modules that run without an autograd graph before trained layers, and have initial weights.

    An optimizer has all their parameters, so they are no random features on purpose. Data goes from them to trained
    layers, so they are no teacher, whose output only the loss takes.
    """
    held, found = _held(evidence), set[str]()
    trained = {
        evidence.series[column].module
        for column in evidence.of_kind("grad", "param")
        if dimensions(evidence.places.tensor(evidence.series[column])) > 1
    } - without.keys()
    tops: dict[str, list[tuple[str, list[Weight]]]] = {}
    for module, weights in without.items():
        if _runs_without_graph(evidence, module):
            tops.setdefault(_top_without_graph(evidence, module), []).append((module, weights))
    for top, inside in tops.items():
        every = [weight for _, weights in inside for weight in weights]
        matrices = [weight for weight in every if len(weight.info.shape) > 1]
        if not matrices or not all(weight.name in held for weight in every):
            continue
        if _leads_to_any(evidence, top, trained) and all(is_as_made(evidence, weight, row=0) for weight in matrices):
            found |= {module for module, _ in inside}
    return found


def _leads_to_any(evidence: Evidence, module: str, trained: set[str]) -> bool:
    """Whether data may come from the first call of `module` to a later call of one of the modules `trained`."""
    places = evidence.places
    first = places.numbered(module, 0)
    later = [number for number, call in enumerate(places.calls) if call.module in trained and number > (first or 0)]
    return first is not None and bool(places.sources) and any(places.leads_to(first, number) for number in later)


def _held(evidence: Evidence) -> set[str]:
    """The qualified names of the parameters in the groups of the optimizers that made updates."""
    return {
        name for facts in evidence.training if facts is not None for group in facts.groups for name in group.parameters
    }


def _chosen(evidence: Evidence, without: dict[str, list[Weight]]) -> set[str]:
    """The modules that run without an autograd graph although somebody chose to train them, as adapters.

    They are those whose parameters are not frozen where, in the outermost module that runs without a graph, most
    elements are frozen, and optimizers that make updates have all others.
    """
    held = _held(evidence)
    frozen, left = Counter[str](), Counter[str]()
    tops: dict[str, str] = {}
    is_held: dict[str, bool] = {}
    missed = {weight.name for weights in without.values() for weight in weights}
    for weight in evidence.places.weights():
        module = _called(evidence, weight.module.name)
        if not _runs_without_graph(evidence, module):
            continue
        top = _top_without_graph(evidence, module)
        if not weight.info.requires_grad:
            frozen[top] += weight.size
        elif weight.name in missed:
            tops[module] = top
            left[top] += weight.size
            if weight.name not in held:
                is_held[top] = False
    return {module for module, top in tops.items() if frozen[top] > left[top] and is_held.get(top, True)}


def _called(evidence: Evidence, module: str) -> str:
    """The innermost module around `module`, or itself, that is called: it may use weights of one that is not."""
    while module and module not in evidence.places.called:
        module = module.rpartition(".")[0]
    return module


def _top_without_graph(evidence: Evidence, module: str) -> str:
    """The outermost module around `module`, but for the model, that runs without an autograd graph, too."""
    while (above := module.rpartition(".")[0]) and _runs_without_graph(evidence, above):
        module = above
    return module


def _runs_without_graph(evidence: Evidence, module: str) -> bool:
    """Whether a module is called, and none of its outputs ever requires a gradient."""
    return module in evidence.places.called and module not in evidence.places.differentiable


def _zeros(evidence: Evidence) -> Iterator[Finding]:
    """Report modules that run, and whose matrices have a gradient of zeros at each recorded step, while others do not.

    Where the gradient vanishes on its way to the first layers, that rule reports it.
    """
    flags: dict[tuple[str, str], list[bool]] = {}
    for series, is_zero_always in matrices_by_zero_gradient(evidence, least=LEAST_UNCHANGED):
        flags.setdefault((series.module, _part(evidence, series)), []).append(is_zero_always)
    flags = _by_layer(flags)
    is_zero = {part: all(are_zero) for part, are_zero in flags.items()}
    if all(is_zero.values()) or not any(is_zero.values()) or any(vanishing_gradient(evidence)):
        return
    zeros = [part for part in is_zero if is_zero[part]]
    left = _left_by_library(evidence, {module for module, _ in zeros})
    for module, part in sorted(zeros, key=_order(evidence)):
        if module not in evidence.places.called or "Embedding" in evidence.places.class_of(module):
            continue
        is_given_zeros = _is_given_zeros(evidence, module)
        is_half = "direction" in part
        why = (
            "it is given nothing but zeros."
            if is_given_zeros
            else f"the output of {'that direction' if is_half else 'that layer' if part else 'it'} makes no difference "
            "to the loss."
        )
        advice = (
            _GIVEN_ZEROS
            if is_given_zeros
            else _HALF
            if is_half
            else "Look for a factor of zero, a rounding, a comparison, or a term that cancels itself, as `p / p` of a "
            "ratio whose old value was not detached."
        )
        yield finding(
            evidence,
            "no-gradient",
            "info" if module in left else "warning",
            at=module,
            rows=range(len(evidence)),
            numbers={"parameters": len(flags[module, part])},
            text=f"{named(module)} runs, but the gradient of its weights{part and f' of {part}'} is zero at "
            f"all recorded steps: {why}",
            advice=advice,
        )


_GIVEN_ZEROS = (
    "Look at where that input is made: an array that was never filled, or a decoder that is handed zeros in training, "
    "and not the targets before each place."
)
_HALF = (
    "Take the last states of both directions, `torch.cat([h[-2], h[-1]], 1)`: `h[-1]` is that of the backward "
    "direction alone."
)


def _is_given_zeros(evidence: Evidence, module: str) -> bool:
    """Whether all that the module is given is zero, at all steps."""
    columns = [one for one in evidence.of_kind("value", "input") if evidence.series[one].module == module]
    norms = [evidence.column("l2_norm", one)[evidence.is_there[:, one]] for one in columns]
    return bool(norms) and all(len(one) and not one.any() for one in norms)


def _order(evidence: Evidence) -> Callable[[tuple[str, str]], tuple[int, str]]:
    """A key that sorts modules and their layers in the order of execution."""
    return lambda layer: (evidence.places.order(layer[0]), layer[1])


def _part(evidence: Evidence, series: Series) -> str:
    """The layer and direction of a recurrent module that a parameter is of, in words; empty in other modules."""
    found = recurrent_part(series.path) if evidence.places.torch_class_of(series.module) in RECURRENT else None
    if found is None:
        return ""
    is_both_ways = evidence.places.option(series.module, "bidirectional") == "True"
    way = f"the {'backward' if found.is_backward else 'forward'} direction of " if is_both_ways else ""
    return f"{way}layer {found.layer}"


def _by_layer(flags: dict[tuple[str, str], list[bool]]) -> dict[tuple[str, str], list[bool]]:
    """`flags` by module and part, with both directions of a layer joined, unless they are zero for one alone."""
    found: dict[tuple[str, str], list[bool]] = {}
    for (module, part), are_zero in flags.items():
        layer = part.rpartition(" of ")[2]
        ways = [all(one) for (name, other), one in flags.items() if name == module and other.endswith(layer)]
        found.setdefault((module, part if any(ways) != all(ways) else layer), []).extend(are_zero)
    return found


def unused_module(evidence: Evidence) -> Iterator[Finding]:
    """A module with trainable parameters that is never called; they get no gradient and never change."""
    places = evidence.places
    without = _without_gradient(evidence)
    unused = {module: len(weights) for module, weights in without.items() if module not in places.called}
    used = places.called | {weight.module.name for weight in places.weights()} - unused.keys()
    around = {module[:end] for module in used for end in _ends(module)}
    parameters: dict[str, int] = {}
    for module, count in unused.items():
        top = _topmost(module, around)
        parameters[top] = parameters.get(top, 0) + count
    left = _left_by_library(evidence, unused.keys())
    for module, count in parameters.items():
        attention = module.rpartition(".")[0]
        if _is_of_attention(evidence, module):
            if attention in without:  # its result makes no difference at all, which `no_gradient` says
                continue
            yield _only_weights_taken(evidence, attention, count)
            continue
        yield finding(
            evidence,
            "unused-module",
            "info" if left and _is_of_library(evidence, module, left) else "warning",
            at=module,
            rows=range(len(evidence)),
            numbers={"parameters": count},
            text=_never_called(module, count, is_around=module in around),
            advice="Call it in `forward`, or remove it.",
        )


def _never_called(module: str, count: int, *, is_around: bool) -> str:
    """That a module is not called; if it `is_around` others that are, its own `count` parameters are meant."""
    parameters = f"{count} parameters" if count > 1 else "parameter"
    if is_around:
        return (
            f"{named(module)} is never called as a whole at a recorded step, and no gradient reaches its {parameters}, "
            "outside of the modules in it that are called."
        )
    return f"{named(module)} is never called at a recorded step, and no gradient reaches its {parameters}."


def _is_of_library(evidence: Evidence, module: str, left: set[str]) -> bool:
    """Whether a module has parts that a library `left` unused, and was not added to the library's model by the user.

    A part of the library is of one of its classes, or is registered before another part of the same module that is
    called: what users add is registered last. Or it is in a module of which the library calls parts only, as a masked
    autoencoder does with the encoder that it pretrains.
    """
    known = evidence.places.modules
    if not any(name == module or name.startswith(f"{module}.") for name in left):
        return False
    above, names = module.rpartition(".")[0], [*known]
    later = (name for name in names[names.index(module) + 1 :] if not name.startswith(f"{module}."))
    is_inner = any(name.rpartition(".")[0] == above and name in evidence.places.called for name in later)
    is_inner |= bool(above) and above not in evidence.places.called and _is_within_library(evidence, above)
    return known[module].class_path.startswith(LIBRARIES) or is_inner


def _is_within_library(evidence: Evidence, module: str) -> bool:
    """Whether a module is held by one of a library's classes, which then decides which parts of it are called."""
    holder = evidence.places.modules.get(module.rpartition(".")[0])
    return holder is not None and holder.class_path.startswith(LIBRARIES)


def _is_of_attention(evidence: Evidence, module: str) -> bool:
    """Whether a module is the last layer of a `MultiheadAttention` that is called: its weights go into a function."""
    above, _, last = module.rpartition(".")
    is_attention = evidence.places.class_of(above) == "MultiheadAttention"
    return is_attention and last == "out_proj" and above in evidence.places.called


def _only_weights_taken(evidence: Evidence, module: str, count: int) -> Finding:
    """The finding that a model takes only the weights of an attention, and not the attended values."""
    return finding(
        evidence,
        "no-gradient",
        "warning",
        at=module,
        rows=range(len(evidence)),
        numbers={"parameters": count},
        text=f"{named(module)} runs, but no gradient ever comes back to its `out_proj`: its first result, which is the "
        "attended values, is not used. The second result is the weights of attention.",
        advice="Take the first result: `values, weights = attention(query, key, value)`.",
    )


def _ends(module: str) -> Iterator[int]:
    """The lengths of the names of all modules around a module, but for the model, and of its own, ascending."""
    yield from (at for at, letter in enumerate(module) if letter == ".")
    yield len(module)


def _topmost(module: str, used: set[str]) -> str:
    """The outermost module around `module` that is not among the modules `used` or around these."""
    while (above := module.rpartition(".")[0]) and above not in used:
        module = above
    return module


def _names(weights: list[Weight]) -> str:
    return listed([one.info.path for one in weights])


def _without_gradient(evidence: Evidence) -> dict[str, list[Weight]]:
    """The trainable parameters that never get a gradient and never change, by module, in the order of execution."""
    if len(evidence) < LEAST_ROWS or not evidence.of_kind("grad", "param"):
        return {}
    found: dict[str, list[Weight]] = {}
    for weight in evidence.places.weights():
        module, info = weight
        grad = evidence.find(module.name, None, "param", info.path, "grad")
        has_had = grad is not None and bool(evidence.is_there[:, grad].any())
        if info.requires_grad and not has_had and not _changes(evidence, weight):
            found.setdefault(module.name, []).append(weight)
    return dict(sorted(found.items(), key=lambda item: evidence.places.order(item[0])))


def none_has_gradient(evidence: Evidence) -> bool:
    """Whether optimizers step the model's parameters, and none of these ever has a gradient or changes.

    Gradients have to be among what was to be logged, the model's output has to require one, and no backward pass may
    have reached the model: with `only=`, parameters that are not recorded may have gradients.
    """
    if len(evidence) < LEAST_UNCHANGED or evidence.of_kind("grad", "param"):
        return False
    is_stepped = all(
        facts is not None and facts.without_gradient is None and any(group.parameters for group in facts.groups)
        for facts in evidence.training
    )
    trained = [weight for weight in evidence.places.weights() if weight.info.requires_grad]
    return (
        "params_grad" in evidence.model.session.log
        and is_stepped
        and bool(trained)
        and _output_requires_grad(evidence, "")
        and not any(_changes(evidence, weight) for weight in trained)
    )


def _changes(evidence: Evidence, weight: Weight) -> bool:
    """Whether the parameter's values changed between recorded steps: then unrecorded steps between these train it."""
    column = evidence.find(weight.module.name, None, "param", weight.info.path)
    return column is not None and not _is_constant(evidence, column)


def begins_to_change(evidence: Evidence) -> int:
    """The first row at which a recorded parameter is not what it was at first: a loop may call the model before.

    The number of rows, if none changes. 0 if no parameter is recorded whole.
    """
    values = [
        one
        for one in evidence.of_kind("value", "param")
        if np.array_equal(evidence.column("count", one), evidence.column("sampled", one), equal_nan=True)
    ]
    if not values:
        return 0
    statistics = evidence.telling(values)
    is_other = (statistics != statistics[:, :1]) & np.isfinite(statistics) & np.isfinite(statistics[:, :1])
    rows = np.flatnonzero(is_other.any(axis=(0, 2)))
    return int(rows[0]) if len(rows) else len(evidence)


def _is_constant(evidence: Evidence, column: int) -> bool:
    """Whether a parameter's statistics stay the same to the last bit over all recorded steps.

    Those of a sample of its elements always vary. Then the first and the last fingerprint are compared if they are of
    all elements, or else the means.
    """
    rows = np.flatnonzero(evidence.is_there[:, column])
    count, sampled = (evidence.column(name, column)[rows] for name in ("count", "sampled"))
    if (count != sampled).any():
        first, last = (evidence.fingerprints(int(row))[column] for row in (rows[0], rows[-1]))
        if (first & last & np.uint64(EXTENT)) == Extent.ALL:
            return bool(first == last)
        means = evidence.column("mean", column)[rows]
        return bool((means == means[:1]).all())
    values = evidence.telling([column])[:, rows]
    return bool((values == values[:, :1]).all())


def is_left_over(evidence: Evidence, grad: int) -> bool:
    """Whether a gradient stays the same to the last bit over all recorded steps: no backward pass has come to it.

    It is that of a training before, which nobody cleared. `LEAST_UNCHANGED` steps are needed.
    """
    rows = np.flatnonzero(evidence.is_there[:, grad])
    return len(rows) >= LEAST_UNCHANGED and _is_constant(evidence, grad)


def _output_requires_grad(evidence: Evidence, module: str) -> bool:
    """Whether an output of a module requires a gradient at any step."""
    return module in evidence.places.differentiable


def not_in_optimizer(evidence: Evidence) -> Iterator[Finding]:
    """The weights of some modules get gradients and never change, while others do."""
    moved, stuck = moved_and_stuck(evidence)
    if not moved or not stuck:
        return
    order = evidence.places.order
    is_backbone = max(map(order, stuck)) < min(map(order, moved))
    for module in sorted(stuck, key=order):
        yield finding(
            evidence,
            "not-in-optimizer",
            "info" if is_backbone else "warning",
            at=module,
            rows=range(len(evidence)),
            numbers={"unchanged_modules": len(stuck), "changed_modules": len(moved)},
            text=f"The weights of {named(module)} get gradients and never change. Those of {len(moved)} other modules "
            "do.",
            advice="Give its parameters to the optimizer. If it is frozen on purpose, set `requires_grad=False`: that "
            "saves computing its gradient.",
        )


def all_unchanged(evidence: Evidence) -> bool:
    """Whether weights get gradients and none of them ever changes."""
    moved, stuck = moved_and_stuck(evidence)
    return bool(stuck) and not moved


def moved_and_stuck(evidence: Evidence) -> tuple[set[str], set[str]]:
    """The modules with a weight matrix that gets gradients and changes, and those of which no such matrix changes."""
    moved: set[str] = set()
    stuck: set[str] = set()
    for grad in evidence.of_kind("grad", "param"):
        series = evidence.series[grad]
        value = evidence.find(series.module, series.call, series.role, series.path)
        if value is None or dimensions(evidence.places.tensor(series)) < 2:
            continue
        rows = np.flatnonzero(evidence.is_there[:, value] & evidence.is_there[:, grad])
        if len(rows) < LEAST_UNCHANGED or not np.nanmedian(evidence.peaks[rows, grad]) > 0:
            continue
        if is_left_over(evidence, grad):
            continue
        (stuck if _is_constant(evidence, value) else moved).add(series.module)
    return moved, stuck - moved
