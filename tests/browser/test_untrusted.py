"""Records that nobody writes, in the page: it has nothing to complain of, and runs nothing that they hold."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.page import Viewer
from tests.record.examples import GRAPH, SERIES, SESSION, frame, write
from tests.record.fuzzing import BASES, sound_segments
from tests.record.mutations import mutated
from tests.tables import every
from torchgraph_explorer.record.discovery import list_runs

REFUSED = "Failed to load resource"
"""What the browser writes of an answer that says why something cannot be read."""


def look_around(viewer: Viewer, run: str, model: str) -> None:
    """Open the pages of a run, and go through its graph and its x-ray."""
    for view in ("tensors", "network", "graph"):
        viewer.open(run, model=model, view=view)
        expect(viewer.page.locator(".header")).to_be_visible()
        viewer.page.wait_for_timeout(300)
    for key in ("ArrowDown", "p", "Enter", "ArrowDown", "p"):
        viewer.page.keyboard.press(key)
    viewer.page.wait_for_timeout(300)
    viewer.complaints[:] = [one for one in viewer.complaints if not one.startswith(REFUSED)]


@pytest.mark.parametrize("bins", [0, 1, 2**32 - 1])
def test_a_run_with_any_number_of_bins_is_drawn(bins: int, own_viewer: Viewer, own_logdir: Path) -> None:
    write(own_logdir / "odd", GRAPH, SERIES, frame(0), frame(1), session=replace(SESSION, bins=bins))
    own_viewer.open("odd", pin="0.fc#0")
    strips = own_viewer.strips
    expect(strips).not_to_have_count(0)
    expect(strips.first.locator("canvas").first).to_be_visible()


@pytest.mark.parametrize("seed", every(3, range(12)))
def test_whatever_a_record_says_the_page_stays_whole(
    seed: int, own_viewer: Viewer, own_logdir: Path, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    for place, data in sound_segments(rng.choice(BASES), tmp_path):
        file = own_logdir / "odd" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(mutated(data, rng))
    models = [*list_runs(own_logdir)[0].models, "net"]
    look_around(own_viewer, "odd", models[0])
