"""The cost of watching a model compiled with torch.compile, for both ways to log its steps.

Run it with `python -m benchmarks.compiled`. Logged and unlogged steps take turns in one process, unwatched ones run in
another, since equal models share what torch.compile makes of them. So the last column is the surest.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.children import ask
from benchmarks.models import SUBJECTS
from benchmarks.tables import Cell, Options, Table, main, spread
from benchmarks.watched import compiler
from benchmarks.ways import WAYS

MODELS = ("deep", "transformer")
HOW = ("eager", "inline")


def tables(options: Options) -> Iterator[Table]:
    """The ratios of processor time."""
    repeats = 8 if options.full else 4
    yield Table(
        f"A compiled step's processor time, backend {compiler(WAYS['compiled'])!r}",
        ("", "unwatched, ms", "unlogged, ms", "logged, ms", "unlogged to unwatched", "logged to unlogged"),
        [row for subject in MODELS for row in times(subject, repeats=repeats)],
        "Median and quartiles. Without a C compiler the backend is 'aot_eager', which compiles to no code.",
    )


def times(subject: str, *, repeats: int) -> Iterator[list[Cell]]:
    """The rows of one model, one for each way to log it."""
    unwatched = spread(ask("seconds", "compiled", subject, count=repeats).told["unlogged"])
    for how in HOW:
        found = ask("seconds", how, subject, count=repeats).told
        logged, unlogged = found["logged"], found["unlogged"]
        yield [
            f"{SUBJECTS[subject]().name}, compiled={how!r}",
            *(seconds / 1e-3 for seconds in (unwatched, spread(unlogged), spread(logged))),
            spread(unlogged) / unwatched.median,
            spread(one / other for one, other in zip(logged, unlogged, strict=True)),
        ]


if __name__ == "__main__":
    main(tables, __doc__)
