"""Serves what was recorded: one WSGI app for every host of the viewer, and the exported page.

It only reads, and does not import torch. Requests are answered in several threads.

Imported by `cli`, `exploring`, `own_views`, `run`, `sinks`, `torchgraph_tensorboard`, `torchgraph_wandb`, `training`.
"""
