"""A record is untrusted: whatever became of it, `check` answers, or says in a sentence why it cannot."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path

import pytest

from tests.record.fuzzing import BASES, sound_segments, within_bounds
from tests.record.mutations import mutated
from torchgraph_explorer.cli import main
from torchgraph_explorer.errors import TorchgraphWarning

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(24))
def test_a_damaged_record_is_checked_or_refused(
    seed: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    for place, data in sound_segments(rng.choice(BASES), tmp_path_factory.mktemp("sound")):
        file = tmp_path / "bad" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(mutated(data, rng))
    with within_bounds(f"seed {seed}"), warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchgraphWarning)
        status = main(["check", str(tmp_path / "bad"), "--format", "json"])
    told = capsys.readouterr()
    assert status in (0, 2), told.err
    assert status == 2 or json.loads(told.out)["schema"] == 1
