"""What capture keeps once for the whole process, because torch has it once: its stance, its compiler, its threads.

Everything else that changes belongs to one watched model, and ends with its `StepTracker`.
"""

from __future__ import annotations

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.attach_targets import AttachTargets
from torchgraph_explorer.capture.compile_listeners import CompileListeners
from torchgraph_explorer.capture.eager import EagerStance
from torchgraph_explorer.capture.inline.registry import InlineRegistry


class ProcessState:
    """Shared by all watched models, from the import of this module to the end of the process.

    Attributes:
        attach_targets: The steps that record attached tensors.
        eager: Who needs compiled modules to run as they were written.
        compile_listeners: Who is called when a module is compiled in place.
        inline: What the operations refer to that are compiled into models.
    """

    def __init__(self) -> None:
        """No model is watched."""
        self.attach_targets = AttachTargets()
        self.eager = EagerStance()
        self.compile_listeners = CompileListeners()
        self.inline = InlineRegistry()
        interrupts.subscribe(self.eager)

    def reset(self) -> None:
        """Leave every step, the eager stance and the form with probes: for a test whose step could not do so itself."""
        self.attach_targets.clear()
        self.eager.release_all()
        self.inline.window.release_all()


process_state = ProcessState()
