"""What runs in the training process: `watch`, the pipeline from a captured step to the sinks, the writer's thread.

It is the one room that joins `capture` and `reduce` with the record. An error in it is reported once and never reaches
the user's training; only a wrong argument raises.

Imported by `torchgraph_wandb`.
"""
