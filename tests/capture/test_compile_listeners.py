"""`nn.Module.compile`, which others replace, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch import nn

from torchgraph_explorer.capture.compile_listeners import CompileListeners


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the functions in place of `nn.Module.compile` note."""
    calls: list[str] = []
    monkeypatch.setattr(nn.Module, "compile", lambda _module: calls.append("torch"))
    return calls


def test_with_the_last_listener_compile_is_as_before(compiled: list[str]) -> None:
    before, listeners, seen = nn.Module.compile, CompileListeners(), list[nn.Module]()
    listeners.add(seen.append)
    module = nn.Linear(1, 1)
    module.compile()
    listeners.remove(seen.append)
    assert (nn.Module.compile, seen, compiled) == (before, [module], ["torch"])


def test_a_function_that_replaces_compile_during_a_watch_stays(compiled: list[str]) -> None:
    listeners = CompileListeners()
    listeners.add(lambda _module: compiled.append("first"))
    replace_by_others(compiled)
    listeners.remove(listeners._listeners[0])
    nn.Linear(1, 1).compile()
    listeners.add(lambda _module: compiled.append("second"))
    nn.Linear(1, 1).compile()
    assert compiled == ["others", "torch", "others", "torch", "second"]


def test_compile_is_seen_again_after_others_have_put_torchs_own_back(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torchs, listeners = nn.Module.compile, CompileListeners()
    listeners.add(lambda _module: compiled.append("first"))
    monkeypatch.setattr(nn.Module, "compile", torchs)
    listeners.add(lambda _module: compiled.append("second"))
    nn.Linear(1, 1).compile()
    assert compiled == ["torch", "first", "second"]


def replace_by_others(calls: list[str]) -> None:
    inner: Callable[..., Any] = nn.Module.compile

    def replaced(module: nn.Module) -> None:
        calls.append("others")
        inner(module)

    nn.Module.compile = replaced  # type: ignore[method-assign, assignment]
