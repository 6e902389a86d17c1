"""Sees a live model, and hands on its tensors and its module graph. Imports torch; knows no numbers, no records."""
