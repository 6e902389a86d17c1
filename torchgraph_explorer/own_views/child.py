"""The process of one view: loads the user's file, and answers with a page for each selection that it is sent.

The first line of input names the file and the function; each further one is a selection. Each gets one line as answer.
What the view prints goes to the terminal.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any

from torchgraph_explorer.errors import NotFoundError, TorchgraphError, TorchgraphWarning
from torchgraph_explorer.own_views.html import ALLOWED, page_of
from torchgraph_explorer.own_views.selection import selection_from
from torchgraph_explorer.run import Run, open_run

MOST_BYTES = 32 * 2**20
"""The most bytes of a page."""

EXAMPLE = "def view(selection): return f'<p>step {selection.step}</p>'"


def main() -> None:
    """Load the view, then answer until the input ends."""
    out = _own_output()
    os.environ.setdefault("MPLBACKEND", "agg")  # figures are drawn without a screen
    warnings.simplefilter("ignore", TorchgraphWarning)  # the viewer shows what is damaged
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(asked,), daemon=True).start()
    start = json.loads(asked.get())
    try:
        view = load(start["file"], start["function"])
    except BaseException as fault:  # whatever the file does
        _tell(out, {"fault": told(fault, start["file"])})
        return
    _tell(out, {"is_ready": True})
    runs: dict[str, Run] = {}
    while True:
        _tell(out, _answer(view, json.loads(asked.get()), runs, file=start["file"]))


def _own_output() -> IO[str]:
    """The stream to the server. What a view prints goes to stderr, which is the server's terminal."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def _read(asked: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        asked.put(line)
    os._exit(0)  # the server is gone; a view that still runs would go on for ever


def load(file: str, function: str) -> Callable[[Any], object]:
    """The function in the Python file, which is loaded as if it was run.

    Raises:
        NotFoundError: There is none.
        Exception: Whatever the file raises.
    """
    sys.path.insert(0, str(Path(file).resolve().parent))
    module = _loaded(file)
    view = getattr(module, function, None)
    if not callable(view):
        raise NotFoundError(f"{file} has no function {function!r}. Write one: {EXAMPLE}, which returns {ALLOWED}.")
    found: Callable[[Any], object] = view
    return found


def _loaded(file: str) -> ModuleType:
    spec = spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise NotFoundError(f"{file} is not a Python file: its name does not end in .py.")
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def _answer(view: Callable[[Any], object], asked: dict[str, Any], runs: dict[str, Run], *, file: str) -> dict[str, Any]:
    try:
        run = runs.get(asked["path"])
        if run is None:
            runs.clear()  # one run at a time, so that its file handles and indices do not pile up
            run = runs[asked["path"]] = open_run(asked["path"])
        run.refresh()
        model = run.model(asked["model"])
        if asked["optimizer"] is not None:
            model = model.updated_by(asked["optimizer"])
        page = page_of(view(selection_from(asked, asked["run"], model)), theme=asked["theme"])
        size = len(page.encode("utf-8", "replace"))
        if size > MOST_BYTES:
            return {"fault": f"The view's page has {size:,} bytes; at most {MOST_BYTES:,} are shown. Draw less."}
    except BaseException as fault:  # whatever the function does, also SystemExit
        return {"fault": told(fault, file)}
    return {"page": page}


def told(fault: BaseException, file: str) -> str:
    """The traceback from the user's file on; of an error of ours, its sentence first."""
    frames = _from_file(fault.__traceback__, file)
    sentence = f"{fault}\n\n" if isinstance(fault, TorchgraphError) else ""
    if frames is None and sentence:
        return sentence.strip()
    try:
        return sentence + "".join(traceback.format_exception(type(fault), fault, frames or fault.__traceback__))
    except Exception:  # an exception whose __str__ raises
        return type(fault).__name__


def _from_file(frames: TracebackType | None, file: str) -> TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename != file:
        frames = frames.tb_next
    return frames


def _tell(out: IO[str], message: dict[str, Any]) -> None:
    with suppress(OSError):  # the server is gone
        out.write(json.dumps(message) + "\n")
        out.flush()
