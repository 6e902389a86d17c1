"""The x-ray: the whole training in one picture, modules in order of execution by steps.

Imported by `cli`, `server`, `torchgraph_wandb`.
"""
