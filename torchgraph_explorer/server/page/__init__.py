"""The content of an exported page, and how it is made small. Used by `server/export.py` alone."""
