"""The command line, as a user runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from zlib import crc32

import pytest

from tests import warm
from tests.processes import SECONDS, answers, python, taken_port, torchgraph
from tests.record.examples import SERIES, flip, other_session, records, segment, write, write_small_run
from tests.record.fuzzing import kept
from tests.shared import FORKED
from torchgraph_explorer.cli.printing import MOST_WARNINGS
from torchgraph_explorer.record.discovery import RunFolder
from torchgraph_explorer.record.format.envelope import VERSION

pytestmark = pytest.mark.slow


COMMAND_LINE = ("torchgraph_explorer.cli", "torchgraph_explorer.run")
"""The second is imported by the first command that reads a run."""


def run(*arguments: str, modules: tuple[str, ...] = COMMAND_LINE) -> subprocess.CompletedProcess[str]:
    """What a command does. Most need no torch."""
    return warm.run(*torchgraph(*arguments), modules=modules, timeout=60)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ([], ["demo", "serve", "info", "export", "--version"]),
        (["demo"], ["--logdir", "--steps", "--no-serve", "--port", "--no-browser", "default: 600"]),
        (
            ["serve"],
            ["LOGDIR", "--host", "--port", "--no-browser", "default: 127.0.0.1", "access token", "default: runs"],
        ),
        (["info"], ["RUN", "--json"]),
        (["export"], ["RUN", "--output", "--steps", "--series", "--model", "default: 100", "2 MB"]),
    ],
    ids=["torchgraph", "demo", "serve", "info", "export"],
)
def test_help_names_every_option(command: list[str], told: list[str]) -> None:
    done = run(*command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert [word for word in told if word not in " ".join(done.stdout.split())] == []


def test_the_package_is_the_same_command() -> None:
    command = [sys.executable, "-m", "torchgraph_explorer", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, run("--version").stdout)


WRONG = {
    "no command": ([], "usage: torchgraph [-h] [--version] COMMAND ..."),
    "no command of wandb": (["wandb"], "usage: torchgraph wandb [-h] COMMAND ..."),
    "unknown command": (["sevre"], "invalid choice: 'sevre'"),
    "port too large": (
        ["serve", ".", "--port", "65536"],
        "'65536' is not a port; choose one from 1 to 65535, or 0 for any",
    ),
    "port below zero": (["serve", ".", "--port=-1"], "'-1' is not a port"),
    "port in words": (["demo", "--port", "http"], "'http' is not a port"),
    "no folder": (["serve", "nowhere"], "torchgraph: nowhere is not a folder. Pass the one that watch(logdir=...)"),
    "no host": (["serve", ".", "--host", "203.0.113.7"], "Cannot listen on host '203.0.113.7'"),
    "no run": (["info", "nowhere"], "torchgraph: nowhere does not exist."),
    "not a run": (["info", "tests/layout"], "torchgraph: tests/layout is not a run"),
    "unknown store": (["info", "nope://bucket"], "torchgraph: nope://bucket cannot be opened"),
    "no run given": (["check", ""], "argument RUN: it is empty; perhaps a variable of your shell is not set"),
    "no folder given": (["serve", " "], "argument LOGDIR: it is empty"),
    "no output given": (["export", "tests", "-o", ""], "argument -o/--output: it is empty"),
    "no address given": (["serve", ".", "--host", ""], "argument --host: it is empty"),
    "unknown store to serve": (["serve", "nope://bucket"], "torchgraph: nope://bucket cannot be opened"),
    "steps in words": (["demo", "--steps", "many"], "'many' is not a whole number; give one such as 100"),
    "megabytes in words": (
        ["export", "tests", "-o", "x", "--tensors", "all"],
        "'all' is not a number; give one such as",
    ),
}

WRONG_FOR_TORCH = {
    "no case": (["explore", "pyproject.toml"], "pyproject.toml is not a case. A case is an .npz file."),
    "no steps": (["demo", "--steps", "0", "--no-serve"], "cannot train for 0 steps"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_said_without_a_traceback(arguments: list[str], message: str) -> None:
    check_mistake(run(*arguments), message)


@FORKED
@pytest.mark.parametrize(("arguments", "message"), WRONG_FOR_TORCH.values(), ids=WRONG_FOR_TORCH)
def test_a_mistake_that_a_training_meets_is_said_without_a_traceback(arguments: list[str], message: str) -> None:
    check_mistake(run(*arguments, modules=warm.TORCH), message)


def check_mistake(done: subprocess.CompletedProcess[str], message: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_of_several_models_it_is_said_how_to_choose_one(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    write(tmp_path, SERIES, session=other_session("critic", model="the critic"))
    for command in (["xray", str(tmp_path), "-o", str(tmp_path / "x.svg")], ["diff", str(tmp_path), str(tmp_path)]):
        assert "2 models. Choose one with --model net or --model 'the critic'." in run(*command).stderr


@FORKED
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that nobody can write to")
def test_a_demo_that_cannot_record_says_so() -> None:
    done = run("demo", "--logdir", "/proc/nowhere", "--steps", "1", "--no-serve", modules=warm.TORCH)
    assert (done.returncode, "so nothing was recorded. Pass another --logdir." in done.stderr) == (2, True)


def test_info_says_what_a_run_holds(tmp_path: Path) -> None:
    write_small_run(tmp_path / "a")
    (model,) = (told := json.loads(run("info", str(tmp_path / "a"), "--json").stdout))["models"]
    assert (told["run"], told["first_write"], told["last_write"], told["warnings"]) == ("a", 1000.5, 3000, [])
    assert told["bytes"] == segment(tmp_path / "a").stat().st_size
    assert model == {
        **{"model": "net", "class_name": "ResNet", "steps": 3, "first_step": 0, "last_step": 20, "series": 4},
        **{
            "calls": 3,
            "edges": 3,
            "graphs": 1,
            "sessions": 1,
            "finished": True,
            "stopped": False,
            "notes": ["Nothing was lost."],
        },
        **{"kept_steps": 0, "kept_tensors": 0},
    }


def test_info_tells_what_was_kept_whole_and_what_of_it_is_damaged(tmp_path: Path) -> None:
    kept(tmp_path)
    assert "kept whole   8 tensors at 2 steps\n" in run("info", str(tmp_path)).stdout
    file = segment(tmp_path).parent / "tensors/000000.tgraph"
    flip(file, records(file.read_bytes())[-1] + 20)
    assert "warning      segment tensors/000000.tgraph: record at byte" in run("info", str(tmp_path)).stdout
    head = file.read_bytes()[:8] + (VERSION + 1).to_bytes(4, "little")
    file.write_bytes(head + crc32(head).to_bytes(4, "little") + file.read_bytes()[16:])
    assert "note         what was kept of tensors cannot be read: " in run("info", str(tmp_path)).stdout


def test_info_tells_damage_once_and_as_a_sentence(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    flip(segment(tmp_path), records(segment(tmp_path).read_bytes())[-2] + 20)
    done = run("info", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("warning      segment 000000.tgraph: record at byte") == 1


def test_a_warning_is_a_line_without_the_place_in_our_code(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    flip(segment(tmp_path), records(segment(tmp_path).read_bytes())[-2] + 20)
    done = run("check", str(tmp_path))
    [line] = done.stderr.splitlines()
    assert line.startswith("torchgraph: warning: segment 000000.tgraph: record at byte")


def test_of_very_many_warnings_the_last_ones_are_counted(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    for number in range(1, MOST_WARNINGS + 4):
        segment(tmp_path, number).write_bytes(segment(tmp_path).read_bytes())
    lines = run("check", str(tmp_path)).stderr.splitlines()
    assert [len(lines), lines[-1]] == [MOST_WARNINGS + 1, "torchgraph: and 3 more warnings"]


def test_info_of_a_folder_without_a_run_takes_the_only_one_below(tmp_path: Path) -> None:
    write_small_run(tmp_path / "group" / "a")
    assert "run          group/a" in run("info", str(tmp_path)).stdout


@pytest.mark.parametrize("command", ["info", "check", "export", "xray"])
def test_names_of_folders_cannot_write_to_the_terminal(command: str, tmp_path: Path) -> None:
    write_small_run(tmp_path / "runs" / "one\x1b[31m")
    write_small_run(tmp_path / "runs" / "other")
    done = run(
        command, str(tmp_path / "runs"), *(["-o", str(tmp_path / "page")] if command in {"export", "xray"} else [])
    )
    assert (done.returncode, "\x1b" in done.stderr, r"one\x1b[31m" in done.stderr) == (2, False, True)


@pytest.mark.parametrize("command", ["info", "check", "serve"])
def test_an_error_is_one_line_whatever_a_folder_is_called(command: str, tmp_path: Path) -> None:
    done = run(command, str(tmp_path / "two\nlines\x1b[31m"))
    assert done.returncode == 2
    assert done.stderr.startswith(f"torchgraph: {tmp_path}/two\\nlines\\x1b[31m ")
    assert done.stderr.count("\n") == 1


def test_a_long_search_for_a_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from torchgraph_explorer import run as runs
    from torchgraph_explorer.cli import main, options

    write_small_run(tmp_path / "a")
    locate = runs.locate

    def slowly(path: str) -> RunFolder:
        time.sleep(0.3)
        return locate(path)

    monkeypatch.setattr(runs, "locate", slowly)
    for patience, told in ((0.01, True), (60, False)):
        monkeypatch.setattr(options, "PATIENCE", patience)
        assert main(["info", str(tmp_path)]) == 0
        assert (f"torchgraph: looking for a run in {tmp_path} and in all" in capsys.readouterr().err) is told


def test_without_a_command_all_of_them_are_listed() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    commands = ["demo", "serve", "info", "check", "explain", "diff", "xray", "export", "explore", "wandb"]
    assert re.findall(r"^    (\w+) +[A-Z]", done.stderr, re.M) == commands


def test_info_into_a_pipe_that_closes_is_quiet(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    with python(*torchgraph("info", str(tmp_path)), stdout=writing) as process:
        os.close(writing)
        assert process.communicate(timeout=SECONDS)[1] == ""


def test_serve_shows_a_folder_until_ctrl_c(tmp_path: Path) -> None:
    write_small_run(tmp_path / "a")
    with taken_port() as port, python(*torchgraph("serve", str(tmp_path), "--port", str(port))) as server:
        assert server.stdout is not None
        assert re.fullmatch(
            rf"Port {port} is taken; using \d+\.\n", server.stdout.readline()
        )  # others may have the next
        match = re.fullmatch(r"Showing (.+) at (http://localhost:\d+/)\n", server.stdout.readline())
        assert match is not None
        assert server.stdout.readline() == "Press Ctrl-C to end.\n"
        assert (match[1], answers(match[2])) == (str(tmp_path), True)
        os.kill(server.pid, signal.SIGINT)
        assert server.communicate(timeout=SECONDS) == ("", "")
        assert server.returncode == 0


def test_serve_to_other_machines_says_so_and_wants_a_token(tmp_path: Path) -> None:
    with python(*torchgraph("serve", str(tmp_path), "--host", "0.0.0.0", "--port", "0")) as server:
        assert server.stdout is not None
        assert re.search(r" at http://[^/]+:\d+/\?token=\S{32}$", server.stdout.readline())
        assert "Everyone who has the address above, with its token, can see the runs." in server.stdout.readline()


def test_serving_imports_no_torch(tmp_path: Path) -> None:
    write_small_run(tmp_path / "a")
    script = """
import sys, threading
from torchgraph_explorer import cli
from torchgraph_explorer.server import process
process.Server.run = lambda self: None
cli.main(["serve", sys.argv[1], "--port", "0"])
cli.main(["info", sys.argv[1]])
print(*sorted({"torch", "tensorboard", "wandb"} & set(sys.modules)), "clean")
"""
    with python("-c", script, str(tmp_path)) as process:
        told, errors = process.communicate(timeout=SECONDS)
    assert (told.splitlines()[-1].strip(), errors) == ("clean", "")
