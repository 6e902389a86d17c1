"""What a W&B run tells when it is resumed: how many steps of a model it has."""

from __future__ import annotations

from typing import Any

from torchgraph_explorer.sinks import Resumed
from torchgraph_wandb.panels import chart_key

RESUME_OPTIONS = ("allow", "must", "auto")
"""The values of `wandb.init(resume=...)` that resume an existing run."""


def steps_key(model: str) -> str:
    """The summary key of the number of steps of the model."""
    return f"{chart_key(model)}_steps"


def resumed(run: Any, model: str) -> Resumed | None:
    """What `run`, or the active run if it is None, tells; None if it does not resume an earlier run.

    An offline run cannot know whether it resumes one, so the `resume` that was asked for decides.
    """
    import wandb

    run = run if run is not None else wandb.run
    if run is None:
        return None
    asked = getattr(run.settings, "resume", None) if getattr(run, "offline", False) else None
    is_certain = bool(getattr(run, "resumed", False)) or asked == "must"
    if not is_certain and asked not in RESUME_OPTIONS:
        return None
    steps = run.summary.get(steps_key(model))
    return Resumed("W&B", int(steps) if isinstance(steps, (int, float)) and steps >= 0 else None, is_certain)
