"""What else is going on around the model: hooks, modes, threads, profilers, compiled parts."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from functorch.compile import aot_module, make_boxed_func  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from tests.compatibility.case import Table, Training, module, sgd, trained

case = Table("surroundings")


def _net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Linear(6, 2))


def _x(*shape: int) -> Any:
    return lambda: torch.randn(*(shape or (4, 6)))


def _within(
    context: Any, model: nn.Module | None = None, *, whole: bool = True, make: Callable[..., Any] = sgd
) -> Training:
    """Trains within a context manager, a new one each step; what it has in `seen` is compared."""
    model = model or _net()
    optimizer = make(model.parameters())

    def step(_number: int) -> object:
        with context() as mode:
            optimizer.zero_grad()
            loss = model(torch.randn(4, 6)).square().mean()
            if whole:
                loss.backward()
                optimizer.step()
        if not whole:
            loss.backward()
            optimizer.step()
        return loss.detach(), getattr(mode, "seen", None)

    return Training(model, step, [optimizer])


@case("forward hooks that change inputs and outputs")
def _() -> Any:
    model = _net()
    model.register_forward_pre_hook(lambda _m, args: (args[0] * 2,))
    model[0].register_forward_pre_hook(lambda _m, args, kwargs: ((args[0] + 1,), kwargs), with_kwargs=True)
    model[0].register_forward_hook(lambda _m, _args, out: out * 0.5)
    model.register_forward_hook(lambda _m, _args, out: {"out": out})
    return model, _x()


@case("hooks registered and removed within the step")
def _() -> Any:
    def forward(self: Any, x: Tensor) -> Tensor:
        handle = self.a.register_forward_hook(lambda _m, _args, out: out * 0.5)
        y = self.a(x)
        handle.remove()
        return self.a(y)

    return module(forward, a=nn.Linear(6, 6)), _x()


def _doubled(_module: Any, gradients: Any, *_: Any) -> Any:
    return tuple(None if gradient is None else gradient * 2 for gradient in gradients)


@case("full backward hooks that change gradients")
def _() -> Any:
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))
    model[0].register_full_backward_hook(_doubled)
    model[2].register_full_backward_pre_hook(_doubled)
    model.register_full_backward_hook(lambda *_: None)
    return model, _x()


@case("hooks on parameters that change their gradient")
def _() -> Any:
    model = _net()
    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: gradient * 0.5)
    return model, _x()


@case("hooks for all modules of the process")
def _() -> Any:
    seen: list[str] = []
    handles = [
        nn.modules.module.register_module_forward_pre_hook(lambda m, _args: seen.append(type(m).__name__)),
        nn.modules.module.register_module_forward_hook(lambda m, _args, out: seen.append(type(m).__name__)),
    ]
    training = trained(_net(), _x())
    plain = training.step
    training.step = lambda number: (plain(number), list(seen))

    def close() -> None:
        for handle in handles:
            handle.remove()

    training.close = close
    return training


@case("hooks on state_dict and its loading")
def _() -> Any:
    model = _net()
    model.register_state_dict_post_hook(lambda _m, state, *_: state.update(extra=torch.ones(1)))
    model.register_load_state_dict_pre_hook(lambda _m, state, *_: state.pop("extra", None))
    training = trained(model, _x())
    plain = training.step

    def step(number: int) -> object:
        model.load_state_dict(model.state_dict())
        return plain(number), list(model.state_dict())

    training.step = step
    return training


class Functions(TorchFunctionMode):
    """Notes what is called, and doubles what `tanh` returns."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    """Notes what is called."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@contextmanager
def _flops() -> Iterator[Any]:
    with FlopCounterMode(display=False) as mode:
        yield mode
    mode.seen = {
        name: {str(op): count for op, count in counts.items()} for name, counts in mode.get_flop_counts().items()
    }


@case("a function mode of the user's own around the step", hookable=False)
def _() -> Any:
    return _within(Functions)


@case("a function mode of the user's own around steps of which every third is logged", steps=5, hookable=False)
def _() -> Any:
    training = _within(Functions, make=torch.optim.Adam)
    training.options = {"log_freq": 3}
    return training


@case("a dispatch mode of the user's own around the step", hookable=False)
def _() -> Any:
    return _within(Operations)


@case("a dispatch mode of the user's own around the forward pass", hookable=False)
def _() -> Any:
    return _within(Operations, whole=False)


@case("a dispatch mode within the model")
def _() -> Any:
    def forward(self: Any, x: Tensor) -> Any:
        with Operations() as mode:
            y = self.a(x)
        return self.b(y), list(mode.seen)

    return module(forward, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


@case("FlopCounterMode, whose counts stay the same")
def _() -> Any:
    return _within(_flops)


@case("a default device by context")
def _() -> Any:
    return _within(lambda: torch.device("cpu"))


@case("deterministic algorithms")
def _() -> Any:
    torch.use_deterministic_algorithms(True)
    return _net(), _x()


@case("the profiler")
def _() -> Any:
    return _within(lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]))


@case("the profiler with modules, shapes and stacks")
def _() -> Any:
    return _within(lambda: torch.profiler.profile(with_modules=True, record_shapes=True, with_stack=True))


def _scripted(model: nn.Module) -> Any:
    """A scripted model which the compiler has optimised already: its numbers are others before."""
    scripted = torch.jit.script(model)
    for _ in range(4):
        scripted(torch.randn(4, 6)).sum().backward()
    scripted.zero_grad()
    return scripted


SCRIPTED = "torch.jit.ScriptModule refuses hooks. "


@case(
    "a scripted submodule",
    cannot={"P2": SCRIPTED + "Its call is not a node of the graph; data is drawn as if it came from further back."},
)
def _() -> Any:
    scripted = _scripted(nn.Sequential(nn.Linear(6, 6), nn.Tanh()))
    return module(lambda self, x: self.b(self.a(x)), a=scripted, b=nn.Linear(6, 2)), _x()


@case(
    "a traced submodule",
    cannot={"P2": SCRIPTED + "Its call is not a node of the graph; data is drawn as if it came from further back."},
)
def _() -> Any:
    traced = torch.jit.trace(nn.Sequential(nn.Linear(6, 6), nn.Tanh()), torch.randn(4, 6))
    return module(lambda self, x: self.b(self.a(x)), a=traced, b=nn.Linear(6, 2)), _x()


@case(
    "a scripted model",
    cannot=dict.fromkeys(("P1", "P2", "P3"), SCRIPTED + "watch() raises and says so, before training begins."),
)
def _() -> Any:
    return _scripted(nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))), _x()


@case("a model traced by fx")
def _() -> Any:
    return torch.fx.symbolic_trace(_net()), _x()


@case("a model traced by jit while it is watched", hookable=False)
def _() -> Any:
    training = trained(_net(), _x())
    plain = training.step

    def step(number: int) -> object:
        traced = torch.jit.trace(training.model, torch.ones(2, 6))
        return plain(number), traced(torch.ones(1, 6)).detach()

    training.step = step
    return training


@case("a model scripted by jit while it is watched, and a copy of it")
def _() -> Any:
    training = trained(_net(), _x())
    model = training.model

    def scripted() -> list[Tensor]:
        return [torch.jit.script(each)(torch.ones(1, 6)) for each in (model, copy.deepcopy(model))]

    training.after_watch = training.counted = scripted
    return training


@case("a model traced by make_fx and by AOTAutograd while it is watched", hookable=False)
def _() -> Any:
    training = trained(_net(), _x())
    plain, model = training.step, training.model

    def step(number: int) -> object:
        gradients = make_fx(lambda x: torch.autograd.grad(model(x).sum(), list(model.parameters())))(torch.ones(2, 6))
        ahead = aot_module(model, fw_compiler=lambda graph, _: make_boxed_func(graph.forward))
        return plain(number), gradients.code, ahead(torch.ones(1, 6)).detach()

    training.step = step
    return training


@case("an inference thread that calls the model during the step", traced=False)
def _() -> Any:
    def forward(self: Any, x: Tensor) -> Tensor:
        y = self.a(x)
        if threading.current_thread() is threading.main_thread():
            _run_in_thread(lambda: self(x[:1]))
        return self.b(y)

    return module(forward, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


@case("inference threads between the steps, with and without gradients", traced=False)
def _() -> Any:
    training = trained(_net(), _x())
    plain = training.step

    def infer() -> None:
        with torch.no_grad():
            training.model(torch.ones(2, 6))
        training.model(torch.ones(2, 6))

    def step(number: int) -> object:
        _run_in_thread(infer)
        return plain(number)

    training.step = step
    return training


@case("each training step in a thread of its own", traced=False)
def _() -> Any:
    training = trained(_net(), _x())
    plain = training.step

    def step(number: int) -> object:
        results: list[object] = []
        _run_in_thread(lambda: results.append(plain(number)))
        return results

    training.step = step
    return training


@case("a backward pass in another thread than the forward pass")
def _() -> Any:
    model = _net()
    optimizer = sgd(model.parameters())

    def step(_number: int) -> object:
        optimizer.zero_grad()
        loss = model(torch.randn(4, 6)).square().mean()
        _run_in_thread(loss.backward)
        optimizer.step()
        return loss.detach()

    return Training(model, step, [optimizer])


@case(
    "a part of the forward pass in another thread",
    cannot={
        "P2": "A computation in another thread cannot be distinguished from another use of the model there. The "
        "modules called in it are not drawn, and their results have no source in the graph."
    },
)
def _() -> Any:
    def forward(self: Any, x: Tensor) -> Tensor:
        found: list[Tensor] = []
        _run_in_thread(lambda: found.append(self.a(x)))
        return self.b(found[0])

    return module(forward, a=nn.Linear(6, 6), b=nn.Linear(6, 2)), _x()


def _run_in_thread(act: Any) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


@case("DataParallel on the CPU")
def _() -> Any:
    inner = _net()
    training = trained(nn.DataParallel(inner), _x())
    training.inner = inner
    return training


@case("two models watched at once, one inside the other", steps=3)
def _() -> Any:
    from tests.listening import Listening
    from torchgraph_explorer import watch

    whole = nn.Sequential(nn.Linear(6, 6), _net())
    training = trained(whole, _x())
    watchers: list[Any] = []
    training.after_watch = lambda: watchers.append(
        watch(whole[1], log_freq=1, backend=Listening(), verbose=False, name="inner")
    )
    training.close = lambda: [watcher.close() for watcher in watchers]
    return training


@case("the same model watched twice, and an exception in forward", steps=3, watchers=2, traced=False)
def _() -> Any:
    from tests.listening import Listening
    from torchgraph_explorer import watch

    training = trained(_net(), _x())
    plain = training.step
    watchers: list[Any] = []
    training.after_watch = lambda: watchers.append(
        watch(training.model, log_freq=2, backend=Listening(), verbose=False, name="again")
    )
    training.close = lambda: [watcher.close() for watcher in watchers]

    def step(number: int) -> object:
        try:
            training.model(torch.ones(1, 1))
        except RuntimeError as error:
            return str(error), plain(number)
        raise AssertionError("the model took an input of a wrong shape")

    training.step = step
    return training


@case("a data loader with worker processes", slow=True)
def _() -> Any:
    data = torch.utils.data.TensorDataset(torch.arange(24.0).view(4, 6))
    training = trained(_net(), _x())
    plain = training.step

    def step(number: int) -> object:
        loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=1, shuffle=True)
        seen = [batch[0] for batch in loader]
        return plain(number), seen

    training.step = step
    return training
