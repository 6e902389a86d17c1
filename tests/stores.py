"""Stores that hang, and a look at who touches a store, in which thread."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

METHODS = ("__init__", "_strip_protocol", "makedirs", "invalidate_cache", "ls", "pipe_file")
"""What of a file system a writer, or a marker for TensorBoard, uses."""


def delete_folder(folder: Path) -> None:
    """Delete `folder`, also if another thread is writing into it at that moment."""
    for _ in range(100):
        with suppress(OSError):
            shutil.rmtree(folder)
            return
    shutil.rmtree(folder)


class Gate:
    """Where calls pass, or wait until they are let go.

    Attributes:
        threads: Names of the threads that have passed, or wait.
    """

    def __init__(self) -> None:
        self.threads: set[str] = set()
        self._open = threading.Event()
        self._open.set()

    def close(self) -> None:
        """Have every further call wait."""
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def touch(self) -> None:
        """Called by whoever touches the store."""
        self.threads.add(threading.current_thread().name)
        self._open.wait(120)


@contextmanager
def gated_url(*methods: str) -> Iterator[tuple[str, Gate]]:
    """The URL of a store, and the gate that these methods of it go through."""
    gate = Gate()
    name = f"gated{id(gate)}"
    fsspec.register_implementation(name, _file_system(name, gate, methods), clobber=True)
    try:
        yield f"{name}://runs", gate
    finally:
        gate.open()
        fsspec.filesystem("memory").store.clear()


def _file_system(name: str, gate: Gate, methods: tuple[str, ...]) -> type:
    def gated(method: str) -> Any:
        whole = getattr(MemoryFileSystem, method)

        def through(*of: Any, **how: Any) -> Any:
            gate.touch()
            return whole(*of, **how)

        return through

    def strip(path: str) -> str:
        if "_strip_protocol" in methods:
            gate.touch()
        return str(MemoryFileSystem._strip_protocol(path.replace(f"{name}://", "memory://")))

    calls = {method: gated(method) for method in methods if method != "_strip_protocol"}
    return type(name, (MemoryFileSystem,), {"protocol": name, "_strip_protocol": staticmethod(strip), **calls})


_looks: list[Callable[[object], None]] = []
"""What is told the path of each file or folder that is opened, made, listed or removed. An audit hook stays."""


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _looks and (event == "open" or event.startswith(("os.", "shutil."))) and arguments:
        for look in list(_looks):
            look(arguments[0])


@contextmanager
def gated_folder(folder: str) -> Iterator[Gate]:
    """The gate that all goes through, in any thread, that has to do with what is in `folder`: a mount that may hang."""
    if not getattr(sys, "_looks_at_files", False):
        sys.addaudithook(_hook)
        sys._looks_at_files = True  # type: ignore[attr-defined]
    gate = Gate()

    def look(path: object) -> None:
        with suppress(TypeError, ValueError):
            if os.fspath(path).startswith(folder):  # type: ignore[call-overload]
                gate.touch()

    def looking(function: Callable[..., Any]) -> Callable[..., Any]:
        def through(path: object, *of: Any, **how: Any) -> Any:
            look(path)
            return function(path, *of, **how)

        return through

    patches = [mock.patch.object(os, name, looking(getattr(os, name))) for name in ("stat", "lstat")]
    _looks.append(look)
    try:
        for patch in patches:
            patch.start()
        yield gate
    finally:
        for patch in patches:
            patch.stop()
        gate.open()
        _looks.remove(look)
