"""What each kind of finding means: the entries of docs/finding-kinds.md, which are part of the package.

Used by `cli`, `server` and the package's own `explain`.
"""
