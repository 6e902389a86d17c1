"""Tensors kept whole, in segments of their own: reading frames never touches them.

Used by `record.writer`, `record.run_record` and `record.model_record`.
"""
