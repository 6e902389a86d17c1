"""The custom chart: a Vega specification, composed by small functions."""

from __future__ import annotations
