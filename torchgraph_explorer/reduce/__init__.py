"""Turns tensors into rows of statistics and histograms, on the device where they are. Imports torch, not `capture`."""
