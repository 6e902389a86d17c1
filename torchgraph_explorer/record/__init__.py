"""A run on disk: its format (docs/format.md), its writer and its one reader."""
