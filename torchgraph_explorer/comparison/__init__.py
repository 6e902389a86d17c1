"""Two runs, or more, held against each other: matching, distance, first divergence.

Reads records, and the findings of both; never imports torch. docs/compare.md says what each number means.

Imported by `cli`, `run`, `server`.
"""
