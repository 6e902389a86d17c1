"""The entry point that TensorBoard loads at its start, whether or not anybody wants our tab.

An exception here would keep TensorBoard from starting, so nothing is imported but the base class that TensorBoard has
loaded already, and everything else is tried within `load`.
"""

from __future__ import annotations

import logging

from tensorboard.plugins import base_plugin

log = logging.getLogger(__name__)


class TorchgraphLoader(base_plugin.TBLoader):  # type: ignore[misc]  # TensorBoard ships no annotations
    """Makes the plugin, if its libraries are in order."""

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin | None:
        """The plugin; None, and a warning in the terminal, if it cannot be made: TensorBoard goes on without it."""
        try:
            from torchgraph_tensorboard.plugin import TorchgraphPlugin

            return TorchgraphPlugin(context)
        except Exception as fault:
            log.warning(
                "torchgraph_explorer has no tab in this TensorBoard: %s: %s. "
                "Reinstalling may mend it: pip install --force-reinstall 'torchgraph-explorer[tensorboard]'.",
                type(fault).__name__,
                fault,
            )
            return None
