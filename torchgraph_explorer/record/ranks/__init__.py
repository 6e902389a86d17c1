"""One model that several ranks recorded, read as one."""
