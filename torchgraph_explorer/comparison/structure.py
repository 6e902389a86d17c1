"""How the module graphs, the settings and the versions of two models differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torchgraph_explorer.comparison.matching import MatchedSeries
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import Call, Module, ModuleGraph, Series, TensorInfo

SESSION_SETTINGS = ("class_name", "log", "log_freq", "sample_n", "clock", "world_size")


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that both have, and that differs.

    Attributes:
        name: What it is: a setting, or a module with what of it differs.
        a: In the first run; None where it has none.
        b: In the second run.
    """

    name: str
    a: str | None
    b: str | None


@dataclass(frozen=True, slots=True)
class Structure:
    """How the module graphs differ. Names are those of their own run.

    Attributes:
        only_a: Modules that only the first run has, those inside other such modules left out.
        only_b: Likewise of the second run.
        changed: Classes, arguments, parameters' shapes and outputs' shapes and types that differ, by module.
        series_only_a: Series that have no counterpart in the second run.
        series_only_b: Likewise.
    """

    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    changed: tuple[Changed, ...]
    series_only_a: tuple[Series, ...]
    series_only_b: tuple[Series, ...]

    @property
    def is_same(self) -> bool:
        """Both have the same modules, calls and tensors."""
        return not (self.only_a or self.only_b or self.changed or self.series_only_a or self.series_only_b)


def structure(a: ModelRecord, b: ModelRecord, series: MatchedSeries, *, modules: Mapping[str, str]) -> Structure:
    """Compare the latest graphs; `modules` gives the second model's name for modules of the first one."""
    graph_a, graph_b = latest_graph(a), latest_graph(b)
    modules_a = {one.name: one for one in graph_a.modules} if graph_a else {}
    modules_b = {one.name: one for one in graph_b.modules} if graph_b else {}
    both = {name: modules[name] for name in modules_a if modules.get(name) in modules_b}
    calls_a, calls_b = _outputs(graph_a), _outputs(graph_b)
    changed = [change for name in both for change in _module_changes(modules_a[name], modules_b[both[name]])]
    for (name, call), output in calls_a.items():
        other = calls_b.get((both.get(name, ""), call)) if name in both else None
        if other is not None and other != output:
            changed.append(Changed(f"{_named(name)}{f' (call {call + 1})' if call else ''}: output", output, other))
    taken = set(both.values())
    return Structure(
        _outermost(name for name in modules_a if graph_b and name not in both),
        _outermost(name for name in modules_b if graph_a and name not in taken),
        tuple(changed),
        tuple(a.series[at] for at in series.only_a.tolist()),
        tuple(b.series[at] for at in series.only_b.tolist()),
    )


def latest_graph(model: ModelRecord) -> ModuleGraph | None:
    """The graph of the last frame that has one."""
    known = [graph for graph in model.graph_ids.tolist() if graph >= 0]
    graphs = model.graphs
    return graphs[known[-1]] if known else graphs[-1] if graphs else None


def settings(a: ModelRecord, b: ModelRecord) -> tuple[Changed, ...]:
    """Settings of `watch`, versions, and what was known of the training at the first recorded step, that differ."""
    one, other = _settings(a), _settings(b)
    names = dict.fromkeys((*one, *other))
    return tuple(Changed(name, one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name))


def _settings(model: ModelRecord) -> dict[str, str]:
    session = model.session
    found = {name: _text(getattr(session, name)) for name in SESSION_SETTINGS}
    found |= {f"version of {package}": version for package, version in session.versions.items()}
    facts = next((one for one in model.training_facts if one is not None), None)
    if facts is None:
        return found
    if facts.batch_size is not None:
        found["batch size"] = str(facts.batch_size)
    found["mode"] = "training" if facts.is_training else "eval"
    for number, group in enumerate(facts.groups):
        name = f"{group.optimizer} group {number}"
        found[f"{name}: learning rate"] = _text(group.learning_rate)
        found[f"{name}: weight decay"] = _text(group.weight_decay)
        found[f"{name}: parameters"] = str(len(group.parameters))
    return found


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _module_changes(a: Module, b: Module) -> Iterable[Changed]:
    name = _named(a.name)
    if a.class_path != b.class_path:
        yield Changed(f"{name}: class", a.class_path, b.class_path)
    if a.extra_repr != b.extra_repr:
        yield Changed(f"{name}: arguments", _arguments(a), _arguments(b))
    params = {one.path: one for one in a.params}, {one.path: one for one in b.params}
    for path in dict.fromkeys((*params[0], *params[1])):
        one, other = (_tensor(each.get(path)) for each in params)
        if one != other:
            yield Changed(f"{name}: {path}", one, other)


def _arguments(module: Module) -> str:
    return ", ".join(f"{key}={value}" if key else value for key, value in module.extra_repr)


def _tensor(info: TensorInfo | None) -> str | None:
    if info is None:
        return None
    shape = ", ".join("?" if size is None else str(size) for size in info.shape)
    return f"{info.dtype} [{shape}]"


def _outputs(graph: ModuleGraph | None) -> dict[tuple[str, int], str]:
    return {(call.module, call.call): _output(call) for call in graph.calls} if graph else {}


def _output(call: Call) -> str:
    return ", ".join(f"{one.path} {_tensor(one)}" for one in call.outputs)


def _outermost(names: Iterable[str]) -> tuple[str, ...]:
    """`names` without those that are inside another one of them."""
    found = set(names)
    return tuple(sorted(name for name in found if not any(above in found for above in _above(name))))


def _above(name: str) -> Iterable[str]:
    while name:
        name = name.rpartition(".")[0]
        yield name


def _named(module: str) -> str:
    return module or "the model"
