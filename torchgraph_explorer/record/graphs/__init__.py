"""Module graphs in a record: how they are encoded, and which there are. Used within `record`."""
