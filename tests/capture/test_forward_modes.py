"""What is switched on in a logged forward pass is off again after it, however it ended, and in whichever thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from tests.listening import Listening
from torchgraph_explorer import watch
from torchgraph_explorer.capture.trace import Trace


class Doing(nn.Module):
    """Does something between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 1)
        self.do: Callable[[], object] = lambda: None

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        self.do()
        return self.second(x)


class Counting(TorchDispatchMode):
    """Counts the operations of one kind."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.additions = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.additions += func is torch.ops.aten.add.Tensor
        return func(*args, **(kwargs or {}))


def interrupt() -> None:
    raise KeyboardInterrupt


def in_a_thread(act: Callable[[], object]) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


def test_an_interrupt_leaves_no_mode_of_the_users_on() -> None:
    model = Doing()
    model.do, mode = interrupt, Counting()
    with watch(model, backend=Listening(), log_freq=1):
        with pytest.raises(KeyboardInterrupt), mode:
            model(torch.ones(2, 3))
        torch.ones(1) + 1
        assert mode.additions == 0
        model.do = lambda: None
        model(torch.ones(2, 3)).sum().backward()
        assert _get_current_dispatch_mode() is None


def test_an_interrupt_of_which_no_hook_is_told_leaves_our_mode_on_only_for_a_moment() -> None:
    model = Doing()
    model.do = interrupt
    with watch(model, backend=Listening(), log_freq=1):
        with pytest.raises(KeyboardInterrupt):
            model(torch.ones(2, 3))
        deadline = time.monotonic() + 10
        while _get_current_dispatch_mode() is not None:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_mode_that_stays_on_after_the_forward_pass_does_not_keep_the_trace_on() -> None:
    model, mode = Doing(), Counting()
    model.do = mode.__enter__
    with watch(model, backend=Listening(), log_freq=1):
        model(torch.ones(2, 3)).sum().backward()
        assert _get_current_dispatch_mode() is mode
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        assert _get_current_dispatch_mode() is None


@pytest.mark.parametrize("around", [lambda act: act(), in_a_thread], ids=["its own thread", "another thread"])
def test_closing_within_a_forward_pass_leaves_nothing_on(around: Callable[[Callable[[], object]], object]) -> None:
    model = Doing()
    watcher = watch(model, backend=Listening(), log_freq=1)

    def close() -> None:
        with Counting():
            around(watcher.close)

    model.do = close
    model(torch.ones(2, 3)).sum().backward()
    assert _get_current_dispatch_mode() is None
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


def test_a_trace_that_another_thread_has_ended_follows_nothing() -> None:
    model, followed = Doing(), []
    watcher = watch(model, backend=Listening(), log_freq=1)

    def close() -> None:
        model.do = lambda: None
        in_a_thread(watcher.close)
        trace = _get_current_dispatch_mode()
        assert isinstance(trace, Trace)
        before = trace._time
        torch.ones(1) + 1
        followed.append(trace._time - before)
        in_a_thread(lambda: model(torch.ones(2, 3)))
        assert _get_current_dispatch_mode() is trace, "another thread's call is not what it waits for"

    model.do = close
    model(torch.ones(2, 3)).sum().backward()
    assert followed == [0]
    assert _get_current_dispatch_mode() is None


@pytest.mark.slow  # imports dynamo
@pytest.mark.filterwarnings("ignore")
def test_torchs_control_flow_is_compiled_in_a_step_in_which_nothing_else_is() -> None:
    import torch._dynamo
    from torch._dynamo import utils

    plain = utils.disable_cache_limit
    compiled_is_eager = []

    def doubled(x: Tensor) -> Tensor:
        compiled_is_eager.append(not torch.compiler.is_compiling())
        return x * 2

    class Conditional(Doing):
        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            x = torch.cond(x.sum() > 0, lambda x: x * self.first.bias, lambda x: x - self.first.bias, (x,))
            with utils.disable_cache_limit():
                return self.second(torch.compile(doubled, backend="eager")(x))

    model = Conditional()
    with watch(model, backend=Listening(), log_freq=1):
        for _ in range(2):
            model(torch.ones(2, 3)).sum().backward()
    assert compiled_is_eager == [True, True], "the limit that the user lifts is not torch's"
    assert model.first.bias.grad is not None
    assert utils.disable_cache_limit is plain
