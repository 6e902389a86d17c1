"""Callbacks of trainers, for trainings that a line in a script cannot watch.

Each module imports the library of its trainer, which is imported nowhere else.

Imported by the user.
"""
