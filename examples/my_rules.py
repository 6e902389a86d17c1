"""Rules of your own: functions of a model's record that yield findings.

    torchgraph check RUN --rules examples/my_rules.py --fail-on warning

They run while the model trains with `watch(model, rules=my_rules.RULES)`, where this file is imported as a module.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer import Finding
from torchgraph_explorer.run import Model

GROWTH = 10.0
"""Times the norm that a weight had at first."""

HIGHEST_LOSS = 2.0


def weights_growing(model: Model) -> Iterator[Finding]:
    """The norm of a weight has grown by far since the first step."""
    for series in model.find(role="param", path="weight", kind="value"):
        history = model.history(series)
        norms = history.column("l2_norm")
        (large,) = np.nonzero(norms > GROWTH * norms[:1])
        if len(large):
            yield Finding(
                kind="weights-growing",
                module=series.module,
                path=series.path,
                step=history.steps[large[0]],
                last_step=history.steps[large[-1]],
                evidence={"norm": norms[-1], "first_norm": norms[0]},
                text=f"The weights of `{series.module}` grew {norms[-1] / norms[0]:.3g}-fold.",
                advice="Use weight decay, or lower the learning rate.",
            )


def loss_too_high(model: Model) -> Iterator[Finding]:
    """The loss that was logged last is too high."""
    loss = model.scalars().get("loss")
    if loss is not None and loss.values[-1] > HIGHEST_LOSS:
        yield Finding(
            kind="loss-too-high",
            severity="error",
            step=loss.steps[-1],
            evidence={"loss": loss.values[-1]},
            text=f"The training ends with a loss of {loss.values[-1]:.3g}; {HIGHEST_LOSS} is allowed.",
        )


RULES = [weights_growing, loss_too_high]
