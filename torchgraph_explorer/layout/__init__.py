"""Places the nodes of one call's inside. Runs in the process of a view, never in that of a training."""

from __future__ import annotations
