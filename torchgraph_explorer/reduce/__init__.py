"""Makes rows of numbers from tensors, on the device where they are: statistics and a histogram for each.

It imports torch, and knows nothing of modules. Tensors are read in the training's thread; what a device returns is read
in the writer's thread.

Imported by `tensors` and `training`.
"""
