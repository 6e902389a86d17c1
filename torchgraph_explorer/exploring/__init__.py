"""How gradient flows between two tensors of one forward pass: computed live, on a model that is left as it was.

Imported by `cli` and `training`.
"""
