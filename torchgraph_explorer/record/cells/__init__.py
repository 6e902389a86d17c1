"""The index of cells: one number for each module, statistic and step, from which the x-ray is drawn.

Used by `record.writer`, `record.model_index` and `record.model_record`.
"""
