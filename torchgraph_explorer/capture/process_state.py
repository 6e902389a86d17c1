"""What capture keeps once for the whole process, because torch has it once: its stance, its compiler, its threads.

Everything else that changes belongs to one watched model, and ends with its `StepTracker`.
"""

from __future__ import annotations

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.attach_targets import AttachTargets
from torchgraph_explorer.capture.compile_listeners import CompileListeners
from torchgraph_explorer.capture.eager import EagerStance
from torchgraph_explorer.capture.inline.compilations import CompilationLimit
from torchgraph_explorer.capture.inline.registry import InlineRegistry
from torchgraph_explorer.capture.optimizer_steps import OptimizerSteps
from torchgraph_explorer.capture.recursion_room import RecursionRoom
from torchgraph_explorer.capture.scripting import Scripting
from torchgraph_explorer.console import warned


class ProcessState:
    """Shared by all watched models, from the import of this module to the end of the process.

    Attributes:
        attach_targets: The steps that record attached tensors.
        eager: Who needs compiled modules to run as they were written.
        optimizer_steps: Who is called when an optimizer moves its parameters.
        compile_listeners: Who is called when a module is compiled in place.
        scripting: Lets torch script models with hooks of ours.
        recursion_room: Who needs room on Python's stack.
        inline: What the operations refer to that are compiled into models.
        compilation_limit: How often torch may compile a function again.
    """

    def __init__(self) -> None:
        """No model is watched."""
        self.attach_targets = AttachTargets()
        self.eager = EagerStance()
        self.optimizer_steps = OptimizerSteps()
        self.compile_listeners = CompileListeners()
        self.scripting = Scripting()
        self.recursion_room = RecursionRoom()
        self.inline = InlineRegistry()
        self.compilation_limit = CompilationLimit(self.inline.window)
        interrupts.subscribe(self.eager)

    def reset(self) -> None:
        """Leave all that is on or listens: for a test in which what should do so was broken."""
        warned.clear()
        self.attach_targets.clear()
        self.optimizer_steps.clear()
        self.eager.release_all()
        self.recursion_room.release_all()
        self.inline.window.release_all()


process_state = ProcessState()
