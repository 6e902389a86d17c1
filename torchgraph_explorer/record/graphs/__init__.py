"""Module graphs in a record."""
