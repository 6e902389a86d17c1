"""The custom chart: a Vega specification, built by small functions."""

from __future__ import annotations
