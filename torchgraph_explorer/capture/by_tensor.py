"""Values by tensor, and by the memory of a tensor; neither is kept alive."""

from __future__ import annotations

from typing import Generic, TypeVar
from weakref import ref

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from torchgraph_explorer.unvisited import unvisited

Value = TypeVar("Value")


class ByTensor(Generic[Value]):
    """A dictionary whose keys are tensors, by identity.

    `torch.utils.weak.WeakTensorKeyDictionary` does the same, and takes ten times as long: its keys are objects that are
    made, hashed and compared in Python. Here a key is the address of a tensor. Another tensor may get that address
    later, so each entry has a weak reference that says whether the tensor is still the same. The entry of a tensor that
    is gone stays until then; so there are never more entries than tensors that lived at the same time.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        """There is no entry."""
        self._entries: dict[int, tuple[ref[Tensor], Value]] = {}

    def get(self, tensor: Tensor) -> Value | None:
        """The value of `tensor`; None if it has none."""
        entry = self._entries.get(id(tensor))
        # What is at its own address can only be the tensor itself. So this makes no reference to another tensor, which
        # torch, where only C++ holds that one, would have to be told of.
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def __setitem__(self, tensor: Tensor, value: Value) -> None:
        self._entries[id(tensor)] = unvisited((unvisited(ref(tensor)), value))

    def __delitem__(self, tensor: Tensor) -> None:
        del self._entries[id(tensor)]

    def __contains__(self, tensor: Tensor) -> bool:
        return self.get(tensor) is not None

    def clear(self) -> None:
        """Forget all values."""
        self._entries.clear()


class ByStorage(Generic[Value]):
    """A dictionary whose keys are the storages of tensors, by identity. A tensor without a storage has no value.

    A weak reference keeps the few bytes of the storage's own object, not the memory of the elements. So no other
    storage gets the same address, which would then seem to have been written to.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        """There is no entry."""
        self._entries: dict[int, tuple[StorageWeakRef, Value]] = {}

    def get(self, tensor: Tensor) -> Value | None:
        """The value of the storage of `tensor`; None if it has none."""
        try:
            entry = self._entries.get(tensor.untyped_storage()._cdata)
        except (NotImplementedError, RuntimeError):
            return None
        return None if entry is None else entry[1]

    def __setitem__(self, tensor: Tensor, value: Value) -> None:
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return
        known = self._entries.get(storage._cdata)
        self._entries[storage._cdata] = StorageWeakRef(storage) if known is None else known[0], value

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forget all values."""
        self._entries.clear()
