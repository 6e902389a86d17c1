"""Captures the tensors and the module graph of a live model, step by step, and hands them on.

Imports torch. Knows neither statistics nor records: `training` gives it what measures tensors and who takes a step.
Which thread may call it is stated in `torchgraph_explorer/training/__init__.py`.
"""
