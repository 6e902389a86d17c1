"""The x-ray: modules in order of execution by steps, the loss above it, findings as marks; one for each run shown.

Used by `torchgraph_wandb.chart.spec`.
"""

from __future__ import annotations
