"""Places the nodes of one call's inside. Done where the graph is looked at, never where a model trains."""

from __future__ import annotations
