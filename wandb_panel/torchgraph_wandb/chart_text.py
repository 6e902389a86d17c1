"""The text about modules and tensors in the chart."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from torchgraph_explorer.labels import label_within, numbered, tensor_name
from torchgraph_explorer.schema import STATISTICS, Call, Frame, Module, ModuleGraph, Node, Series, TensorInfo
from torchgraph_explorer.shapes import Letters, letters, shape_text

MAX_TENSORS = 12
"""The most tensors that a tooltip lists."""

LINE_WIDTH = 58
"""Characters in a line of a tooltip."""


@dataclass(frozen=True, slots=True)
class GraphText:
    """Words the modules and tensors of one graph, as the viewer does.

    Attributes:
        graph: The graph.
        modules: Its modules, by name.
        classes: Their classes, by name.
        letters: A letter for each dimension that varied.
    """

    graph: ModuleGraph
    modules: Mapping[str, Module]
    classes: Mapping[str, str]
    letters: Letters

    def call_label(self, call: Call, inside: int | None) -> str:
        """The label of a call in an inside, with `#2` on a second call; the model itself is labelled with its class."""
        return numbered(self.module_label(call, inside), call)

    def module_label(self, call: Call, inside: int | None) -> str:
        """The same without the number of the call."""
        outer = "" if inside is None else self.graph.calls[inside].module
        return label_within(call.module, outer, self.classes) or self.classes[call.module]

    def tensor_label(self, node: Node) -> str:
        """The label of the node of an input, output or attached tensor."""
        path = node.tensor.path if node.tensor else ""
        if node.kind != "input" or node.inside is None:
            return path
        return self.argument_name(self.graph.calls[node.inside].module, path)

    def argument_name(self, module: str, path: str) -> str:
        """The name of an input of `module`: `input[0]` by its parameter in the module's `forward`."""
        known = self.modules.get(module)
        return tensor_name(path, known.forward_parameters if known else ())

    def shape(self, tensor: TensorInfo | None) -> str:
        """`N×3×32×32`, where `N` is a dimension that varied; empty without a tensor."""
        return shape_text(tensor, self.letters) if tensor else ""

    def call_tooltip(self, call: Call) -> list[str]:
        """The lines of a call's tooltip: name, class, tensors, `extra_repr`, parameters."""
        module = self.modules[call.module]
        lines = [module.name or module.class_name, class_text(module, call)]
        inputs = [f"{self.argument_name(module.name, one.path)}: {self._tensor(one)}" for one in call.inputs]
        outputs = [f"{one.path}: {self._tensor(one)}" for one in call.outputs]
        lines += [*inputs, *outputs][:MAX_TENSORS]
        extra = ", ".join(f"{key}={value}" if key else value for key, value in module.extra_repr)
        lines += textwrap.wrap(extra, LINE_WIDTH)
        if module.total_params:
            frozen = module.total_params - module.trainable_params
            lines.append(f"{module.total_params:,} parameters{f', {frozen:,} frozen' if frozen else ''}")
        return lines

    def tensor_tooltip(self, node: Node) -> list[str]:
        """The lines of the tooltip of an input, output or attached tensor."""
        if node.tensor is None:
            return [node.kind]
        return [self.tensor_label(node), f"{node.kind}, {self._tensor(node.tensor)}"]

    def first_nonfinite(self, frame: Frame, origin: Series | None, class_name: str) -> str:
        """`First NaN at step 6: blocks.0.inner (call 1), output`; without an `origin`, only the step."""
        if origin is None:
            return f"First NaN or infinity at step {frame.step:,}"
        row = frame.statistics[frame.rows[frame.series == origin.id][0]]
        kind = "NaN" if row[STATISTICS.index("nan")] > 0 else "infinity"
        call = "" if origin.call is None else f" (call {origin.call + 1})"
        place = f"{origin.module or class_name}{call}, {self._series(origin)}"
        return f"First {kind} at step {frame.step:,}: {place}"

    def _tensor(self, tensor: TensorInfo) -> str:
        """Shape and type, and whether gradient reaches it."""
        return f"{self.shape(tensor)} {tensor.dtype}{'' if tensor.requires_grad else ', no gradient'}"

    def _series(self, series: Series) -> str:
        """`output`, `gradient of weight`."""
        name = self.argument_name(series.module, series.path) if series.role == "input" else series.path
        if series.kind == "value":
            return {"param": f"parameter {name}", "attached": f"attached tensor {name}"}.get(series.role, name)
        return {
            "grad": f"gradient of {name}",
            "grad_norm": f"gradient of {name}",
            "optimizer_grad": f"gradient of {name} that the optimizer took",
            "update": f"update of {name}",
            "update_ratio": f"update-to-weight ratio of {name}",
            "time": "time of forward",
            "memory": "memory of outputs",
        }[series.kind]


def graph_text(graph: ModuleGraph) -> GraphText:
    """Words for the modules and tensors of `graph`."""
    modules = {module.name: module for module in graph.modules}
    classes = {module.name: module.class_name for module in graph.modules}
    return GraphText(graph, modules, classes, letters(graph))


def class_text(module: Module, call: Call) -> str:
    """`ReLU`, and `ReLU #2` for the second call of a module."""
    return numbered(module.class_name, call)
