"""Two records that tell the same, but for how numbers are rounded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.compatibility.case import Case
from tests.compatibility.training import run
from tests.listening import Listening
from torchgraph_explorer.schema import ModuleGraph


def check_inline(case: Case) -> None:
    """With `compiled="inline"`, `case` is recorded as where the logged steps run as they were written.

    But for the sizes in its graphs, which are those of the steps that did: one varies only where it did in these.
    """
    options = {**case.options, "sample_n": None}  # what is drawn differs
    inline = run(case, watched=True, options=options)
    written = run(case, watched=True, options={**options, "compiled": "eager"})
    assert not inline.said
    assert [list(_wiring(graph)) for graph in inline.heard.graphs[-1:]] == [
        list(_wiring(graph)) for graph in written.heard.graphs[-1:]
    ]
    assert_same_frames(inline.heard, written.heard)


def assert_same_frames(told: Listening, expected: Listening) -> None:
    """They have the same series at the same steps, with the same numbers."""
    assert [frame.step for frame in told.frames] == [frame.step for frame in expected.frames]
    for at in range(len(expected.frames)):
        assert told.recorded(at) == expected.recorded(at)
        for key in expected.recorded(at):
            (numbers, _), (same, _) = told.row(key, at), expected.row(key, at)
            np.testing.assert_allclose(
                list(numbers.values()), list(same.values()), rtol=1e-3, atol=1e-5, err_msg=f"{key}, frame {at}"
            )


def _wiring(graph: ModuleGraph) -> Iterator[object]:
    """Its calls and edges."""
    yield from ((call.module, call.call, call.parent) for call in graph.calls)
    yield from graph.edges
