"""An fsspec file system that reads through TensorBoard's `gfile`.

Runs at URLs are read with fsspec, which needs a library for each protocol (s3fs, gcsfs). TensorBoard reads `s3://` with
boto3, and every protocol of TensorFlow if that is installed. Where fsspec's library is missing, we read with `gfile`:
otherwise `tensorboard --logdir s3://…` would show a run's scalars but not its tab. fsspec is preferred because it reads
ranges, which gfile may not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fsspec import AbstractFileSystem, register_implementation
from fsspec.core import url_to_fs

from torchgraph_explorer.record.remote import is_url


def register_gfile(urls: Iterable[str]) -> None:
    """Register `GfileFileSystem` for each protocol among `urls` that fsspec cannot read. Local paths are ignored."""
    for url in filter(is_url, urls):
        try:
            url_to_fs(url)
        except (ImportError, ValueError):
            protocol = url.partition("://")[0]
            file_system = type(f"{protocol.title()}FileSystem", (GfileFileSystem,), {"protocol": protocol})
            register_implementation(protocol, file_system, clobber=True)


class GfileFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec ships no annotations
    """Reads through TensorBoard's `gfile`. Implements only what our reader calls."""

    cachable = False

    def ls(self, path: str, detail: bool = True, **_options: Any) -> list[Any]:
        """The files and folders in `path`.

        Raises:
            FileNotFoundError: There is no such folder.
        """
        folder = self._strip_protocol(path)
        if not _gfile().isdir(self._url(folder)):
            raise FileNotFoundError(path)
        names = (name.rstrip("/") for name in _gfile().listdir(self._url(folder)))
        found = [self.info(f"{folder}/{name}") for name in names if name]
        return found if detail else [one["name"] for one in found]

    def info(self, path: str, **_options: Any) -> dict[str, Any]:
        """Whether `path` is a file or a folder, and its size.

        Raises:
            FileNotFoundError: It is neither.
        """
        name, gfile = self._strip_protocol(path), _gfile()
        if gfile.isdir(self._url(name)):
            return {"name": name, "size": 0, "type": "directory"}
        if not gfile.exists(self._url(name)):
            raise FileNotFoundError(path)
        return {"name": name, "size": int(gfile.stat(self._url(name)).length), "type": "file"}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_options: Any) -> bytes:
        """The bytes of a file from `start` to `end`."""
        with _gfile().GFile(self._url(path), "rb") as file:
            data: bytes = file.read() if end is None else file.read(end)  # not every gfile can seek
        return data[start or 0 :]

    def _url(self, path: str) -> str:
        return f"{self.protocol}://{self._strip_protocol(path)}"


def _gfile() -> Any:
    from tensorboard.compat import tf

    return tf.io.gfile
