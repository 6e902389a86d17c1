"""What `calls.c` does for ordinary calls of modules in place of Python, where it was built.

It works on the same objects as the Python code, so each call can be left to that.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchgraph_explorer.capture.edge_gradients import InsideGradients
from torchgraph_explorer.capture.gradient_hooks import (
    ARE_VISITED_AGAIN,
    GradientHook,
    SeriesKey,
    current_backward,
    series_key,
)
from torchgraph_explorer.capture.modules_by_name import ModulesByName
from torchgraph_explorer.capture.no_dispatch import NoDispatch
from torchgraph_explorer.capture.open_call import OpenCall
from torchgraph_explorer.capture.path_gradients import (
    WITHOUT_GRADIENT,
    can_make_stale,
    creation_of,
    make_stale,
    sequence_number,
)
from torchgraph_explorer.capture.step_rows import Keeper
from torchgraph_explorer.capture.tensor_tree import info_of, plain_inputs, plain_outputs
from torchgraph_explorer.native import library_for_python
from torchgraph_explorer.schema import Call

BUILT = Path(__file__).parent / "built" / "calls.so"


class Makers(NamedTuple):
    """What makes the functions for one step.

    Attributes:
        calls: From a tuple of its objects, in the order of `calls.c`, and the most autograd nodes that are looked at.
        gradients: From a tuple of what is needed to read a gradient.
        parameters: From a tuple of what is needed to measure the gradients of parameters.
    """

    calls: Callable[[tuple[Any, ...], int], list[Any]]
    gradients: Callable[[tuple[Any, ...]], Callable[[Any, Tensor | None], bool]]
    parameters: Callable[[tuple[Any, ...]], Callable[[ModulesByName], bool]]


@cache
def makers() -> Makers | None:
    """The functions of `calls.c`; None where it was not built, or where this Python has not the interface it needs."""
    library = library_for_python(BUILT)
    if library is None:
        return None
    # A view that is not to be asked twice whether it is stale is left to Python, as all are in inference mode.
    with NoDispatch():
        leaves_views = torch.is_inference_mode_enabled if can_make_stale() else lambda: True
    begin = library.torchgraph_calls
    begin.argtypes, begin.restype = (ctypes.py_object,), ctypes.py_object
    return Makers(*begin((*_TYPES_AND_FUNCTIONS, leaves_views, *_VALUES, *_NAMES.split())))


def keeping(keeper: Keeper | None) -> tuple[Any, Any]:
    """What `calls.c` keeps tensors with: a function for ordinary ones, and one for all others; None without `keeper`.

    What fails in it ends the keeping of a tensor at most, not the recording.
    """
    if keeper is None:
        return None, None
    try:
        return _functions(keeper)
    except Exception as fault:
        keeper.fail(fault)
        return None, None


def _functions(keeper: Keeper) -> tuple[Any, Any]:
    return keeper.native, partial(_keep, keeper)


def _keep(keeper: Keeper, key: SeriesKey, tensor: Tensor) -> None:
    try:
        _take(keeper, key, tensor)
    except Exception as fault:
        keeper.fail(fault)


def _take(keeper: Keeper, key: SeriesKey, tensor: Tensor) -> None:
    with NoDispatch():
        keeper.take(key, tensor)


_TYPES_AND_FUNCTIONS = (
    *(Tensor, torch.nn.Parameter, OrderedDict, Call, OpenCall, InsideGradients, GradientHook),
    *(
        current_backward,
        sequence_number,
        torch._C._len_torch_dispatch_stack,
        torch._C._functorch.peek_interpreter_stack,
    ),
    *(torch._C._is_torch_function_mode_enabled, torch.is_grad_enabled, series_key, info_of),
    lambda args, kwargs: plain_inputs(args, kwargs),  # noqa: PLW0108  # looked up at each call: a test breaks it
    lambda output: plain_outputs(output),  # noqa: PLW0108  # the same
    creation_of,
    lambda view: make_stale(view),  # noqa: PLW0108  # the same
)

_VALUES = (
    WITHOUT_GRADIENT,
    "input",
    "output",
    "input[0]",
    "param",
    "value",
    "grad_norm",
    "grad",
    (),
    0,
    ARE_VISITED_AGAIN,
)

_NAMES = (
    "_is_view requires_grad grad_fn output_nr shape dtype _sequence_nr next_functions _backward_hooks "
    "_register_hook_dict register_hook f_back is_skipped frame index edges walk inside first _first crossing _children "
    "_places _given _starts _ends _unchanged keys summands closed task hooks _parameters call parent inputs outputs "
    "run take grad hooks_dict_ref id"
)
"""The attributes that `calls.c` reads, in its order."""
