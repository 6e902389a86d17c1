"""What a W&B run says of itself when it goes on: that it is resumed, and how many steps of a model it knows of."""

from __future__ import annotations

from typing import Any

from torchgraph_explorer.training.first_step import Resumed
from torchgraph_wandb.panels import chart_key

ASKED = ("allow", "must", "auto")
"""What `wandb.init(resume=...)` is given to go on with a run that is there."""


def steps_key(model: str) -> str:
    """The key in the run's summary under which it is kept how many steps of the model there are."""
    return f"{chart_key(model)}_steps"


def resumed(run: Any, model: str) -> Resumed | None:
    """What `run`, or the active one if it is None, says; None if it does not go on with an earlier one.

    An offline run cannot know whether it does. There counts what was asked for.
    """
    import wandb

    run = run if run is not None else wandb.run
    if run is None:
        return None
    asked = getattr(run.settings, "resume", None) if getattr(run, "offline", False) else None
    is_certain = bool(getattr(run, "resumed", False)) or asked == "must"
    if not is_certain and asked not in ASKED:
        return None
    steps = run.summary.get(steps_key(model))
    return Resumed("W&B", int(steps) if isinstance(steps, (int, float)) and steps >= 0 else None, is_certain)
