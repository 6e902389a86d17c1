"""Scalars of the same run that other libraries wrote into files of their own."""
