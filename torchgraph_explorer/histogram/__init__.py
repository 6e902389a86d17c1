"""The histograms of tensors, and everything that is computed from them: used by every room, and by the public API."""

from torchgraph_explorer.histogram.buckets import LAST_BUCKET as LAST_BUCKET
from torchgraph_explorer.histogram.buckets import bucket_of as bucket_of
from torchgraph_explorer.histogram.buckets import lower_edge as lower_edge
from torchgraph_explorer.histogram.buckets import upper_edge as upper_edge
from torchgraph_explorer.histogram.distance import distances as distances
from torchgraph_explorer.histogram.histograms import Histograms as Histograms
from torchgraph_explorer.histogram.histograms import add as add
from torchgraph_explorer.histogram.histograms import concatenate as concatenate
from torchgraph_explorer.histogram.histograms import scaled_to_fit as scaled_to_fit
from torchgraph_explorer.histogram.histograms import sum_entries as sum_entries
from torchgraph_explorer.histogram.spread import QUANTILES as QUANTILES
from torchgraph_explorer.histogram.spread import counts_below as counts_below
from torchgraph_explorer.histogram.spread import drawn_range as drawn_range
from torchgraph_explorer.histogram.spread import quantiles as quantiles
