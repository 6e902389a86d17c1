"""Runs every case and writes `docs/compatibility.md`: `python -m tests.compatibility [part of a case's name]`."""

from __future__ import annotations

import os
import platform
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from tests.compatibility.case import Case
from tests.compatibility.complete import check_complete
from tests.compatibility.faults import check_unkillable
from tests.compatibility.table import CASES, faults_for, is_first_of_its_theme
from tests.compatibility.test_distributed import MODULES, WAYS, ranks, start, steps_of
from tests.compatibility.undisturbed import check_copies, check_kept, check_undisturbed

PAGE = Path("docs/compatibility.md")
SECONDS = 60
"""For one check; beyond, it counts as hanging."""

HEAD = """# Which models does it work with?

The tables below list the models and trainings that the tests run, watched and unwatched, with what holds for each. What
uses a library is under [Frameworks](#frameworks), and `torch.compile` under [Compiled](#compiled).

All cases were run with torch {torch} and Python {python}.
`python -m tests.compatibility` runs them and writes this page; `make test-all` runs the same.

- **undisturbed**: the model is trained twice from the same seed, unwatched and watched. Losses, parameters, buffers,
  gradients, optimizer state, random number generators and printed output are equal byte for byte. For the first case of
  each theme, so are copies made by `deepcopy`, `pickle` and `torch.save`, both between and during steps.
- **kept**: the same is true of a training that keeps every input, output and parameter whole, with `keep=`. The cases
  with two processes have no column for it: the training that is compared there also keeps these tensors.
- **complete**: every module call that plain hooks see is in the graph, and every tensor has a series, at its step. The
  graph has the edges that autograd knows of. If an output of the model turns NaN when an input does, the graph leads
  from that output back to the input.
- **unkillable**: one function of this package is made to raise. The training is still the same byte for byte, and one
  warning tells of the error. Each case is run with another function that it calls; those marked † with every function
  that they call.

There is one exception to undisturbed: logged steps of a model that the default backend of `torch.compile` has compiled,
or `aot_eager` under autocast. See [Compiled](#compiled).

"no, note 1" means that this promise cannot be kept for the case. The [note](#notes) says why, and what you see instead.
"""


LOGGED_COMPILED = """\
These cases run with `watch(..., compiled="inline")`. Here, complete means that the record equals that of the same
training with `compiled="eager"`. Only the sizes in its graph may differ: they are those of the steps that ran as
written."""

COMPILED = """\
With the backends `eager` and `aot_eager`, which compute as torch itself does, every step is equal byte for byte. There
is one exception: under `torch.autocast`, `aot_eager` rounds gradients differently from uncompiled code. There, a logged
step differs from the compiled one in the last bits, as described for `inductor` below.

The default backend, `inductor`, makes code that rounds differently from uncompiled code, and that draws other random
numbers, for example for dropout. With it:

- **A step that is not logged** runs the same code as the unwatched training: from the same parameters, buffers and
  random state, it gives the same bytes. So does a training in which no step is logged.
- **A step that is logged** does not. It runs as it was written, or with `compiled="inline"` in a second compiled form,
  which may round differently. With `compiled="inline"`, the first logged step also runs as it was written, because the
  graph is taken from it. Without random numbers, the result differs in the last bits of float32 (about 3e-7 was
  measured). With dropout, other elements are dropped.
- **The steps after it** begin from its result, so the training is not equal byte for byte from there on.

`tests/compatibility/test_default_backend.py` checks all of this. The two cases of the default backend here are compared
with an unwatched training that runs the same steps as written."""

NO_TIMM = """\
timm is missing here: none of its releases that were tried (1.0.31 to 0.4.12) imports without torchvision, and
torchvision has no build for the torch without CUDA that these tests use. Models of both were tried by hand, with
stand-ins for torchvision's compiled operators, and so were programs of some 60 other packages. Whatever differed is now
a case here or a test."""

SAID = {"compiled": COMPILED, "compiled, and logged compiled": LOGGED_COMPILED, "frameworks": NO_TIMM}
"""What is to be said of a theme."""


def main(part: str = "") -> int:
    """Run the cases whose name has `part` in it; write the page when that is all. Returns how many failed."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
    rows = [(case, _results(case)) for case in CASES if part in case.id]
    for case, results in rows:
        for promise, result in results.items():
            if result.startswith("failed"):
                print(f"{promise} {case.id}: {result}", file=sys.stderr)
    if not part:
        PAGE.write_text(page(rows, _distributed()))
    return sum(result.startswith("failed") for _, results in rows for result in results.values())


def _results(case: Case) -> dict[str, str]:
    """For each promise `holds`, `cannot`, `failed: ...` or `not run`."""
    if case.missing:
        return dict.fromkeys(CHECKS, "not run")
    return {promise: _result(case, promise, check) for promise, check in CHECKS.items()}


def _result(case: Case, promise: str, check: Callable[[Case], object]) -> str:
    try:
        with _limited(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            check(case)
    except Exception as fault:
        return "cannot" if case.why_not(promise) else f"failed: {type(fault).__name__}: {fault}"
    return "failed: it holds, although it is said that it cannot" if case.why_not(promise) else "holds"


def _unkillable(case: Case) -> None:
    if not any(check_unkillable(case, fault) for fault in faults_for(case)):
        raise AssertionError("the case met none of its faults")


def _undisturbed(case: Case) -> None:
    check_undisturbed(case)
    if is_first_of_its_theme(case):
        check_copies(case)


CHECKS: dict[str, Callable[[Case], object]] = {
    "P1": _undisturbed,
    "kept": check_kept,
    "P2": check_complete,
    "P3": _unkillable,
}


@contextmanager
def _limited() -> Iterator[None]:
    def end(*_: object) -> None:
        raise TimeoutError(f"not done after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def page(rows: list[tuple[Case, dict[str, str]]], distributed: Iterable[tuple[str, bool, bool, bool]]) -> str:
    """The text of the page: for each case what became of each promise, and the same for two processes."""
    notes: list[str] = []
    parts = [HEAD.format(torch=torch.__version__.partition("+")[0], python=platform.python_version())]
    for theme, group in groupby(rows, key=lambda row: row[0].theme):
        parts += [
            f"\n## {theme[0].upper()}{theme[1:]}\n",
            *([f"{SAID[theme]}\n"] if theme in SAID else []),
            "| case | undisturbed | kept | complete | unkillable |",
            "|---|---|---|---|---|",
        ]
        parts += [_row(case, results, notes) for case, results in group]
    parts += [
        "\n## Two processes\n",
        "| case | undisturbed | complete | a lost rank ends the others |",
        "|---|---|---|---|",
    ]
    told = [(name, ["yes" if each else "**fails**" for each in rest]) for name, *rest in distributed]
    parts += [f"| {name} | {' | '.join(cells)} |" for name, cells in told]
    parts += ["\n## Notes\n", *(f"{number}. {note}" for number, note in enumerate(notes, 1))]
    return "\n".join(parts) + "\n"


def _distributed() -> Iterator[tuple[str, bool, bool, bool]]:
    """For each way to train with two processes: undisturbed, complete, and whether a lost rank ends the other."""
    for way, name in WAYS.items():
        with TemporaryDirectory() as folder:
            told = ranks(way, Path(folder))
            gone = start(way, Path(folder), "die").returncode != 0
        whole = all(each["modules"] == MODULES and each["steps"] == steps_of(way) for each in told)
        yield name, all(each["identical"] for each in told), whole, gone


def _row(case: Case, results: dict[str, str], notes: list[str]) -> str:
    from tests.compatibility.table import THOROUGH

    cells = []
    for promise, result in results.items():
        why = case.why_not(promise)
        if result == "cannot" and why not in notes:
            notes.append(why)
        cannot = f"no, note {notes.index(why) + 1}" if result == "cannot" else ""
        cells.append({"holds": "yes", "not run": "not run", "cannot": cannot}.get(result, "**fails**"))
    cells[-1] += " †" if case.id in THOROUGH else ""
    return f"| {case.name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(min(1, main(*sys.argv[1:])))
