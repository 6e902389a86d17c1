"""Where the parameters of a model are, without a weak reference to one of them.

Torch refuses to swap a parameter with another tensor while there is such a reference. It swaps them where a model is
converted, if `torch.__future__` was told so or if the parameters are of a class of their own, such as `DTensor`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import NamedTuple

from torch import Tensor, nn

from torchgraph_explorer.capture.modules_by_name import modules_by_name


class ParameterPlace(NamedTuple):
    """A name in a module, which is not kept alive."""

    module: weakref.ref[nn.Module]
    name: str

    @property
    def parameter(self) -> Tensor | None:
        """The tensor that is at this place now; within a call by `torch.func`, it is no `nn.Parameter`."""
        module = self.module()
        found = {} if module is None else module._parameters
        return found[self.name] if self.name in found else None  # noqa: SIM401  # a scripted module's has no `get`


def parameter_places(model: nn.Module) -> Iterator[tuple[nn.Parameter, ParameterPlace]]:
    """Each parameter of `model`; one that is shared comes several times.

    As torch itself walks them: a `named_parameters` of the user's, or of Keras', may change the module.
    """
    for module in modules_by_name(model).values():
        reference = weakref.ref(module)
        for name, parameter in nn.Module.named_parameters(module, recurse=False):
            yield parameter, ParameterPlace(reference, name)
