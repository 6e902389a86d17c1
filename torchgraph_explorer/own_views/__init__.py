"""Views of the user's own: functions of what is chosen in the viewer that return HTML or a figure.

Imported by `cli`.
"""
