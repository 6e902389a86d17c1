"""Exports the viewer with its data as one HTML file, which needs no server, no network, and no rights in its iframe."""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from numbers import Integral, Real
from pathlib import Path

from torchgraph_explorer.comparison.models import Comparison
from torchgraph_explorer.comparison.report import as_json
from torchgraph_explorer.errors import OptionError, TorchgraphError
from torchgraph_explorer.findings.own_rules import OwnRule, check_rules
from torchgraph_explorer.layout.placing import MOST_WORK
from torchgraph_explorer.paths import checked_path
from torchgraph_explorer.record.discovery import open_record
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.server.bundle import BUNDLE, MISSING
from torchgraph_explorer.server.explanations import page_explanations
from torchgraph_explorer.server.findings import Json, findings_json
from torchgraph_explorer.server.pack import pieces
from torchgraph_explorer.server.page.choice import (
    Candidate,
    beside,
    candidates,
    group_series,
    joined,
    spread,
    with_frames,
)
from torchgraph_explorer.server.page.findings import first_frames, named_tensors
from torchgraph_explorer.server.page.model import Arrays, page_model
from torchgraph_explorer.server.page.nonfinite import Trouble, nonfinite_json, trouble_of
from torchgraph_explorer.server.page.tensors import LETTERS_PER_BYTE, packed_size, page_tensors
from torchgraph_explorer.server.page.text import as_text, compressed
from torchgraph_explorer.version import __version__

STEPS = 100
"""Steps that a page shows by default."""

PAGE_BYTES = 2_000_000
"""Largest size of a page by default: it keeps as many of the run's series as fit."""

MOST_TENSOR_MEGABYTES = 200.0
"""Browsers do not read the text of a larger page."""

COMPARED_SERIES = 32
"""Series of which a page says how much they differ from those of another run: those that differ most."""

LEAST_SERIES = 20
"""Series that are kept even if the graph alone fills the page."""

_ENTRY_BYTES, _ROW_BYTES = 0.8, 17.0
"""Bytes of a bucket of a histogram, and of a row of statistics, on a page, at most."""

_LOADER = Path(__file__).parent / "page" / "loader.js"

_PAGE = """<!doctype html>
<html lang="en"{opens}>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="torchgraph_explorer {version}">
<title>{title}</title>
<link rel="icon" href="data:image/svg+xml;base64,{icon}">
</head>
<body>
<div id="app">Opening {title} …</div>
<noscript>This page needs JavaScript.</noscript>
<script type="text/plain" id="torchgraph-style">{style}</script>
<script type="text/plain" id="torchgraph-viewer">{viewer}</script>
<script type="text/plain" id="torchgraph-data">{data}</script>
<script>{loader}</script>
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class _InlinedBundle:
    """The built viewer, encoded for a page, and the hash by which the policy allows its script."""

    style: str
    script: str
    script_hash: str
    icon: str


def export_page(
    run: RunRecord | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    models: Sequence[str] | None = None,
    steps: int = STEPS,
    series: int | None = None,
    tensors: float = 0.0,
    compare: Sequence[RunRecord | str | os.PathLike[str]] = (),
    rules: Sequence[OwnRule] = (),
) -> bytes:
    """Return the page of `run`, and write it to `path` if that is given.

    Args:
        run: A run from `open_run`, shown as of its latest `refresh`; or its folder or URL.
        path: The file to write; an existing file is replaced.
        models: Names of the models to show; all by default.
        steps: How many steps to show at most, for each model: the first, the last, and others evenly between, including
            the first one with NaN or infinity and those at which findings begin.
        series: How many series to keep at most; those with the same numbers count once. The order is: attached tensors,
            tensors that a finding names, tensors of the model itself, and tensors of ever deeper modules. By default,
            as many as fit into 2 MB.
        tensors: How much the kept tensors may add to the page, in 10⁶ bytes. By default none, since values may be
            people's data.
        compare: Other runs. The page opens with them compared with `run`. Of each, it has the models with the names of
            those of `run`, or its first model. `steps` and `series` hold for each run.
        rules: Rules of your own, whose findings are on the page, too.

    Raises:
        NotFoundError: There is no such run, or it has no such model.
        OptionError: `steps` is below 1, `series` or `tensors` below 0, `models` empty, `path` cannot be written, or
            `compare` or `rules` is not a list.
        TorchgraphError: The viewer is not built.

    Example:
        >>> page = export_page(open_run("runs"), "page.html")
        >>> pathlib.Path("page.html").stat().st_size == len(page)
        True
    """
    own = check_rules(rules, "rules=") if rules else ()
    if not isinstance(compare, list | tuple):
        raise OptionError(f"compare is {compare!r:.100}; it is a list of runs, or of their folders.")
    file = None if path is None else Path(checked_path(path, "Name the file to write, or pass None."))
    first, *others = map(_opened, (run, *compare))
    page = page_of(first, models=models, steps=steps, series=series, tensors=tensors, compare=others, own=own)
    if file is not None:
        write_whole(file, page)
    return page


def _opened(run: RunRecord | str | os.PathLike[str]) -> RunRecord:
    return run if isinstance(run, RunRecord) else open_record(run)


def page_of(
    run: RunRecord,
    *,
    models: Sequence[str] | None,
    steps: int = STEPS,
    series: int | None = None,
    tensors: float = 0.0,
    compare: Sequence[RunRecord] = (),
    own: Sequence[OwnRule] = (),
    most_work: int = MOST_WORK,
    opens_panels: bool = False,
) -> bytes:
    """The page that `export_page` writes. Graphviz places only insides of up to `most_work`, see `layout`.

    With `opens_panels`, the panels, which begin with the x-ray, lie over the graph at first where they have no room
    beside it.

    Raises:
        NotFoundError, OptionError, TorchgraphError: As in `export_page`.
    """
    _require(steps=steps, series=series, models=models, tensors=tensors)
    shown = _shown(run, models, compare)
    viewer = _inlined_bundle(BUNDLE)
    records = [one.model for one in shown]
    troubles, judged = [trouble_of(model) for model in records], [findings_json(model, own) for model in records]
    frames = [
        with_frames(spread(len(model), steps), [trouble.first, *first_frames(model, found)])
        for model, trouble, found in zip(records, troubles, judged, strict=True)
    ]
    frames = beside(records, frames) if compare else frames
    offered = candidates(records, first=[named_tensors(found) for found in judged])
    offered = joined(records, offered) if compare else offered
    kept = offered[:series] if series is not None else offered[: _affordable(offered, frames)]
    page_with = partial(
        _page,
        shown,
        viewer=viewer,
        frames=frames,
        troubles=troubles,
        judged=judged,
        most_work=most_work,
        opens_panels=opens_panels,
    )
    page = page_with(kept=kept)
    while series is None and len(page) > PAGE_BYTES and len(kept) > LEAST_SERIES:
        kept = kept[: max(LEAST_SERIES, int(0.99 * len(kept) * PAGE_BYTES / len(page)))]
        page = page_with(kept=kept)
    return page_with(kept=kept, kept_tensors=_kept_tensors(records, 1e6 * tensors)) if tensors else page


def _kept_tensors(models: Sequence[ModelRecord], most_bytes: float) -> list[tuple[Json | None, Arrays]]:
    """The kept tensors of each model. What one model leaves of its share is for those after it."""
    found: list[tuple[Json | None, Arrays]] = []
    for at, model in enumerate(models):
        one = page_tensors(model, most_bytes=most_bytes / (len(models) - at))
        most_bytes -= LETTERS_PER_BYTE * packed_size(one[1])
        found.append(one)
    return found


def write_whole(path: Path, page: bytes) -> None:
    """Write the file in one go, so that a browser that opens it meanwhile never finds half a page.

    Raises:
        OptionError: It cannot be written.
    """
    try:
        is_special = path.exists() and not path.is_file()  # such as /dev/stdout, which must not be replaced
        path.write_bytes(page) if is_special else _replace(path.resolve(), page)
    except OSError as fault:
        advice = "Name a file in a folder that exists, where you may write and there is room."
        raise OptionError(f"{path} cannot be written: {fault.strerror}. {advice}") from fault


def _replace(target: Path, page: bytes) -> None:
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(page)
        part.replace(target)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def _require(*, steps: int, series: int | None, models: Sequence[str] | None, tensors: float) -> None:
    if not isinstance(tensors, Real) or not 0 <= tensors <= MOST_TENSOR_MEGABYTES:
        raise OptionError(
            f"tensors is {tensors!r:.100}; it is how many MB of kept tensors are in the page, from 0 to "
            f"{MOST_TENSOR_MEGABYTES:g}."
        )
    if not isinstance(steps, Integral) or steps < 1:
        raise OptionError(f"steps is {steps!r:.100}; a page shows at least 1, and a whole number.")
    if series is not None and (not isinstance(series, Integral) or series < 0):
        raise OptionError(f"series is {series!r:.100}; it is how many to keep, 0 or more, or None for as many as fit.")
    if models is not None and (isinstance(models, str) or not isinstance(models, Sequence) or not models):
        raise OptionError(f"models is {models!r}; it is a list of names of the run's models, or None for all.")


def _affordable(offered: Sequence[Candidate], frames: Sequence[Sequence[int]]) -> int:
    """How many of the candidates fit into a page, estimated by their latest histograms."""
    left = float(PAGE_BYTES)
    for number, one in enumerate(offered):
        left -= len(frames[one.model]) * (_ROW_BYTES + _ENTRY_BYTES * one.entries)
        if left < 0:
            return max(number, LEAST_SERIES)
    return len(offered)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A model on the page.

    Attributes:
        run: The run that it is of.
        name: What the page calls that run.
        model: The model.
    """

    run: RunRecord
    name: str
    model: ModelRecord


def _shown(run: RunRecord, models: Sequence[str] | None, compare: Sequence[RunRecord]) -> list[_Shown]:
    """The models of a page: those of `run`, then those of the other runs that are compared with them."""
    wanted = list(dict.fromkeys(run.models if models is None else models))
    first, *others = _names([run, *compare])
    own = [_Shown(run, first, run.model(name)) for name in wanted]
    return own + [
        _Shown(one, name, one.model(model))
        for one, name in zip(compare, others, strict=True)
        for model in _comparable(one, wanted)
    ]


def _comparable(run: RunRecord, names: Sequence[str]) -> list[str]:
    return [name for name in run.models if name in names] or list(run.models[:1])


def _names(runs: Sequence[RunRecord]) -> list[str]:
    """The names of the runs; those that occur twice with the folder that they are in, or a number."""
    counts = Counter(one.name for one in runs)
    names = [one.name if counts[one.name] == 1 else "/".join(Path(one.path).parts[-2:]) for one in runs]
    found: list[str] = []
    for name in names:
        number = sum(one == name or one.startswith(f"{name} (") for one in found)
        found.append(name if number == 0 else f"{name} ({number + 1})")
    return found


def _page(
    models: Sequence[_Shown],
    *,
    viewer: _InlinedBundle,
    frames: Sequence[Sequence[int]],
    kept: Sequence[Candidate],
    troubles: Sequence[Trouble],
    judged: Sequence[Json],
    most_work: int,
    opens_panels: bool,
    kept_tensors: Sequence[tuple[Json | None, Arrays]] = (),
) -> bytes:
    facts, arrays = [], Arrays()
    records = [one.model for one in models]
    for number, (one, model) in enumerate(zip(models, records, strict=True)):
        series = sorted(group_series(kept, number))
        words, own = page_model(one.run, model, frames=frames[number], series=series, most_work=most_work)
        of_run = [trouble for other, trouble in zip(models, troubles, strict=True) if other.name == one.name]
        nonfinite = nonfinite_json(model, of_run, frames=frames[number], series=series)
        tensors, values = kept_tensors[number] if kept_tensors else (None, {})
        facts.append({"run": one.name, **words, "nonfinite": nonfinite, "findings": judged[number]})
        if tensors is not None:
            facts[-1]["tensors"] = tensors
        own |= values
        arrays |= {f"{number}.{name}": array for name, array in own.items()}
    names = list(dict.fromkeys(one.name for one in models))
    first, *others = [_run_json([one for one in models if one.name == name]) for name in names]
    meta = {
        "version": __version__,
        "run": first,
        "others": others,
        "comparisons": _comparisons(models),
        "models": facts,
        "explanations": page_explanations(one["kind"] for found in judged for one in found["findings"]),
    }
    head, *blocks = pieces(meta, arrays)
    loader = _LOADER.read_text(encoding="utf-8")
    shown = ", ".join(dict.fromkeys(model.name for model in records))
    title = html.escape(f"{shown} · {' and '.join(names)} · torchgraph")
    page = _PAGE.format(
        opens=' data-opens="panels"' if opens_panels else "",
        policy=_policy(viewer.script_hash, _hash(loader)),
        version=__version__,
        title=title,
        icon=viewer.icon,
        style=viewer.style,
        viewer=viewer.script,
        data=as_text(compressed(head, blocks)),
        loader=loader,
    )
    return page.encode("utf-8", errors="replace")  # a name may hold half a surrogate pair


def _comparisons(models: Sequence[_Shown]) -> list[dict[str, object]]:
    """How the models of the other runs differ from that of the first run with the same name, or its first model."""
    own = {one.model.name: one.model for one in models if one.name == models[0].name}
    pairs = [(own.get(one.model.name, models[0].model), one) for one in models if one.name != models[0].name]
    return [
        {
            "model": first.name,
            "other_run": other.name,
            "other_model": other.model.name,
            "answer": as_json(Comparison(first, other.model), most=COMPARED_SERIES, with_findings=False),
        }
        for first, other in pairs
    ]


def _run_json(models: Sequence[_Shown]) -> dict[str, object]:
    """What a list of runs says of the run that all of `models` are of."""
    run = models[0].run
    return {
        "run": models[0].name,
        "models": [one.model.name for one in models],
        "first_write": run.first_write,
        "last_write": run.last_write,
        "bytes": run.bytes,
        "error": None,
    }


def _policy(*hashes: str) -> str:
    """Content-Security-Policy: only the two scripts of the page, and nothing from anywhere else."""
    scripts = " ".join(f"'{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        f"base-uri 'none'; form-action 'none'"
    )


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


@lru_cache(maxsize=2)
def _inlined_bundle(folder: Path) -> _InlinedBundle:
    """The viewer as it was built in `folder`.

    Raises:
        TorchgraphError: It is not built.
    """
    page = folder / "index.html"
    if not page.is_file():
        raise TorchgraphError(MISSING)
    text = page.read_text(encoding="utf-8")
    script = _linked(text, r'<script[^>]*\bsrc="([^"]+)"', folder).decode()
    style = _linked(text, r'<link[^>]*\brel="stylesheet"[^>]*\bhref="([^"]+)"', folder)
    icon = _linked(text, r'<link[^>]*\brel="icon"[^>]*\bhref="([^"]+)"', folder)
    return _InlinedBundle(
        style=as_text(compressed(style)),
        script=as_text(compressed(script.encode())),
        script_hash=_hash(script),
        icon=base64.b64encode(icon).decode(),
    )


def _linked(page: str, pattern: str, folder: Path) -> bytes:
    """The file that the page links by the first match of `pattern`."""
    found = re.search(pattern, page)
    assert found is not None, pattern
    return (folder / found[1]).read_bytes()
