"""What the exported page contains, and how it is made small.

Used by `server.export`; `torchgraph_wandb.snapshot_process` takes the choice of steps from it.
"""
