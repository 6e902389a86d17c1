"""What one step recorded: its rows, where they are in the files, and the history of a series.

Used within `record`; `server` also merges neighbouring steps with `merging`.
"""
