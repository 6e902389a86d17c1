"""`watcher.explore()` without a batch takes the last one that was kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.browser.page import expect_soon
from torchgraph_explorer import Keep, OptionError, Watcher, watch


class Masked(nn.Module):
    """Takes a tensor, a list of them, and a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x: Tensor, more: list[Tensor], scale: float = 1.0, *, mask: Tensor | None = None) -> Tensor:
        y = self.lin(x) + sum(more)
        return scale * (y if mask is None else y * mask)


def trained(
    folder: Path,
    keep: Keep | None,
    *batches: tuple[tuple[Any, ...], dict[str, Any]],
    dtype: torch.dtype = torch.float32,
) -> tuple[Watcher, Masked]:
    """A model that was trained on these arguments, and its watcher."""
    torch.manual_seed(0)
    model = Masked().to(dtype)
    watcher = watch(model, backend="record", log_freq=1, logdir=str(folder), keep=keep, verbose=False)
    for args, kwargs in batches:
        model(*args, **kwargs).sum().backward()
    return watcher, model


def batch(
    value: float, *, mask: bool = True, dtype: torch.dtype = torch.float32
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    x = torch.full((4, 3), value, dtype=dtype)
    return (x, [x + 1, x + 2]), ({"mask": torch.ones(4, 3, dtype=torch.bool)} if mask else {})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_last_batch_that_was_kept_is_explored(tmp_path: Path, dtype: torch.dtype) -> None:
    batches = [batch(value, dtype=dtype) for value in (1.0, 2.0, 3.0)]
    watcher, model = trained(tmp_path, Keep(":input", samples=None), *batches, dtype=dtype)
    with watcher:
        assert model.training  # the watcher alone does not keep it
        found: dict[str, Tensor] = {}

        def explored() -> None:
            try:
                session = watcher.explore(loss=torch.sum, serve=False)
            except OptionError as error:
                raise AssertionError("no step is written yet") from error
            found.update({name: session.value(name) for name in ("input[0]", "input[1][1]", "input['mask']")})
            assert float(found["input[0]"][0, 0]) >= 2  # the last step may still go on

        expect_soon(explored)
    value = float(found["input[0]"][0, 0])
    assert found["input[0]"].dtype == dtype
    assert torch.equal(found["input[0]"], torch.full((4, 3), value, dtype=dtype))
    assert torch.equal(found["input[1][1]"], torch.full((4, 3), value + 2, dtype=dtype))
    assert found["input['mask']"].all()


REFUSED: dict[str, tuple[Keep | None, Callable[[], tuple[tuple[Any, ...], dict[str, Any]]], str]] = {
    "nothing is kept": (None, lambda: batch(1.0), "No batch of the model was kept yet. Pass a batch: watcher.explore"),
    "an output is kept": (Keep("lin"), lambda: batch(1.0), "No batch of the model was kept yet."),
}


@pytest.mark.parametrize(("keep", "make", "words"), REFUSED.values(), ids=REFUSED)
def test_without_a_kept_batch_it_says_what_to_do(
    tmp_path: Path, keep: Keep | None, make: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]], words: str
) -> None:
    watcher, _model = trained(tmp_path, keep, make(), make())
    with watcher, pytest.raises(OptionError, match=words):
        watcher.explore(serve=False)


def test_without_a_folder_it_says_what_to_do() -> None:
    model = Masked()
    with watch(model, backend="none", verbose=False) as watcher, pytest.raises(OptionError, match="to a folder"):
        watcher.explore(serve=False)
