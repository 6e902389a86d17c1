"""`explore`: what a user calls to see how gradient flows."""

from __future__ import annotations

from typing import Any

from torch import nn

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.exploring.serving import Page, is_notebook
from torchgraph_explorer.exploring.session import Session, Target
from torchgraph_explorer.exploring.source import LiveSource
from torchgraph_explorer.exploring.words import Words


def explore(
    model: nn.Module,
    inputs: Any,
    *,
    loss: Target | None = None,
    serve: bool = True,
    host: str = "127.0.0.1",
    port: int = 8080,
    logdir: str | None = None,
    words: Words | None = None,
) -> Session:
    """Explore how gradient flows between any two tensors of one forward pass of `model`.

    This serves a page until you press Ctrl-C, or "End" in the page. In a notebook, it returns at once, and the session
    is shown as that page.

    Args:
        model: Any `nn.Module` that is not divided among ranks. Its modes, hooks, `.grad`, buffers and the random
            numbers are left as they are.
        inputs: A tensor, a tuple of positional arguments, or a dict of keyword arguments.
        loss: A function from what the model returns to the scalar whose gradient flows. None: what the model returns,
            if that is a scalar, or its attribute `loss`.
        serve: Whether to serve a page. You can ask the session from Python in any case.
        host: Address that the page listens on.
        port: Its port. If it is taken, the next free one is used; 0 for any free one.
        logdir: A folder of runs, which the page shows, too.
        words: What inputs of whole numbers stand for, to show and search them in the page: a list of words, a dict from
            words to numbers such as `tokenizer.get_vocab()`, or a function from a number to its word such as
            `tokenizer.decode`.

    Returns:
        The session.

    Raises:
        OptionError: The model cannot be explored, the inputs contain no tensor, `loss` is not a function, or the
            address is not allowed.

    Example:
        >>> session = explore(model, torch.rand(1, 1, 8, 8), loss=torch.sum, serve=False)
        >>> len(session.tensors) > 0
        True
    """
    if not isinstance(model, nn.Module):
        raise OptionError(f"explore() was given {type(model).__name__}. Pass the torch.nn.Module to explore.")
    if loss is not None and not callable(loss):
        raise OptionError(
            f"loss={loss!r:.100} is not a function. Pass one from what the model returns to a scalar, such as "
            f"loss=lambda output: F.cross_entropy(output, labels), or None."
        )
    session = Session(model, inputs, loss=loss)
    if not serve:
        return session
    page = Page(LiveSource(session, loss=loss, words=words), host=host, port=port, logdir=logdir)
    session.page = page
    page.show()
    if not is_notebook():
        page.wait()
    return session
