"""A process that ends while a page computes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests import warm
from tests.shared import FORKED

pytestmark = pytest.mark.slow

PROGRAM = """
    import sys, time, warnings
    import torch
    from torch import nn
    from torchgraph_explorer.exploring.desk import Desk
    from torchgraph_explorer.exploring.session import Session
    from torchgraph_explorer.exploring.source import LiveSource
    from pathlib import Path

    warnings.filterwarnings("ignore", ".torch.jit", FutureWarning)  # of what torch 2.15 does for the first derivative
    torch.set_num_threads(1)
    model = nn.Sequential(*[nn.Linear(1000, 1000) for _ in range(12)])
    desk = Desk(
        LiveSource(Session(model, torch.randn(1, 1000), loss=torch.sum), loss=torch.sum), folder=Path.cwd()
    )

    def wait_for(condition):
        until = time.monotonic() + 60
        while not condition(desk.state(known=-1, seconds=0)):
            assert time.monotonic() < until, desk.state(known=-1, seconds=0)
            time.sleep(0.002)

    wait_for(lambda state: state["tensors"] and state["isCurrent"])
    names = [one["name"] for one in desk.state(known=-1, seconds=0)["tensors"] if one["gradient"]]
    desk.change("chain", {"names": [names[0], names[-1]]})
    for name in (names[0], names[-1]):
        desk.change("dims", {"tensor": name, "dims": [1]})
    desk.change("links", {})
    wait_for(lambda state: state["busy"] and state["busy"]["what"].startswith("Links"))
    END
"""
ENDS = {
    "the end of the script": "",
    "close in a function of atexit": "import atexit; atexit.register(desk.close)",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@FORKED
def test_a_process_ends_in_order_while_links_are_computed(tmp_path: Path, end: str) -> None:
    program = textwrap.dedent(PROGRAM).replace("END", end)
    done = warm.run("-c", program, cwd=tmp_path, frees_all=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
