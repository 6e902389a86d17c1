"""Capture from inside compiled code: all that `compiled="inline"` needs.

Used within `capture`.
"""
