"""A run on disk: its format (docs/format.md), its writer and its reader. Everyone may read; it knows of no view."""
