"""The TensorBoard tab. TensorBoard loads `loader`; a training writes a marker for the tab with `sink`.

It does not import torch, and serves the app of `torchgraph_explorer.server`. `tensorboard` is imported only here.

Imported by nothing. TensorBoard finds it by its entry point, and `sinks` by the name of its backend.
"""
