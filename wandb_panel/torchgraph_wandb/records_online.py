"""The record of a run as an artifact of its W&B run: put there, and fetched back."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgraph_explorer.console import info
from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.record.remote import is_url
from torchgraph_explorer.temp_folder import own_folder

TYPE = "torchgraph-record"
SCHEME = "wandb://"


@dataclass(frozen=True, slots=True)
class RunPath:
    """A W&B run: whose it is, in which project, and its id."""

    entity: str
    project: str
    run: str

    def __str__(self) -> str:
        return f"{self.entity}/{self.project}/{self.run}"


def run_path(text: str) -> RunPath:
    """The run that `E/P/R`, `wandb://E/P/R` or the address of its page names.

    Raises:
        NotFoundError: It names none.
    """
    page = re.match(r"https?://[^/]+/([^/]+)/([^/]+)/runs/([^/?#]+)", text)
    if page is not None:  # of whichever of its tabs
        return RunPath(*page.groups())
    path = text.removeprefix(SCHEME).partition("?")[0]
    parts = [part for part in path.split("/") if part and part != "runs"]
    if len(parts) != 3:
        raise NotFoundError(
            f"{text} names no W&B run. Write entity/project/run-id, e.g. {SCHEME}my-team/mnist/1a2b3c4d."
        )
    return RunPath(*parts)


def artifact_name(run: str) -> str:
    """Of the artifact that holds the record of the W&B run with this id."""
    return f"torchgraph-{run}"


def upload_record(run: Any, run_dir: str | os.PathLike[str]) -> None:
    """Keep the record in `run_dir` with the W&B run, as an artifact.

    It is uploaded in the background, before the run ends.
    """
    import wandb

    place = os.fspath(run_dir)
    if is_url(place):
        info(f"the record is not uploaded to W&B, since it is at {place} already.")
        return
    artifact = wandb.Artifact(artifact_name(run.id), type=TYPE, description="The record of torchgraph explorer")
    artifact.add_dir(place)
    run.log_artifact(artifact)


def fetch_record(url: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """The folder that a run's record was fetched into: `folder`, or one in the system's temporary directory.

    Raises:
        NotFoundError: There is no such run, or it has no record, or nobody may read it.
    """
    path = run_path(url)
    wandb = _wandb()
    try:
        artifact = wandb.Api(overrides={"entity": path.entity}).artifact(
            f"{path.entity}/{path.project}/{artifact_name(path.run)}:latest", type=TYPE
        )
        target = Path(folder) if folder is not None else _place(path, artifact.version)
        artifact.download(root=str(target))
    except Exception as fault:  # wandb raises what its service, its transport and its server do
        raise NotFoundError(
            f"{SCHEME}{path} has no record that can be fetched: {fault}. "
            f"A training keeps it with watch(model, backend='wandb', upload_record=True)."
        ) from fault
    return target


def _place(path: RunPath, version: str) -> Path:
    """A folder for one version of one run's record. Run ids are unique in their project only."""
    return own_folder() / path.entity / path.project / version / f"wandb-{path.run}"


def _wandb() -> Any:
    try:
        import wandb
    except ImportError as missing:
        raise NotFoundError(
            f"A {SCHEME} address needs the wandb library: pip install 'torchgraph-explorer[wandb]'."
        ) from missing
    return wandb
