"""`open_run`, and what it gives: a run and its models, with everything that can be asked of them.

This is a facade above the record, which knows nothing of the views: what reads the record to show or judge it becomes a
method here. The server and the exporters work on the record itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from numbers import Real
from typing import Any, cast, overload

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.comparison.models import Comparison
from torchgraph_explorer.comparison.spread import Spread, spread_of
from torchgraph_explorer.errors import NotFoundError, OptionError
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.changes import Changes, find_changes
from torchgraph_explorer.findings.cooccurrence import (
    Condition,
    CoOccurrences,
    find_conditional,
    find_cooccurrences,
    finding_name,
)
from torchgraph_explorer.findings.engine import find as find_findings
from torchgraph_explorer.findings.measures import MEASURES
from torchgraph_explorer.findings.own_rules import OwnRule, check_rules
from torchgraph_explorer.findings.relations import Related, find_related
from torchgraph_explorer.paths import checked_path
from torchgraph_explorer.record.discovery import OF_A_RUN, RunFolder, find_run
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.numbers import whole
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.schema import Series

FETCHED = {"wandb": "torchgraph_wandb.record_artifact:fetch_record"}
"""Addresses that no file system knows: by scheme, the function that fetches the record and returns its folder."""


class Model(ModelRecord):
    """One watched model of a run: its sessions, graphs, series and frames.

    Example:
        >>> model = open_run("runs").model()
        >>> model.name, len(model.steps)
        ('DigitsNet', 2)
    """

    def updated_by(self, optimizer: str) -> Model:
        """The same model with only the steps of one of its `optimizers`; their frames are numbered from 0.

        Raises:
            NotFoundError: The record has no step of this optimizer.
        """
        if optimizer not in self.optimizers:
            named = ", ".join(map(repr, self.optimizers))
            known = f"There are steps by {named}." if named else "Its record does not name any optimizer."
            raise NotFoundError(f"Model {self.name!r} has no step by the optimizer {optimizer!r:.200}. {known}")
        return self.of_optimizer(optimizer)

    def findings(self, *, rules: Sequence[OwnRule] = ()) -> tuple[Finding, ...]:
        """What is wrong in this run, where, and since when.

        Each root cause is followed by what follows from it. Empty for a healthy run. Takes seconds for a long run;
        docs/findings.md lists the kinds.

        Args:
            rules: Rules of your own, in addition to ours: functions of this model that yield findings.

        Raises:
            OptionError: `rules` is not a list of functions.
            RecordError: The run is gone.
        """
        return find_findings(self, own=check_rules(rules, "rules=") if rules else ())

    def changes(self, step: int, since: int | None = None) -> Changes:
        """What changed at a recorded step: every series, ranked by how unlike its own past it is.

        This compares size, standard deviation, largest magnitude, mean, zeros, NaN and infinity, and the histogram,
        with up to 32 recorded steps before; with `since`, with those up to that step.

        Raises:
            NotFoundError: The step was not recorded, or is the first one.
            OptionError: `step` or `since` is no whole number.
            RecordError: The run is gone.
        """
        return find_changes(self, whole(step, "step"), None if since is None else whole(since, "since"))

    @overload
    def related(self, target: Finding) -> CoOccurrences: ...

    @overload
    def related(self, target: Series | str) -> Related: ...

    @overload
    def related(self, target: Series | str | Finding, *, above: float, measure: str = "size") -> CoOccurrences: ...

    @overload
    def related(
        self, target: Series | str | Finding, *, below: float, above: float | None = None, measure: str = "size"
    ) -> CoOccurrences: ...

    def related(
        self,
        target: Series | str | Finding,
        *,
        above: float | None = None,
        below: float | None = None,
        measure: str = "size",
    ) -> Related | CoOccurrences:
        """Which series, scalars and findings change together with `target`, or before it, and how much chance explains.

        If `target` is a series or scalar, changes over the whole run are compared. If it is a finding, its steps are
        compared with the other steps: how often is something unusual while the finding lasts, how often do other
        findings last, and did that begin before? With a limit, the steps at which a series or scalar is above or below
        it are compared with the other steps in the same way.

        Args:
            target: A series, the name of a logged scalar, or one of `findings()`.
            above: Ask about the steps at which `target` is larger.
            below: Ask about the steps at which `target` is smaller.
            measure: For a series: what is compared with the limit: `size` (root mean square), `std`, `largest`, `mean`
                (in root mean squares), `zeros` or `nonfinite` (shares).

        Raises:
            NotFoundError: There is no such scalar, it never changes, or too few steps were recorded, either with the
                finding or without it.
            OptionError: `target` is none of these, there is no such measure, a finding was given a limit, or a limit is
                no number.
            RecordError: The run is gone.

        Example:
            >>> model = open_run("runs").model()
            >>> high = model.related("loss", above=2.5)
            >>> for one in high.ranked[:3]:
            ...     print(f"{one.share:.0%} of the steps, {one.elsewhere:.0%} of others", one.what)
        """
        has_limit = above is not None or below is not None
        if isinstance(target, Finding):
            if has_limit:
                raise OptionError("A finding has no limit; above= and below= are for a series or a scalar.")
            others = [one for one in self.findings() if one != target]
            name = finding_name(target)
            return find_cooccurrences(self, target.step, target.last_step, name=name, findings=others)
        _check_line(target)
        if not has_limit:
            return find_related(self, target)
        for name, limit in (("above", above), ("below", below)):
            if limit is not None and not isinstance(limit, Real):
                raise OptionError(f"{name}={limit!r:.80} is not a number.")
        if measure not in MEASURES:
            raise OptionError(f"measure={measure!r} is not one of {', '.join(MEASURES)}.")
        return find_conditional(self, Condition(target, above, below, measure), self.findings())


class Run(RunRecord):
    """A run, as it was at the latest `refresh`. At the end of a notebook's cell, it shows the viewer.

    Attributes:
        name: The run's name, in its logdir.
        path: Its folder, or URL.

    Example:
        >>> run = open_run("runs")
        >>> run.name, run.models
        ('example', ('DigitsNet',))
    """

    def model(self, name: str | None = None) -> Model:
        """The watched model called `name`; without a name, the only one.

        Raises:
            NotFoundError: There is no such model, or several and no name was given.
        """
        return self._model(Model, name)

    def show(self, **options: Any) -> None:
        """Show the run, as it is now, in the viewer below a notebook's cell.

        Args:
            options: `height` in pixels, and `models`, `steps`, `series` and `tensors` as for `export_page`.

        Raises:
            OptionError: This is not a notebook, or an option has a value that is not allowed.
            TorchgraphError: The viewer is not built.
        """
        from torchgraph_explorer.server.notebook import show

        show(self, **options)

    def _repr_html_(self) -> str:
        from torchgraph_explorer.server.notebook import iframe

        return iframe(self)


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open the run in the folder or at the URL `path`, which may also be a folder with exactly one run in it.

    `wandb://entity/project/run-id` is a W&B run whose record was uploaded; it is downloaded first.

    A run can be opened while it is written: `Run.refresh` reads what is new. Damaged parts are skipped with a
    `TorchgraphWarning`.

    Raises:
        NotFoundError: There is nothing, or there are several runs to choose from.
        OptionError: `path` is no path.
        RecordError: It is not a run, or a newer release wrote it.

    Example:
        >>> model = open_run("runs").model()
        >>> [series] = model.find("stage1.0.conv1", role="output", kind="value")
        >>> model.history(series).steps
        array([ 0, 50])
    """
    return opened(locate(path))


def locate(path: str | os.PathLike[str]) -> RunFolder:
    """The folder of the run that `open_run` opens. It may have to look into many folders for it."""
    return find_run(_fetched(checked_path(path, OF_A_RUN)))


def opened(found: RunFolder) -> Run:
    """The run in a folder that `locate` has found."""
    return Run(found.folder, name=found.name, path=found.path)


def compare(
    run_a: str | os.PathLike[str] | Run | Model,
    run_b: str | os.PathLike[str] | Run | Model,
    *,
    model: str | None = None,
    rename: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare two runs: where they differ first, and which series, modules, scalars, findings and settings differ.

    Args:
        run_a: A run's folder or URL, as for `open_run`; or a `Run`, or one of its models.
        run_b: The other run.
        model: The watched model to compare. By default, the only model of `run_a`, and the one with the same name in
            `run_b`, if that has several.
        rename: Names of modules in `run_a`, and what they are called in `run_b`: `{"layer1.*": "stage1.*"}`. A `*`
            stands for any part of a name.

    Raises:
        NotFoundError: There is no such run or model, or there are several to choose from.
        OptionError: `rename` does not map names.
        RecordError: One of them is not a run, or a newer release wrote it.

    Example:
        >>> compare("runs", "runs").first_divergence
    """
    one = _model_of(run_a, model)
    other = _model_of(run_b, model, like=one.name)
    return Comparison(one, other, rename=rename, judge=lambda judged: cast("Model", judged).findings())


def spread(
    runs: Sequence[str | os.PathLike[str] | Run | Model],
    what: str | Series,
    *,
    statistic: str = "mean",
    model: str | None = None,
) -> Spread:
    """One number of several runs, such as those of several seeds, as a band over the steps.

    Args:
        runs: As for `compare`.
        what: The name of a scalar, or a series of one of the models. A series is found by its name in the others.
        statistic: Which statistic of the series: one of `STATISTICS`.
        model: The watched model; needed if a run has several.

    Raises:
        NotFoundError: There is no such run, or no such scalar, series or statistic in one of them.
        OptionError: There are no runs, one of them has no value, or `what` is neither a scalar nor a series.
        RecordError: A run cannot be read.

    Example:
        >>> band = spread(["runs", "runs"], "loss")
        >>> band.steps
        array([ 1, 50])
    """
    if isinstance(runs, str) or not isinstance(runs, Iterable):
        raise OptionError(f"runs is {runs!r:.100}; pass a list of runs, such as spread(['runs/a', 'runs/b'], 'loss').")
    _check_line(what)
    return spread_of([_line(_model_of(run, model), what, statistic) for run in runs])


def _check_line(what: object) -> None:
    """Raise an OptionError if `what` is neither the name of a scalar nor a series."""
    if not isinstance(what, str | Series):
        raise OptionError(
            f"{what!r:.100} is neither a scalar nor a series. Pass the name of a logged scalar, such as 'loss', or one "
            f"of the series that model.find() returns."
        )


def _line(model: Model, what: str | Series, statistic: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    if isinstance(what, str):
        scalar = model.scalar(what)
        return scalar.steps, scalar.values
    found = model.find(what.module, call=what.call, role=what.role, path=what.path, kind=what.kind)
    if not found:
        raise NotFoundError(f"Model {model.name!r} has no series {what.module}, {what.path}, {what.kind}.")
    history = model.history(found[0])
    return history.steps, history.column(statistic).astype(np.float64)


def _model_of(run: str | os.PathLike[str] | Run | Model, name: str | None, *, like: str | None = None) -> Model:
    if isinstance(run, Model):
        return run
    opened = run if isinstance(run, Run) else open_run(run)
    return opened.model(like if name is None and like in opened.models and len(opened.models) > 1 else name)


def _fetched(path: str) -> str:
    """The folder that the record at `path` was fetched into; `path` itself if its scheme is not in `FETCHED`."""
    scheme, separator, _ = path.partition("://")
    if not separator or scheme not in FETCHED:
        return path
    module, _, function = FETCHED[scheme].partition(":")
    fetch: Callable[[str], os.PathLike[str]] = getattr(import_module(module), function)
    return os.fspath(fetch(path))
