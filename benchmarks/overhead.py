"""The cost of watching a training: processor and wall time, memory and disk, compared with the same training unwatched.

Run it with `python -m benchmarks.overhead`; `--full` measures more often, and all backends. Blocks of unwatched, logged
and unlogged steps take turns (plain, logged, unlogged, unlogged, logged, plain), each of about a second, with one model
and one thread. Watching begins and is warmed up before its blocks. Processor time is that of the whole process, so the
writer's thread counts too, and a block ends when that has written all. Wall time is measured with as many threads as
torch takes by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import torch

from benchmarks.children import ask
from benchmarks.models import SUBJECTS
from benchmarks.tables import Cell, Options, Spread, Table, main, spread

GOALS = {"deep": "1.30", "resnet18": "1.12", "transformer": "1.10", "narrow": "none", "small_modules": "none"}
"""The models, and the most that a logged step may cost."""

WALL_GOALS = {"deep": "1.20", "resnet18": "1.15", "transformer": "1.05", "narrow": "none", "small_modules": "2.5"}
"""The same in wall time, with torch's default number of threads."""

LOOPS = {"reinforce": "1.02", "accumulated": "none"}
"""Models with several passes in an update, and the most that logging every so many updates may cost."""

BACKENDS = ("record", "standalone", "tensorboard", "wandb")

EVERY = 50
STEPS = 20
"""Steps of a training whose memory is measured."""


def tables(options: Options) -> Iterator[Table]:
    """The ratios of processor and wall time; those where an update has several passes; memory and disk."""
    backends = BACKENDS if options.full else BACKENDS[:1]
    yield Table(
        "A step's processor time",
        (
            "",
            "plain, ms",
            "goal",
            *(f"every step, {name}" for name in backends),
            f"every {EVERY}th",
            "no step",
        ),
        [times(subject, backends, repeats=8 if options.full else 4) for subject in GOALS],
        "Ratios to the plain step: median and quartiles. "
        f"That of every {EVERY}th step is one logged step and {EVERY - 1} unlogged ones, measured apart, with record.",
    )
    threads = torch.get_num_threads()
    yield Table(
        f"A step's wall time with torch's default of {threads} thread{'s' * (threads > 1)}",
        ("", "plain, ms", "goal", "every step", f"every {EVERY}th", "no step"),
        [wall_times(subject, repeats=8 if options.full else 4) for subject in WALL_GOALS],
        "As above, with record. What the writer's thread has left to do when a block of steps ends is not in it.",
    )
    yield Table(
        "The processor time of an update with several passes",
        ("", "plain, ms", "every update", f"every {EVERY}th", f"goal of every {EVERY}th", "no update"),
        [loop_times(subject, repeats=8 if options.full else 4) for subject in LOOPS],
        "Measured as above, with record. Four of the passes are recorded.",
    )
    yield Table(
        f"Memory and disk of {STEPS} steps, each of them logged",
        ("", "plain, MB", *(f"{name}, MB more" for name in backends), "kB a step", "series", "bytes a series and step"),
        [sizes(subject, backends, runs=3 if options.full else 1) for subject in GOALS],
        "Memory is the peak of a process that only trains; for wandb, what it has more than one with a W&B run open. "
        "The goals are 30 MB and 200 bytes.",
    )


def times(subject: str, backends: Sequence[str], *, repeats: int) -> list[Cell]:
    """The row of one model."""
    found = ask("ratios", "record", subject, count=repeats).told
    others = [ask("logged ratios", name, subject, count=4).told for name in backends[1:]]
    return [
        SUBJECTS[subject]().name,
        spread(1e3 * seconds for seconds in found["plain"]),
        GOALS[subject],
        *(spread(one["logged"]) for one in (found, *others)),
        _now_and_then(found),
        spread(found["unlogged"]),
    ]


def wall_times(subject: str, *, repeats: int) -> list[Cell]:
    """The row of one model."""
    found = ask("ratios", "record", subject, count=repeats, clock="wall").told
    return [
        SUBJECTS[subject]().name,
        spread(1e3 * seconds for seconds in found["plain"]),
        WALL_GOALS[subject],
        spread(found["logged"]),
        _now_and_then(found),
        spread(found["unlogged"]),
    ]


def loop_times(subject: str, *, repeats: int) -> list[Cell]:
    """The row of one model with several passes in an update."""
    found = ask("ratios", "record", subject, count=repeats).told
    return [
        SUBJECTS[subject]().name,
        spread(1e3 * seconds for seconds in found["plain"]),
        spread(found["logged"]),
        _now_and_then(found),
        LOOPS[subject],
        spread(found["unlogged"]),
    ]


def _now_and_then(found: Mapping[str, Sequence[float]]) -> Spread:
    """The ratio where every so many steps is logged."""
    pairs = zip(found["logged"], found["unlogged"], strict=True)
    return spread((logged + (EVERY - 1) * unlogged) / EVERY for logged, unlogged in pairs)


def sizes(subject: str, backends: Sequence[str], *, runs: int) -> list[Cell]:
    """The row of one model."""
    plain = _peak("nothing", subject, runs)
    bases = {"wandb": _peak("nothing in wandb", subject, runs)} if "wandb" in backends else {}
    more = [_above(bases.get(name, plain), _peak(name, subject, runs)) for name in backends]
    recorded = ask("memory", "record", subject, count=STEPS)
    a_step = recorded.bytes / STEPS
    return [SUBJECTS[subject]().name, median(plain), *more, a_step / 1e3, recorded.series, a_step / recorded.series]


def _peak(way: str, subject: str, runs: int) -> list[float]:
    return [float(ask("memory", way, subject, count=STEPS).told["peak"]) for _ in range(runs)]


def _above(plain: Sequence[float], watched: Sequence[float]) -> Spread:
    return spread(peak - median(plain) for peak in watched)


if __name__ == "__main__":
    main(tables, __doc__)
