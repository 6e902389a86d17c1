"""The record of a run as an artifact of its W&B run: upload and download."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgraph_explorer.console import info
from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.extras import installing
from torchgraph_explorer.record.folder import TENSORS, plugin_folder
from torchgraph_explorer.record.remote import is_url
from torchgraph_explorer.temp_folder import own_folder

TYPE = "torchgraph-record"
SCHEME = "wandb://"


@dataclass(frozen=True, slots=True)
class RunPath:
    """A W&B run: its entity, its project and its id."""

    entity: str
    project: str
    run: str

    def __str__(self) -> str:
        return f"{self.entity}/{self.project}/{self.run}"


def run_path(text: str) -> RunPath:
    """The run named by `E/P/R`, by `wandb://E/P/R`, or by the address of its page.

    Raises:
        NotFoundError: `text` names no run.
    """
    page = re.match(r"https?://[^/]+/([^/]+)/([^/]+)/runs/([^/?#]+)", text)
    if page is not None:  # of any of the page's tabs
        return RunPath(*page.groups())
    path = text.removeprefix(SCHEME).partition("?")[0]
    parts = [part for part in path.split("/") if part and part != "runs"]
    if len(parts) != 3:
        raise NotFoundError(
            f"{text} names no W&B run. Write entity/project/run-id, e.g. {SCHEME}my-team/mnist/1a2b3c4d."
        )
    return RunPath(*parts)


def artifact_name(run: str) -> str:
    """The name of the artifact that holds the record of the W&B run with this id."""
    return f"torchgraph-{run}"


def upload_record(run: Any, run_dir: str | os.PathLike[str], *, tensors: bool = False) -> None:
    """Keep the record in `run_dir` with the W&B run, as an artifact.

    It is uploaded in the background, before the run ends. Tensors that were kept whole are people's data, perhaps: they
    are left out unless `tensors` is True.
    """
    import wandb

    folder = os.fspath(run_dir)
    if is_url(folder):
        info(f"the record is not uploaded to W&B, since it is at {folder} already.")
        return
    artifact = wandb.Artifact(artifact_name(run.id), type=TYPE, description="The record of torchgraph explorer")
    kept = plugin_folder(Path(folder), TENSORS)
    if tensors or not kept.exists():
        artifact.add_dir(folder)
    else:
        _add_all_but(kept, artifact, folder)
    run.log_artifact(artifact)


def _add_all_but(left_out: Path, artifact: Any, folder: str) -> None:
    """Add the files in `folder` to `artifact`, except those in the folder `left_out`."""
    place = Path(folder).absolute()
    for path in sorted(place.rglob("*")):
        if path.is_file() and not path.is_relative_to(left_out):
            artifact.add_file(str(path), name=path.relative_to(place).as_posix())


def fetch_record(url: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Download a run's record into `folder`, or into the system's temporary directory; returns the folder.

    Raises:
        NotFoundError: There is no such run, it has no record, or you may not read it.
    """
    path = run_path(url)
    wandb = _wandb()
    try:
        artifact = wandb.Api(overrides={"entity": path.entity}).artifact(
            f"{path.entity}/{path.project}/{artifact_name(path.run)}:latest", type=TYPE
        )
        target = Path(folder) if folder is not None else _download_folder(path, artifact.version)
        artifact.download(root=str(target))
    except Exception as fault:  # wandb raises what its service, its transport and its server do
        raise NotFoundError(
            f"{SCHEME}{path} has no record that can be fetched: {fault}. "
            f"A training keeps it with watch(model, backend='wandb', upload_record=True)."
        ) from fault
    return target


def _download_folder(path: RunPath, version: str) -> Path:
    """The folder for one version of one run's record. Run ids are unique only within their project."""
    return own_folder() / path.entity / path.project / version / f"wandb-{path.run}"


def _wandb() -> Any:
    try:
        import wandb
    except ImportError as missing:
        raise NotFoundError(f"A {SCHEME} address needs the wandb library: {installing('wandb')}") from missing
    return wandb
