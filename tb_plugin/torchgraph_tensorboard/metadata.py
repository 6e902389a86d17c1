"""The marker summary, which `sink` writes into an event file and `missing_folders` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record.folder import PLUGIN
from torchgraph_explorer.record.format.envelope import VERSION
from torchgraph_explorer.record.record_pb2 import Marker
from torchgraph_explorer.record.scan import require_version

if TYPE_CHECKING:
    from tensorboard.compat.proto.summary_pb2 import Summary

PLUGIN_NAME = PLUGIN[-1]
"""The name of the plugin in TensorBoard, and of its folder in a run."""

TAG = "torchgraph"


def marker_summary() -> Summary:
    """A summary that tells TensorBoard of the run and of our tab."""
    from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_TENSOR, Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.types_pb2 import DT_INT32

    content = Marker(version=VERSION, folder="/".join(PLUGIN)).SerializeToString()
    metadata = SummaryMetadata(
        plugin_data=SummaryMetadata.PluginData(plugin_name=PLUGIN_NAME, content=content),
        summary_description="Recorded by torchgraph_explorer; see its tab.",
        data_class=DATA_CLASS_TENSOR,  # without a data class, TensorBoard lists no run
    )
    nothing = TensorProto(dtype=DT_INT32, int_val=[VERSION])
    return Summary(value=[Summary.Value(tag=TAG, metadata=metadata, tensor=nothing)])


def parse_marker(content: bytes, source: str) -> Marker:
    """The marker in a summary's plugin data.

    Raises:
        RecordError: The marker is damaged, or a newer release wrote it.
    """
    try:
        marker = Marker.FromString(content)
    except DecodeError as error:
        raise RecordError(f"{source}: the marker in TensorBoard's event file is damaged.") from error
    require_version(marker.version, source)
    return marker
