"""Serves what was recorded. Only reads, and never imports torch."""
