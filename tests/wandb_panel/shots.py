"""Makes the pictures of the W&B chart: `python -m tests.wandb_panel.shots`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Browser, sync_playwright
from sklearn.datasets import load_digits
from torch import Tensor, nn

from tests.chrome import find_chrome
from tests.wandb_panel.emulator import chart_of_records, panel_in
from torchgraph_explorer import list_runs, watch
from torchgraph_explorer.demo import run_demo

STEPS = 300
RES = Path(__file__).parents[2] / "res"
PINNED = ("conv1", "norm1", "conv2", "shortcut")


class Deep(nn.Module):
    """A chain of layers with an activation, for digits."""

    def __init__(self, activation: type[nn.Module]) -> None:
        super().__init__()
        self.stem = nn.Linear(64, 32)
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), activation()) for _ in range(6)))
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.stem(x)))


def train_deep(logdir: str, run: str, activation: type[nn.Module], *, spoilt_at: int = -1) -> None:
    """Train on scikit-learn's digits; at the step `spoilt_at`, a weight becomes NaN."""
    data, labels = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
    torch.manual_seed(0)
    model = Deep(activation)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    with watch(model, log_freq=2, backend="record", logdir=logdir, run=run, verbose=False) as watcher:
        for step in range(120):
            batch = torch.randint(len(data), (64,))
            if step == spoilt_at:
                nn.init.constant_(model.layers[3][0].weight, torch.nan)  # type: ignore[index]
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(data[batch].float() / 16), labels[batch])
            loss.backward()
            optimizer.step()
            watcher.log({"train/loss": loss.item()})


def photograph_runs(browser: Browser) -> None:
    """Three runs side by side."""
    runs = ("relu", "sigmoid", "nan-at-80")
    with tempfile.TemporaryDirectory() as logdir, panel_in(browser.new_page(), width=1400, height=560) as panel:
        train_deep(logdir, "relu", nn.ReLU)
        train_deep(logdir, "sigmoid", nn.Sigmoid)
        train_deep(logdir, "nan-at-80", nn.ReLU, spoilt_at=80)
        panel.show(chart_of_records(*(Path(logdir) / run for run in runs)), vega=6)
        panel.page.screenshot(path=RES / "wandb-runs.png")
        assert panel.complaints == []


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
        photograph_runs(browser)


if __name__ == "__main__":
    main()
