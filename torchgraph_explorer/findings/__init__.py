"""Rules over a record: what is wrong in a run, where, and since when.

Reads the record alone and never imports torch. `engine.find` runs the table of rules. `kinds` explains each kind of
finding.

Imported by `cli`, `comparison`, `run`, `server`, `torchgraph_wandb`, `training`.
"""
