"""`explore`: what a user calls to see how gradient flows."""

from __future__ import annotations

from typing import Any

from torch import nn

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

    Serves a page until Ctrl-C, or until "End" is pressed in it. In a notebook it returns at once, and the session is
    shown as that page.

    Args:
        model: Any `nn.Module` that is not divided among ranks. It is left as it is: modes, hooks, `.grad`, buffers and
            random numbers.
        inputs: A tensor, a tuple of positional arguments, or a dict of keyword arguments.
        loss: The scalar whose gradient flows, as a function of what the model returns. None: what the model returns, if
            that is a scalar, or its attribute `loss`.
        serve: Serve a page. The session answers in Python, too, with or without it.
        host: Address that the page listens on.
        port: Its port; if taken, the next free one; 0 for any.
        logdir: A folder of runs, to be shown beside it.
        words: What inputs of whole numbers stand for, to be shown and searched in the page: the word of each number,
            the number of each word in a dict, as `tokenizer.get_vocab()`, or a function that gives a number's word, as
            `tokenizer.decode`.

    Returns:
        The session.

    Raises:
        OptionError: The model cannot be explored, the inputs hold no tensor, or there is no such address.

    Example:
        >>> session = explore(model, torch.rand(1, 1, 8, 8), loss=torch.sum, serve=False)
        >>> len(session.tensors) > 0
        True
    """
    session = Session(model, inputs, loss=loss)
    if not serve:
        return session
    page = Page(LiveSource(session, loss=loss, words=words), host=host, port=port, logdir=logdir)
    session.page = page
    page.show()
    if not is_notebook():
        page.wait()
    return session
