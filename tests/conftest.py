"""What many tests need: a browser, a recorded run, the same random numbers every time."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.chrome import find_chrome

# Torch is imported by fixtures: the process that hands tests to others reads this file too, and needs it not.
if TYPE_CHECKING:
    from playwright.sync_api import Browser


# Over ssh, more is printed.
os.environ.pop("SSH_CONNECTION", None)


def pytest_collection() -> None:
    """Nothing that is imported and collected becomes garbage: to look for some takes a tenth of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()


CASES = pytest.StashKey[dict[str, list[bool]]]()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups, and what is not selected is taken out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On several cores what takes long comes first: a test that is left for the end keeps a single core busy.

    A test that asks for a browser is marked so. Tests that share what is made once a file run in one process, which
    makes it. Those in a browser have other groups.
    """
    cases: dict[str, list[bool]] = defaultdict(list)
    config.stash[CASES] = cases
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item.get_closest_marker("exhaustive") is not None)
        if "chrome" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
        if shares_with_its_file(item) and not any(map(item.get_closest_marker, ("browser", "xdist_group"))):
            item.add_marker(pytest.mark.xdist_group(f"{item.path.parent.name} {item.path.stem}"))
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: not any(item.get_closest_marker(mark) for mark in ("slow", "browser")))


@pytest.fixture(scope="session")
def cases(request: pytest.FixtureRequest) -> dict[str, list[bool]]:
    """Of each test that was collected, whether its cases are exhaustive ones."""
    return request.config.stash[CASES]


def shares_with_its_file(item: pytest.Item) -> bool:
    """Whether a test has a fixture of the scope "module"."""
    if not isinstance(item, pytest.Function):
        return False
    return any(definitions[-1].scope == "module" for definitions in item._fixtureinfo.name2fixturedefs.values())


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Beside a browser or a child process, threads of torch that wait for each other take several times as long.

    Neither has its compiler a pool of processes, which would import torch again in each.
    """
    import torch

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def python_started(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The commands with which a fast test has started Python. There may be none: to start it takes too long."""
    started: list[Any] = []
    if any(map(request.node.get_closest_marker, ("slow", "browser"))):
        yield started
        return
    start, us = subprocess.Popen.__init__, sys.executable

    def noting(process: subprocess.Popen[Any], command: Any, *others: Any, **options: Any) -> None:
        if us in command:
            started.append(command)
        start(process, command, *others, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", noting)
    yield started
    assert started == [], "A test that starts Python has to be marked `slow`."


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c() -> None:
    """Started in the background of a shell, this process ignores Ctrl-C, and so would those that tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


SEARCHED = 5_000
"""So many objects the collector may know of before a test begins."""


@pytest.fixture(autouse=True)
def _only_what_tests_make_is_searched() -> None:
    """`watch` searches all objects for optimizers and compiled modules; those of torch and earlier tests are many."""
    if len(gc.get_objects()) > SEARCHED:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def _compiled_code_is_torchs_own_again() -> Iterator[None]:
    """A test that leaves compiled code running in our form would fail another one, in some orders only."""
    yield
    if (loaded := sys.modules.get("torchgraph_explorer.capture.process_state")) is not None:
        assert not loaded.process_state.inline.window.on


SECONDS_UNTIL_OFF = 10.0
"""How long an interrupt may leave a trace on."""


@pytest.fixture(autouse=True)
def _nothing_is_traced_after_a_test() -> Iterator[None]:
    """A trace that is left on would follow all that later tests do. An interrupt leaves it on for a moment."""
    yield
    if (loaded := sys.modules.get("torchgraph_explorer.capture.trace")) is not None:
        from torchgraph_explorer.capture.mode_stack import modes, set_modes

        deadline = time.monotonic() + SECONDS_UNTIL_OFF
        while left := [mode for mode in modes() if isinstance(mode, loaded.Trace)]:
            if time.monotonic() > deadline:
                set_modes([mode for mode in modes() if mode not in left])
                pytest.fail(f"{left[0]} is left on")
            time.sleep(0.01)


@pytest.fixture
def compiled_anew() -> Iterator[None]:
    """Afterwards nothing is compiled. Torch gives a function up after it was compiled a number of times."""
    yield
    if "torch._dynamo" in sys.modules:
        import torch

        torch.compiler.reset()


@pytest.fixture(autouse=True)
def _compilations_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """For its log dynamo empties the processor's caches to time the guards, and writes out all of its options."""
    if (guards := sys.modules.get("torch._dynamo.guards")) is not None:
        monkeypatch.setattr(guards, "profile_guard_manager", lambda *_: 0.0)
        monkeypatch.setattr(sys.modules["torch._dynamo.utils"], "_scrubbed_inductor_config_for_logging", lambda: None)


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    """`torch.manual_seed` would note the whole stack each time, for devices that are not used yet."""
    import torch

    torch.default_generator.manual_seed(0)


@pytest.fixture(scope="session")
def chrome() -> str:
    """The Chrome or Chromium to test in."""
    found = find_chrome()
    assert found, "No Chrome or Chromium: `make test` installs one, or set CHROME=/path/to/it."
    return found


@pytest.fixture(scope="session")
def browser(chrome: str) -> Iterator[Browser]:
    """One browser for all tests; each has a context of its own in it."""
    from playwright.sync_api import expect, sync_playwright

    from tests.browser.page import SECONDS_TO_SHOW, SWITCHES

    expect.set_options(timeout=SECONDS_TO_SHOW * 1000)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chrome, args=list(SWITCHES))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def recorded_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of three steps. Tests may read it, and must not change it."""
    import torch
    from torch import nn

    from torchgraph_explorer import watch

    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True), nn.Linear(3, 2))
    logdir = tmp_path_factory.mktemp("recorded")
    with watch(model, backend="record", log_freq=1, logdir=str(logdir), verbose=False) as watcher:
        for _ in range(3):
            model(torch.randn(5, 4)).sum().backward()
    assert watcher.run_dir is not None
    return Path(watcher.run_dir)
