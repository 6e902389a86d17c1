"""Two runs, or more, held against each other: matching, distance, first divergence. It reads records; no torch."""
