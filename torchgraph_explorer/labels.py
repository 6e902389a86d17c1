"""The labels of modules and tensors in the views. `web/src/graph/labels.ts` is the same in TypeScript."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from torchgraph_explorer.schema import Call

_ARGUMENT = re.compile(r"input\[(?:(\d+)|'([^'\\]*)'|\"([^\"\\]*)\")\](.*)", re.ASCII | re.DOTALL)


def tensor_name(path: str, forward_parameters: Sequence[str]) -> str:
    """A tensor's path by the parameters of its module's `forward`: `input[0]['mask']` as `batch['mask']`.

    The path itself if it is not an argument, or if no parameter of `forward` is known for it.
    """
    found = _ARGUMENT.fullmatch(path)
    if found is None or not forward_parameters:
        return path
    position, single, double, rest = found.groups()
    if position is None:
        key = single if single is not None else double
        return key + rest if key.isidentifier() and key.isascii() else path
    name = _positional(int(position), forward_parameters)
    return path if name is None else name + rest


def _positional(at: int, parameters: Sequence[str]) -> str | None:
    """The parameter that takes positional argument number `at`; for `*args`, with its index."""
    last = len(parameters) - 1
    if parameters[last].startswith("*") and at >= last:
        return f"{parameters[last][1:]}[{at - last}]"
    return parameters[at] if at <= last else None


def signature_place(path: str, forward_parameters: Sequence[str]) -> int:
    """Which parameter of its module's `forward` an input was given to; after all of them for one that is not known."""
    name = tensor_name(path, forward_parameters)
    starts = (parameter.lstrip("*") for parameter in forward_parameters)
    found = (at for at, start in enumerate(starts) if re.match(rf"{re.escape(start)}(?!\w)", name))
    return next(found, len(forward_parameters))


def module_label(name: str, classes: Mapping[str, str]) -> str:
    """The last part of a module's name; in a list or dictionary of modules, after the label of that.

    `stage2.conv1` is `conv1`, `encoder.blocks.0` is `blocks.0`, and `encoder.blocks.0.1` is `blocks.0.1`.

    Args:
        name: Qualified.
        classes: Name of the class of each module.
    """
    owner, _, last = name.rpartition(".")
    if owner and (_is_index(last) or classes.get(owner) == "ModuleDict"):
        return f"{module_label(owner, classes)}.{last}"
    return last


def label_within(name: str, outer: str, classes: Mapping[str, str]) -> str:
    """The label of a module in the inside of a call of the module `outer`, unique there."""
    prefix = f"{outer}." if outer else ""
    if not name.startswith(prefix):
        return name
    child, dot, rest = name[len(prefix) :].partition(".")
    return module_label(prefix + child, classes) + dot + rest


def numbered(label: str, call: Call) -> str:
    """The label of a call of a module: `act`, then `act #2` and so on."""
    return f"{label} #{call.call + 1}" if call.call else label


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdecimal()
