"""A run on disk or at a URL: its format (docs/format.md), its writer and its one reader.

A record is untrusted input: every size is checked before memory is taken. It does not import torch. The writer runs in
the writer's thread; a reader may be used by several threads.

Imported by `cli`, `comparison`, `exploring`, `findings`, `own_views`, `run`, `server`, `torchgraph_tensorboard`,
`torchgraph_wandb`, `training`, `xray`.
"""
