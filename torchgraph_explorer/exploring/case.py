"""A case: values, gradients and contributions in one file, to be looked at without the model."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError, OptionError, RecordError

Array: TypeAlias = "npt.NDArray[Any]"

VERSION = 1
"""Version of the file's format."""

KINDS = "biufc"
"""numpy's kinds of numbers that a case may hold."""

MOST_BYTES = 2**32
"""What the arrays of a case may take in memory."""


@dataclass(frozen=True)
class Case:
    """What was computed of a forward pass, or elsewhere.

    Attributes:
        values: By the name of the tensor, in the order of execution.
        gradients: The same. A tensor may have only one of both.
        matrices: Contributions `[*a.shape, *b.shape]`, by the names of `a` and `b`.
    """

    values: Mapping[str, Array] = field(default_factory=dict)
    gradients: Mapping[str, Array] = field(default_factory=dict)
    matrices: Mapping[tuple[str, str], Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, gradient in self.gradients.items():
            if name in self.values and self.values[name].shape != gradient.shape:
                raise OptionError(f"The gradient of {name!r} has another shape than its values.")
        for (a, b), matrix in self.matrices.items():
            shape = (*self.gradient(a).shape, *self.gradient(b).shape)
            if matrix.shape != shape:
                raise OptionError(f"The matrix from {a!r} to {b!r} has shape {matrix.shape}, and needs {shape}.")

    @classmethod
    def of_tensors(cls, values: Mapping[str, Any], gradients: Mapping[str, Any], matrices: Mapping[Any, Any]) -> Case:
        """A case with the numbers of torch's tensors."""
        return cls(as_arrays(values), as_arrays(gradients), as_arrays(matrices))

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of all tensors, in the order of execution."""
        return tuple(self.values) or tuple(self.gradients)

    def value(self, name: str) -> Array:
        """The values of a tensor."""
        return _of(self.values, name, "values")

    def gradient(self, name: str) -> Array:
        """The gradient of a tensor."""
        return _of(self.gradients, name, "gradient")

    def matrix(self, a: str, b: str) -> Array:
        """The contributions between `a` and `b`, if they were computed."""
        if (a, b) not in self.matrices:
            raise NotFoundError(
                f"This case does not hold the contributions from {a!r} to {b!r}, and computing them needs the model."
            )
        return self.matrices[a, b]

    def estimate(self, a: str, b: str) -> Array:
        """A guess at the contributions, from the gradients alone: F_ij = s_i t_j t_j / Σ_k t_k².

        Of all matrices whose row sums are the gradient s of `a`, in a network where t is that of `b`, it is the one
        that belongs to the Jacobian of the smallest norm. Real contributions differ from it by most of their size.
        """
        s, t = self.gradient(a), self.gradient(b)
        with np.errstate(all="ignore"):  # they may be NaN, infinite, or very large
            squares = np.abs(t).astype(np.float64) ** 2
            total = squares.sum()
            shares = squares / total if total else np.full(t.shape, 1 / max(1, t.size))
            found: Array = np.multiply.outer(s, shares).astype(s.dtype)
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the case to `path`, whose earlier content is replaced only when all is written."""
        arrays: dict[str, Array] = {}
        described = {
            "version": VERSION,
            "values": _put(self.values, "value", arrays),
            "gradients": _put(self.gradients, "gradient", arrays),
            "matrices": [list(pair) for pair in self.matrices],
        }
        arrays |= {f"matrix_{i}": matrix for i, matrix in enumerate(self.matrices.values())}
        arrays["case"] = np.frombuffer(json.dumps(described).encode(), dtype=np.uint8)
        place = Path(path)
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}", delete=False) as file:
            try:
                np.savez(file, **arrays)  # type: ignore[arg-type]  # a stub that takes the names for options
                file.close()
                Path(file.name).replace(place)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise


def load(path: str | os.PathLike[str]) -> Case:
    """The case in a file. Nothing in it is executed.

    Raises:
        NotFoundError: There is no such file.
        RecordError: It is not a case, is damaged, or a newer release wrote it.
    """
    if not os.path.lexists(path):
        raise NotFoundError(f"There is no file {os.fspath(path)}. session.save('case.npz') writes one.")
    if not _is_archive(Path(path)):
        raise RecordError(
            f"{os.fspath(path)} is not a case. A case is an .npz file. session.save('case.npz') writes one."
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            return _read(file)
    except RecordError:
        raise
    except Exception as fault:  # numpy, zipfile, json and what unpacks have many ways to say that a file is damaged
        raise RecordError(
            f"{os.fspath(path)} is not a case, or is damaged ({type(fault).__name__}: {fault}). "
            f"session.save('case.npz') writes cases."
        ) from fault


def _is_archive(path: Path) -> bool:
    """Whether it is a file, since opening a pipe would wait for its writer, and is packed as numpy's archives are."""
    try:
        return path.is_file() and zipfile.is_zipfile(path)
    except OSError:  # it may not be read
        return False


def _read(file: Any) -> Case:
    _require_small(file)
    described = json.loads(bytes(file["case"]).decode())
    if described["version"] > VERSION:
        raise RecordError(
            f"The case has version {described['version']!r}, and this release reads {VERSION}. Install the "
            f"torchgraph_explorer that wrote it."
        )
    pairs = [(str(a), str(b)) for a, b in described["matrices"]]
    return Case(
        {str(name): _numbers(file, f"value_{i}") for i, name in enumerate(described["values"])},
        {str(name): _numbers(file, f"gradient_{i}") for i, name in enumerate(described["gradients"])},
        {pair: _numbers(file, f"matrix_{i}") for i, pair in enumerate(pairs)},
    )


def _require_small(file: Any) -> None:
    """The sizes are those of the archive's directory: a small file may unpack into very much."""
    total = sum(entry.file_size for entry in file.zip.infolist())
    if total > MOST_BYTES:
        raise RecordError(f"The case has {total:,} bytes; at most {MOST_BYTES:,} are read.")


def _numbers(file: Any, name: str) -> Array:
    array: Array = file[name]
    if array.dtype.kind not in KINDS or array.nbytes != prod(array.shape) * array.itemsize:
        raise ValueError(f"{name} holds {array.dtype}, no numbers")
    return array


def _put(arrays: Mapping[str, Array], kind: str, into: dict[str, Array]) -> list[str]:
    into |= {f"{kind}_{i}": array for i, array in enumerate(arrays.values())}
    return list(arrays)


def _of(arrays: Mapping[str, Array], name: str, what: str) -> Array:
    if name not in arrays:
        raise NotFoundError(f"This case holds no {what} of {name!r}. It has {', '.join(map(repr, arrays)) or 'none'}.")
    return arrays[name]


Key = TypeVar("Key")


def as_arrays(tensors: Mapping[Key, Any]) -> dict[Key, Array]:
    """The numbers of several tensors."""
    return {key: as_array(one) for key, one in tensors.items()}


def as_array(tensor: Any) -> Array:
    """The numbers of a tensor; those of types that numpy does not have as float32."""
    try:
        found: Array = tensor.detach().cpu().resolve_conj().resolve_neg().numpy()
    except TypeError:  # bfloat16 and the small floating-point types
        found = tensor.detach().cpu().float().numpy()
    return found
