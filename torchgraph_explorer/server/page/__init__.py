"""What stands in the exported page, and how it is made small."""
