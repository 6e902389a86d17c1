"""What it costs to watch, record and look; `python -m benchmarks` measures all of it. Results: docs/performance.md."""
