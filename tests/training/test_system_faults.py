"""What the system refuses is said in one sentence, and training goes on bit for bit; a mistake is an OptionError."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests import warm
from tests.compatibility.walk import fingerprint
from tests.listening import Listening
from tests.shared import FORKED
from tests.tables import matrix
from torchgraph_explorer import OptionError, TorchgraphWarning, open_run, watch
from torchgraph_explorer.record import segments

pytestmark = pytest.mark.slow


def trained(**options: Any) -> object:
    """What is left of a training, watched or not."""
    torch.manual_seed(6)
    model, losses = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = watch(model, log_freq=1, **options) if options else None
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(5, 3)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    if watcher is not None:
        watcher.close()
    return fingerprint([losses, dict(model.state_dict()), torch.get_rng_state()])


def raising(fault: Exception) -> Callable[..., Any]:
    def act(*_: object, **__: object) -> Any:
        raise fault

    return act


def refused(number: int) -> OSError:
    return OSError(number, os.strerror(number))


Break = Callable[[pytest.MonkeyPatch, Path], None]


def no_temporary_folder(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(
        tempfile, "_get_default_tempdir", raising(FileNotFoundError(2, "No usable temporary directory"))
    )


def no_working_directory(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    (folder / "gone").rmdir()


def no_thread(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    monkeypatch.setattr(threading.Thread, "start", raising(RuntimeError("can't start new thread")))


def no_process(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    monkeypatch.setattr(subprocess, "Popen", raising(refused(errno.EAGAIN)))


def no_host_name(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    monkeypatch.setattr(socket, "gethostname", raising(refused(errno.EPERM)))


def no_home(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(Path, "home", raising(RuntimeError("Could not determine home directory.")))


def alone_among_ranks(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    no_temporary_folder(monkeypatch, folder)


SURROUNDINGS: dict[str, tuple[Break, str | None, bool]] = {
    "no temporary folder": (no_temporary_folder, None, True),
    "no temporary folder, of several ranks": (alone_among_ranks, "ranks cannot agree on a run", True),
    "no working directory": (no_working_directory, "leads nowhere", False),
    "no thread": (no_thread, "Nothing is recorded, since no thread can be started", False),
    "no process": (no_process, "no live viewer: the server's process did not start", True),
    "no host name": (no_host_name, None, True),
    "no home": (no_home, None, True),
}
"""What is missing around a training; what is said of it, if anything; and whether it is recorded all the same."""


@pytest.fixture
def said(recwarn: pytest.WarningsRecorder, capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    """All that was said, but for the places of viewer and run."""

    def sentences() -> list[str]:
        lines = [line for line in capsys.readouterr().err.splitlines() if "Warning" not in line]
        told = [str(one.message) for one in recwarn if issubclass(one.category, TorchgraphWarning)]
        return told + [line for line in lines if line.strip()]

    return sentences


@pytest.mark.parametrize(("break_it", "sentence", "is_recorded"), SURROUNDINGS.values(), ids=SURROUNDINGS)
@pytest.mark.parametrize("phases", [("train",), ("train", "eval")], ids=["training", "with evaluation"])
def test_training_goes_on_where_something_is_missing(
    break_it: Break,
    sentence: str | None,
    is_recorded: bool,
    phases: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: Callable[[], list[str]],
) -> None:
    expected = trained()
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        break_it(patch, tmp_path)
        outcome = trained(logdir="runs", run="a", port=0, verbose=False, phases=phases)
    assert outcome == expected
    told = said()
    assert len(told) == (sentence is not None)
    assert (sentence or "") in "".join(told)
    if is_recorded:
        assert open_run(tmp_path / "runs").model("Sequential").steps.tolist() == [0, 1, 2, 3]


REFUSALS = ("EACCES", "EROFS", "ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ELOOP", "ESTALE", "ENOTCONN", "EPERM")


class Refusing:
    """Something of a disk that fails."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault

    def mkdir(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "mkdir", raising(self.fault))

    def listing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for function in ("listdir", "scandir"):  # pathlib calls the second one from Python 3.13 on
            monkeypatch.setattr(os, function, raising(self.fault))

    def opening(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(segments, "FileIO", raising(self.fault))

    def writing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(segments, "_write", raising(self.fault))


@pytest.mark.parametrize(
    ("backend", "where", "number"),
    matrix(
        ["record", "tensorboard"],
        [Refusing.mkdir, Refusing.listing, Refusing.opening, Refusing.writing],
        REFUSALS,
    ),
)
def test_a_disk_that_refuses_is_said_once(
    backend: str,
    where: Callable[[Refusing, pytest.MonkeyPatch], None],
    number: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: Callable[[], list[str]],
) -> None:
    fault, heard = refused(getattr(errno, number)), Listening()
    with monkeypatch.context() as patch:
        where(Refusing(fault), patch)
        outcome = trained(logdir=tmp_path / "runs", run="a", backend=[backend, heard], verbose=False)
    assert outcome == trained()
    [sentence] = said()
    assert f"cannot be written to ({type(fault).__name__}: {fault})" in sentence
    assert len(heard.frames) == 4, "other sinks get all of it"


def a_file(folder: Path) -> dict[str, Any]:
    (folder / "file").touch()
    return {"logdir": folder / "file"}


def below_a_file(folder: Path) -> dict[str, Any]:
    (folder / "file").touch()
    return {"logdir": folder / "file" / "runs"}


def a_run_that_is_a_file(folder: Path) -> dict[str, Any]:
    (folder / "file").touch()
    return {"logdir": folder, "run": "file"}


MISTAKES: dict[str, tuple[Callable[[Path], dict[str, Any]], str]] = {
    "logdir is a number": (lambda _: {"logdir": 3}, r"logdir=3 is not a folder for runs\. Pass a path"),
    "logdir is None": (lambda _: {"logdir": None}, r"logdir=None is not a folder for runs"),
    "logdir is bytes": (lambda _: {"logdir": b"runs"}, r"logdir=b'runs' is not a folder for runs"),
    "logdir has a NUL": (lambda _: {"logdir": "a\0b"}, r"logdir='a\\x00b' is not a folder for runs"),
    "logdir is a file": (a_file, r"cannot be the folder of a run, since .*file is a file\. Pass another logdir="),
    "logdir is below a file": (below_a_file, r"since .*file is a file\. Pass another logdir="),
    "run is a file": (a_run_that_is_a_file, r"since .*file is a file\. Pass another logdir= or run="),
    "path is too long": (
        lambda folder: {"logdir": folder / "/".join(["x" * 200] * 40)},
        r"is too long for the path of a folder\. Pass a shorter logdir= or run=",
    ),
    "nobody knows such URLs": (
        lambda _: {"logdir": "gopher://host/runs"},
        r"gopher://.* cannot be opened: .* Install what is missing or use a local folder",
    ),
    "name is a number": (lambda _: {"name": 3}, r"name=3 is not a name for a model\. Pass a str"),
    "name is bytes": (lambda _: {"name": b"net"}, r"name=b'net' is not a name for a model"),
    "bins": (lambda _: {"bins": 2**40}, r"bins=1099511627776 .* from 1 to 65536"),
}


@pytest.mark.parametrize(("options", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_what_is_allowed_and_leaves_nothing(
    options: Callable[[Path], dict[str, Any]], message: str, tmp_path: Path
) -> None:
    given = {"logdir": tmp_path / "runs", "backend": "record", "verbose": False, **options(tmp_path)}
    model = nn.Linear(2, 2)
    with pytest.raises(OptionError, match=message):
        watch(model, **given)
    assert not model._forward_pre_hooks
    assert [one.name for one in tmp_path.iterdir()] in ([], ["file"])


def test_a_wandb_run_is_watched_where_the_user_has_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Callable[[], list[str]]
) -> None:
    from tests.compatibility.test_sink_faults import wandb_run

    expected = trained()
    no_home(monkeypatch, tmp_path)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert trained(backend="wandb", run=wandb_run(), logdir=tmp_path, verbose=False) == expected
    assert not [one for one in said() if "home" in one]


REAL = """
import os, resource, sys
import torch
from torchgraph_explorer import watch

kind = sys.argv[2]
model = torch.nn.Linear(3, 2)
with watch(model, log_freq=1, backend=sys.argv[3], port=0, logdir=sys.argv[1] + "/before", verbose=False):
    model(torch.randn(4, 3)).sum().backward()  # loads what is loaded at the first step
if kind == "no file descriptor":
    first_free = os.dup(0)
    os.close(first_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (first_free, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
elif kind == "no room for a file":
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
elif kind == "no temporary folder":
    os.environ["TMPDIR"] = "/nowhere"
elif kind == "the working directory is deleted":
    os.mkdir(os.path.join(sys.argv[1], "gone")), os.chdir(os.path.join(sys.argv[1], "gone"))
    os.rmdir(os.path.join(sys.argv[1], "gone"))
watcher = watch(model, log_freq=1, backend=sys.argv[3], logdir="runs" if "deleted" in kind else sys.argv[1], port=0)
for _ in range(3):
    model(torch.randn(4, 3)).sum().backward()
print("trained")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "backend"),
    matrix(
        ["no file descriptor", "no room for a file", "no temporary folder", "the working directory is deleted"],
        ["record", "standalone", "tensorboard"],
    ),
)
@FORKED
def test_a_real_process_trains_on(kind: str, backend: str, tmp_path: Path) -> None:
    done = warm.run("-c", REAL, str(tmp_path), kind, backend, frees_all=True)
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("TorchgraphWarning") == (kind != "no temporary folder"), done.stderr
