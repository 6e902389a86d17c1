"""`compiled="inline"`: which logged steps of a model run compiled, and how the tracker of its steps sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch import nn

from torchgraph_explorer.capture.compiled_entry import EntryCall, calls_hooks_of
from torchgraph_explorer.capture.gradient_hooks import SeriesKey
from torchgraph_explorer.capture.inline.compilations import may_compile_again
from torchgraph_explorer.capture.inline.probes import Fail, InlineProbes, InlineWindow, ProbeListener
from torchgraph_explorer.capture.inline.step import EagerStep, InlineForward, eager_step
from torchgraph_explorer.capture.module_selection import ModuleSelection
from torchgraph_explorer.capture.step_parts import Forward, ForwardParts
from torchgraph_explorer.capture.tensor_tree import input_tensors, tensors
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.schema import ModuleGraph


class InlineCapture:
    """The probes in one model, until `close`, and what is known of its calls from the last step that ran eagerly."""

    def __init__(
        self,
        model: nn.Module,
        listener: ProbeListener,
        *,
        kinds: frozenset[str],
        selection: ModuleSelection,
        fail: Fail,
    ) -> None:
        """Prepare `model`, which is compiled later. See `InlineProbes`."""
        self._probes = InlineProbes(unwrapped(model), listener, kinds=kinds, selection=selection, fail=fail)
        self._eager_step: EagerStep | None = None

    def learn(self, graph: ModuleGraph | None, rows: Mapping[SeriesKey, int]) -> None:
        """A step that ran eagerly is over. It had this graph, if that is known, and these rows."""
        self._eager_step = eager_step(graph.calls, rows) if graph is not None else None

    def forward(self) -> Callable[[ForwardParts], Forward] | None:
        """What records the next step of a compiled call; None where that is to run eagerly.

        That is while no eager step is known, and where the user does not let torch compile a model again.
        """
        if self._eager_step is None or not may_compile_again():
            return None
        return partial(InlineForward, like=self._eager_step)

    def close(self) -> None:
        """Take the probes off. May be called again."""
        self._probes.close()


def window_for(step: InlineForward, model: nn.Module, call: EntryCall) -> InlineWindow:
    """The window in which `call` runs; shows `step` the inputs of the model where they are not seen from inside."""
    hooks_outside = calls_hooks_of(call.compiled, unwrapped(model))
    if hooks_outside:
        step.show("input", input_tensors(call.args, call.kwargs))
    return InlineWindow(whole=not hooks_outside)


def saw_nothing(step: InlineForward, model: nn.Module, call: EntryCall) -> bool:
    """After `call`: whether it returned, and no operation in it showed a tensor.

    The model was compiled before it was watched, then, and has no operations in it.
    """
    if calls_hooks_of(call.compiled, unwrapped(model)):
        step.show("output", tensors(call.result, "output"))
    step.returned()
    return not step.shown and call.result is not None
