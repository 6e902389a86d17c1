"""Tensors kept whole: which ones, and copies of them, made as they are seen.

Imports torch and `reduce`, and neither capture nor the record. Capture hands it tensors; `training` hands its copies
to the writer.
Imported by `training`.
"""
