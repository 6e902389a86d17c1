"""Sees a live model: the calls of its modules, their tensors and gradients, and the module graph.

It imports torch. It hands tensors to be measured to whoever listens, and computes and writes nothing itself. All of it
runs in the training's thread, or in a thread that runs a backward pass, under the lock of the model's step.

Imported by `exploring`, `training`.
"""
