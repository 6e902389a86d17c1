"""Small trainings that go wrong, each with its mended twin, and others that go well: what the rules are measured on.

The programs of one half (`chosen.py`) served to choose the rules' thresholds; those of the other (`measured.py`) are
only ever measured. Change no threshold to please the second half.
"""
