"""Runs a case, watched or not, and says what it left behind."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode, _pop_mode

from tests.compatibility.case import Case, Training
from tests.compatibility.walk import fingerprint
from tests.devices import DEVICE, made_on
from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.training.watcher import Watcher


@dataclass
class Run:
    """What a case left behind.

    Attributes:
        state: By name, each as a fingerprint: results, parameters, buffers, gradients, optimizer and random states.
        heard: What was recorded; empty if unwatched.
        said: Our warnings.
    """

    state: dict[str, Any]
    heard: Listening
    said: list[str] = field(default_factory=list)


def run(
    case: Case,
    *,
    watched: bool,
    options: Mapping[str, Any] | None = None,
    around: Callable[[Training, Watcher | None], Any] | None = None,
) -> Run:
    """Train `case` from the same random numbers as ever.

    Args:
        case: The case.
        watched: Whether to watch it, logging every step.
        options: For `watch`, over these.
        around: Makes a context manager in which the steps are run.
    """
    heard = Listening()
    with _seeded(), made_on(DEVICE), _warnings() as said:
        training = case.make()
        watcher = _watch(training.model, heard, {**(options or {}), **training.options}) if watched else None
        try:
            training.after_watch()
            with around(training, watcher) if around else nullcontext():
                results = [training.step(number) for number in range(case.steps)]
                state = _state(training, results)
        finally:
            training.close()
            if watcher is not None:
                watcher.close()
    return Run(state, heard, said)


def _watch(model: nn.Module, heard: Listening, options: Mapping[str, Any]) -> Watcher:
    settings: dict[str, Any] = {"backend": heard, "log_freq": 1, "sample_n": 16, "verbose": False, **options}
    return watch(model, **settings)


def _state(training: Training, results: list[object]) -> dict[str, Any]:
    model = training.model
    state = {f"result of step {i}": fingerprint(result) for i, result in enumerate(results)}
    for name, parameter in model.named_parameters():
        if not isinstance(parameter, nn.parameter.UninitializedParameter):
            state[f"parameter {name}"] = fingerprint(parameter)
            state[f"gradient of {name}"] = fingerprint(parameter.grad)
    state |= {f"buffer {name}": fingerprint(buffer) for name, buffer in model.named_buffers()}
    state |= {f"optimizer {i}": _optimizer(each) for i, each in enumerate(training.optimizers)}
    state["random numbers of torch"] = fingerprint(torch.get_rng_state())
    if DEVICE == "cuda":
        state["random numbers of the GPU"] = fingerprint(torch.cuda.get_rng_state())
    state["random numbers of Python"] = hash(random.getstate())
    state["random numbers of numpy"] = np.random.get_state()[1].tobytes()  # type: ignore[index]
    state["counted"] = repr(training.counted())
    state["what it prints"] = repr(model)
    state["modules"] = [(name, type(module).__name__) for name, module in model.named_modules()]
    return state


def _optimizer(optimizer: Any) -> Any:
    """Its state without the names of it, which are memory addresses for scripted models."""
    groups = [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]
    return fingerprint([list(optimizer.state_dict()["state"].values()), groups])


@contextmanager
def _seeded() -> Iterator[None]:
    """The generators as ever, and all that a case may set process-wide as it was before."""
    kept = torch.get_rng_state(), random.getstate(), np.random.get_state()
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    torch.set_num_threads(1)
    if "torch._dynamo" in sys.modules:
        torch.compiler.set_stance("default")  # what a test broke on purpose may have left another
    torch.default_generator.manual_seed(7)  # `torch.manual_seed` notes the whole stack for other devices
    random.seed(7)
    np.random.seed(7)
    if DEVICE == "cuda":
        torch.cuda.manual_seed(7)
        torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.set_rng_state(kept[0])
        random.setstate(kept[1])
        np.random.set_state(kept[2])
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        torch.use_deterministic_algorithms(False)
        torch.set_grad_enabled(True)
        while _get_current_dispatch_mode() is not None:  # left by what a test broke on purpose
            _pop_mode()


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Ours, collected; those of torch and of the frameworks are not what is tested here."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", TorchgraphWarning)  # users' filter would hide what is said twice
        yield said
        said += [str(each.message) for each in caught if issubclass(each.category, TorchgraphWarning)]
