"""What the command line explores: a user's function in a file, or a saved case."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from torch import nn

from torchgraph_explorer.errors import NotFoundError, OptionError
from torchgraph_explorer.exploring.case import load
from torchgraph_explorer.exploring.session import Session
from torchgraph_explorer.exploring.source import CaseSource, LiveSource, Source

EXAMPLE = "def make(): return model, inputs, lambda output: criterion(output, labels)"


def open_source(text: str) -> Source:
    """The source that `text` names: `FILE.py:FUNCTION` or a saved case.

    Raises:
        NotFoundError: There is no such file or function.
        OptionError: The function returns something else than a model, inputs and a loss.
        RecordError: The file is no case.
    """
    path, colon, function = text.rpartition(":")
    if not colon or not path.endswith(".py"):
        if text.endswith(".py"):
            raise OptionError(f"Add the name of a function in {text}, such as {text}:make, with {EXAMPLE}.")
        return CaseSource(load(text))
    if not Path(path).is_file():
        raise NotFoundError(f"There is no file {path}.")
    sys.path.insert(0, str(Path(path).resolve().parent))  # as if the file was run
    make = runpy.run_path(path).get(function)
    if not callable(make):
        raise NotFoundError(f"{path} has no function {function!r}. Write one: {EXAMPLE}.")
    made = make()
    if not (isinstance(made, tuple) and len(made) in (3, 4) and isinstance(made[0], nn.Module)):
        raise OptionError(f"{text} must return a model, its inputs and a loss: {EXAMPLE}.")
    model, inputs, loss, *words = made
    return LiveSource(Session(model, inputs, loss=loss), loss=loss, words=words[0] if words else None)
