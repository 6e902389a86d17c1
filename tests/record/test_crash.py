"""Writers that are killed or refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.record.examples import facts, frame
from torchgraph_explorer.run import open_run

pytestmark = pytest.mark.slow

WRITE_FOR_EVER = """
import sys
from tests.record.examples import GRAPH, SERIES, SESSION, frame
from torchgraph_explorer.record.writer import RecordWriter

sink = RecordWriter(sys.argv[1])
for record in (SESSION, GRAPH, SERIES):
    sink.write(record)
for step in range(1_000_000):
    sink.write(frame(step))
    print(step, flush=True)
"""


def test_a_killed_writer_loses_at_most_the_record_it_was_writing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITE_FOR_EVER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        written = [int(writer.stdout.readline()) for _ in range(50)]
        os.kill(writer.pid, signal.SIGKILL)
        written += [int(line) for line in writer.stdout if line.endswith("\n")]
    run = open_run(tmp_path)
    model = run.model()
    assert len(model) in {len(written), len(written) + 1}
    assert [facts(model.frame(at)) for at in range(len(model))] == [facts(frame(at)) for at in range(len(model))]
    assert (run.warnings, model.finished) == ((), None)
