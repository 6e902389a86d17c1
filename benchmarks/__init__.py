"""The costs of watching, recording and viewing, measured by `python -m benchmarks`. Results: docs/performance.md."""
