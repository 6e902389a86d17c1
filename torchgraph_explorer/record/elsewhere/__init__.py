"""Scalars of the same run that other libraries wrote into files of their own.

Used by `record.run_record` and `record.model_record`.
"""
