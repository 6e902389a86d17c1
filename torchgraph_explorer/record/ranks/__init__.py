"""Reads what several ranks recorded of one model as one record. Used within `record`."""
