"""Whatever stderr and warnings are, no message reaches training, and only console.py prints."""

from __future__ import annotations

import ast
import io
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests import warm
from tests.listening import Listening
from tests.shared import FORKED
from torchgraph_explorer import console, watch
from torchgraph_explorer.capture.forward_recorder import ForwardRecorder
from torchgraph_explorer.console import info, reason, warn
from torchgraph_explorer.errors import TorchgraphWarning

ROOT = Path(__file__).parent.parent


class Raising(io.StringIO):
    """A stream of the user's, whose every use raises."""

    def __init__(self, fault: BaseException) -> None:
        super().__init__()
        self._fault = fault

    def write(self, _: str) -> int:
        raise self._fault

    def flush(self) -> None:
        raise self._fault

    def isatty(self) -> bool:
        raise self._fault


class Odd(Exception):
    """An exception of the user's, which cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def test_a_message_is_one_line_whatever_a_folder_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    info("recording to runs/two\nlines\x1b[31m")
    assert capsys.readouterr().err == "torchgraph: recording to runs/two\\nlines\\x1b[31m\n"


class Unfinished(io.StringIO):
    """A stream without most of what a stream has."""

    write = flush = property()


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


STREAMS: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "closed": closed,
    "broken pipe": lambda: Raising(BrokenPipeError()),
    "raises ValueError": lambda: Raising(ValueError("no")),
    "raises RuntimeError": lambda: Raising(RuntimeError("reentrant call")),
    "raises the user's own": lambda: Raising(Odd()),
    "raises MemoryError": lambda: Raising(MemoryError()),
    "raises RecursionError": lambda: Raising(RecursionError()),
    "half a stream": Unfinished,
    "a number": lambda: 2,
    "ascii": lambda: io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict"),
}


def raising(*_: object, **__: object) -> Any:
    raise Odd


def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    """As Python shows warnings; pytest keeps them instead."""
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def make_errors(_: pytest.MonkeyPatch) -> None:
    warnings.simplefilter("error")


def break_showing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warnings, "showwarning", raising)


def break_formatting(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_warnings(monkeypatch)
    monkeypatch.setattr(warnings, "formatwarning", raising)


def break_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warnings, "filters", [("error", 7, None, "x", "y")])
    monkeypatch.setattr(warnings, "warn", raising)


def leave_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings.simplefilter("always")
    monkeypatch.setattr(warnings, "showwarning", show)


WARNINGS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "shown": leave_warnings,
    "errors": make_errors,
    "showwarning raises": break_showing,
    "formatwarning raises": break_formatting,
    "warn itself raises": break_filters,
}


@pytest.fixture(params=STREAMS)
def _stream(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", STREAMS[request.param]())


@pytest.fixture(params=WARNINGS)
def _warnings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with warnings.catch_warnings():
        WARNINGS[request.param](monkeypatch)
        yield


def trained(**options: Any) -> list[float]:
    torch.manual_seed(3)
    model, losses = nn.Linear(3, 2), list[float]()
    watcher = watch(model, log_freq=1, **options) if options else None
    for _ in range(3):
        loss = model(torch.randn(4, 3)).square().mean()
        loss.backward()
        losses.append(loss.item())
    if watcher is not None:
        watcher.close()
    return losses


@pytest.mark.usefixtures("_stream", "_warnings")
def test_nothing_that_is_said_reaches_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = trained()
    monkeypatch.setattr(ForwardRecorder, "leave", raising)  # something to say, in the training's thread
    assert trained(backend="record", logdir=tmp_path) == expected
    info("a line")
    info("an arrow → and half a letter \ud800")
    warn("a warning")


@pytest.mark.parametrize("break_it", [make_errors, break_showing, break_formatting, break_filters])
def test_what_cannot_be_a_warning_is_a_line(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings(), monkeypatch.context() as patch:
        break_it(patch)
        warn("Step 3 is not recorded.")
    assert capsys.readouterr().err == "torchgraph: Step 3 is not recorded.\n"


def test_letters_that_a_stream_has_not_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stderr", stream)
    info("a → b")
    assert stream.buffer.getvalue() == b"torchgraph: a \\u2192 b\n"


@pytest.mark.parametrize("speak", [info, warn])
@pytest.mark.parametrize("fault", [KeyboardInterrupt(), SystemExit(3)], ids=lambda fault: type(fault).__name__)
def test_what_ends_a_program_is_the_users(
    speak: Callable[[str], None], fault: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Raising(fault))
    with warnings.catch_warnings():
        leave_warnings(monkeypatch)
        with pytest.raises(type(fault)):
            speak("anything")


def test_a_fault_that_has_no_words_is_told_by_its_type() -> None:
    assert (reason(Odd()), reason(KeyError("x"))) == ("Odd", "KeyError: 'x'")


def test_a_fault_that_comes_with_each_call_is_told_once_and_so_many_different_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(console, "warned", set())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            for number in range(console.MOST_WARNINGS + 10):
                console.warn_once(f"fault {number}")
    assert [str(one.message) for one in told] == [f"fault {number}" for number in range(console.MOST_WARNINGS)]


def test_a_warning_may_use_all_that_the_training_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What shows warnings is the user's. Here it waits for another thread that uses the model and the watcher."""
    model = nn.Linear(3, 2)
    shown: list[str] = []

    def keep(message: Warning, *_: object) -> None:
        def use() -> None:
            model(torch.randn(4, 3)).sum().backward()
            watcher.step = 1000

        other = threading.Thread(target=use, daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive()
        shown.append(str(message))

    class Failing(Listening):
        def write(self, record: Any) -> None:
            super().write(record)
            if len(self.records) == 3:
                raise ValueError("no more")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", keep)
        watcher = watch(model, log_freq=1, backend=Failing(), verbose=False)
        for _ in range(3):
            model(torch.randn(4, 3)).sum().backward()
        watcher.close()
    assert any("ValueError: no more" in one for one in shown)


CLOSED = """
import os, sys, torch
from torchgraph_explorer import console, watch
getattr(os, "close")(2) if sys.argv[2] == "descriptor" else sys.stderr.close()
model = torch.nn.Linear(3, 2)
watcher = watch(model, log_freq=1, logdir=sys.argv[1], port=0)
model(torch.randn(4, 3)).sum().backward()
print("trained")
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stream", "descriptor"])
@FORKED
def test_a_process_whose_stderr_is_closed_ends_well(how: str, tmp_path: Path) -> None:
    done = warm.run("-c", CLOSED, str(tmp_path), how, frees_all=True)
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert list(tmp_path.rglob("*.tgraph"))


OWN_WORDS = {
    "torchgraph_explorer/console.py": "the one place",
    "torchgraph_explorer/cli": "a command: what it says is its result",
    "torchgraph_explorer/demo.py": "the same",
    "torchgraph_explorer/server": "a process of its own",
    "torchgraph_explorer/record/notices.py": "of a record that is read, where a user may make warnings errors",
    "wandb_panel/torchgraph_wandb/commands.py": "a command",
    "wandb_panel/torchgraph_wandb/snapshot_process.py": "a process of its own",
    "tb_plugin/torchgraph_tensorboard": "in TensorBoard's process",
}
"""Files, or folders, that say something by other means, and why they may."""

ALWAYS_SILENT = ("tb_plugin/torchgraph_tensorboard/sink.py",)
"""What trains, though it is in such a folder."""

FILES = [
    file
    for place in ("torchgraph_explorer", "wandb_panel/torchgraph_wandb", "tb_plugin/torchgraph_tensorboard")
    for file in sorted((ROOT / place).rglob("*.py"))
    if "node_modules" not in file.parts
]


def speaks(source: str) -> list[str]:
    """What in `source` says something by other means than console.py."""
    return [found for node in ast.walk(ast.parse(source)) if (found := _speaks(node))]


def _speaks(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Name(id="print" | "input" as name)):
            return name
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr=stream), attr="isatty" | "fileno"):
            return ""
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr=stream), attr=attribute):
            return f"sys.{stream}.{attribute}" if stream.strip("_") in ("stdout", "stderr") else ""
        case ast.Attribute(value=ast.Name(id="warnings" | "logging" | "traceback" as module), attr=attribute):
            # The last is of a variable of that name.
            is_quiet = attribute.startswith(("format", "catch_", "simplefilter", "tb_"))
            return "" if is_quiet else f"{module}.{attribute}"
        case ast.ImportFrom(module="warnings" | "logging" | "traceback" as module):
            return f"from {module}"
    return ""


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_only_say_says_something_while_a_model_trains(file: Path) -> None:
    name = file.relative_to(ROOT).as_posix()
    if name in ALWAYS_SILENT or not name.startswith(tuple(OWN_WORDS)):
        assert speaks(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("print('x')", ["print"], id="print"),
        pytest.param("import sys\nsys.stderr.write('x')", ["sys.stderr.write"], id="stderr"),
        pytest.param("import sys\nif sys.stdin.isatty() and sys.stderr.isatty(): pass", [], id="asks for a terminal"),
        pytest.param("import warnings\nwarnings.warn('x')", ["warnings.warn"], id="warning"),
        pytest.param("from warnings import warn", ["from warnings"], id="imported"),
        pytest.param("import logging\nlog = logging.getLogger()", ["logging.getLogger"], id="log"),
        pytest.param("import traceback\ntraceback.print_exc()", ["traceback.print_exc"], id="traceback"),
        pytest.param("from torchgraph_explorer.console import warn\nwarn('x')", [], id="say"),
    ],
)
def test_other_ways_to_say_something_would_be_found(source: str, expected: list[str]) -> None:
    assert speaks(source) == expected


def test_a_category_of_its_own_lets_a_user_silence_all_of_it() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", TorchgraphWarning)
        warn("anything")
    assert caught == []


def keep_without_keeper() -> None:
    with watch(nn.Linear(1, 1), backend="none") as watcher:
        watcher.keep("why")


def in_a_thread_of_ours() -> None:
    thread = threading.Thread(target=warn, args=["Something."])
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("act", "file"),
    [
        pytest.param(keep_without_keeper, __file__, id="by the user's code"),
        pytest.param(lambda: exec("warn('Something.')", {"warn": warn}), __file__, id="by code of no module"),
        pytest.param(in_a_thread_of_ours, "torchgraph", id="in a thread of ours"),
    ],
)
def test_a_warning_shows_a_line_of_the_users_or_none(act: Callable[[], None], file: str) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        act()
    assert [(one.category, one.filename) for one in seen] == [(TorchgraphWarning, file)]
