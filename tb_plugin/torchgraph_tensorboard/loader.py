"""The entry point that TensorBoard loads when it starts, even if our tab is not used.

An exception here would keep TensorBoard from starting. So this module imports only the base class, which TensorBoard
has loaded already, and `load` catches what everything else raises.
"""

from __future__ import annotations

import logging

from tensorboard.plugins import base_plugin

log = logging.getLogger(__name__)


class TorchgraphLoader(base_plugin.TBLoader):  # type: ignore[misc]  # TensorBoard ships no annotations
    """Makes the plugin, if its libraries can be imported."""

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin | None:
        """The plugin. If it cannot be made, None and a warning in the terminal: TensorBoard starts without it."""
        try:
            from torchgraph_tensorboard.plugin import TorchgraphPlugin

            return TorchgraphPlugin(context)
        except Exception as fault:
            log.warning(
                "torchgraph_explorer has no tab in this TensorBoard: %s: %s. "
                "Installing it again may help; in its clone: pip install '.[tensorboard]'",
                type(fault).__name__,
                fault,
            )
            return None
