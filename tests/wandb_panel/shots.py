"""Makes the README's picture of the W&B chart: `python -m tests.wandb_panel.shots`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.chrome import find_chrome
from tests.wandb_panel.emulator import chart_of_records, panel_in
from torchgraph_explorer import list_runs
from torchgraph_explorer.demo import run_demo

STEPS = 300
RES = Path(__file__).parents[2] / "res"
PINNED = ("conv1", "norm1", "conv2", "shortcut")


def main() -> None:
    """Train the demo's network and photograph its chart."""
    with tempfile.TemporaryDirectory() as logdir, sync_playwright() as playwright:
        run_demo(logdir=logdir, steps=STEPS, serve=False, port=0, open_browser=False)
        [run] = list_runs(logdir)
        browser = playwright.chromium.launch(executable_path=find_chrome())
        with panel_in(browser.new_page(), width=1400, height=600) as panel:
            panel.show(chart_of_records(Path(run.path)), vega=6)
            panel.click("stage2#0")
            panel.click("stage2.0#0")
            panel.colour_by("spread of output")
            for module in PINNED:
                panel.drag_out(f"stage2.0.{module}#0")
            panel.hover_strip(1, side=0, share=0.3, down=0.4)
            panel.page.screenshot(path=RES / "wandb-chart.png")
            assert panel.complaints == []


if __name__ == "__main__":
    main()
