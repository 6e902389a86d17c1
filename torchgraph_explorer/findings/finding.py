"""What rules yield. It is defined in `torchgraph_explorer.finding`, since a record can hold findings, too."""

from torchgraph_explorer.finding import SEVERITIES, Band, BandStatistic, Finding, Severity

__all__ = ["SEVERITIES", "Band", "BandStatistic", "Finding", "Severity"]
