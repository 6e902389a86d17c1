"""Serves what was recorded, live and as exported pages. It only reads the record, and never imports torch."""
