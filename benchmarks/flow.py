"""Gradient flow: what a click costs, beside one forward and backward pass of the model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from urllib.request import HTTPCookieProcessor, Request, build_opener

import torch
from torch import Tensor, nn

from benchmarks.models import mean_square, resnet18, transformer
from benchmarks.tables import Cell, Options, Spread, Table, main, spread
from torchgraph_explorer.exploring.products import prepare
from torchgraph_explorer.exploring.serving import Page
from torchgraph_explorer.exploring.session import Session
from torchgraph_explorer.exploring.source import LiveSource

Case = tuple[str, Callable[[], nn.Module], Callable[[], Tensor], tuple[str, str, str], tuple[int, ...]]

CASES: tuple[Case, ...] = (
    (
        "ResNet-18, 1 image of 224×224",
        lambda: resnet18().model,
        lambda: torch.randn(1, 3, 224, 224),
        ("input[0]", "6.second", "14"),
        (0, 3, 14, 14),
    ),
    (
        "transformer, 12 layers, d 768, 128 tokens",
        lambda: transformer(12, 768).model,
        lambda: torch.randn(1, 128, 768),
        ("input[0]", "layers.5.norm2", "layers.11.norm2"),
        (0, 64, 3),
    ),
)
"""Name, model, input, a chain with the tensor in the middle that is clicked at, and the element."""


def tables(options: Options) -> Iterator[Table]:
    """One table: seconds of a click, in Python and in a page."""
    prepare()
    rows = [measured(case, repeats=15 if options.full else 5) for case in CASES]
    yield Table(
        "A click on an element, in ms",
        [
            "model",
            "forward and backward",
            "what it sends",
            "what it gets",
            "both in a page",
            "both / pass",
            "page beyond",
        ],
        rows,
        "A page's click computes what the element sends to a tensor before it (a vector-Jacobian product) and what it "
        "gets from one after it (a second pass with forward-mode derivatives where they exist, and a check). "
        "`both / pass` and `page beyond`, what else is done until the page has the new state, are processor time: of "
        "the clock, other programs take a part that differs from one click to the next.",
    )


def measured(case: Case, *, repeats: int) -> list[Cell]:
    """The row of a model."""
    name, make, batch, (before, clicked, after), element = case
    model, x = make(), batch()
    session = Session(model, x, loss=mean_square)
    session.gradient(clicked)
    passes, cpu_of_passes = timed(lambda: mean_square(model(x.clone().requires_grad_())).backward(), repeats)
    session.gradient(clicked)  # the parameters are as before, so its pass is, too
    sends, cpu_of_sends = timed(lambda: session.received(clicked, element, [before]), repeats)
    gets, cpu_of_gets = timed(lambda: session.sent(clicked, element, [after]), repeats)
    clicks, cpu = in_page(session, (before, clicked, after), element, repeats=repeats)
    beyond = (cpu.median - cpu_of_sends.median - cpu_of_gets.median) * 1e3
    return [name, *(one / 1e-3 for one in (passes, sends, gets, clicks)), cpu.median / cpu_of_passes.median, beyond]


def in_page(
    session: Session, chain: tuple[str, ...], element: tuple[int, ...], *, repeats: int
) -> tuple[Spread, Spread]:
    """Seconds from the request that selects an element until the state with its contributions is there.

    Those of the clock, and those of the processor, in all threads.
    """
    page = Page(LiveSource(session, loss=mean_square), host="127.0.0.1", port=0, logdir=None)
    client = build_opener(HTTPCookieProcessor(CookieJar()))
    base = page.url.partition("?")[0] + "api/flow/"

    def state(known: int) -> dict[str, object]:
        with client.open(f"{base}state?known={known}") as answer:
            found: dict[str, object] = json.loads(answer.read())
        return found

    def change(what: str, **values: object) -> None:
        headers = {"Content-Type": "application/json"}
        client.open(Request(f"{base}{what}", data=json.dumps(values).encode(), headers=headers)).close()

    def wait(is_there: Callable[[dict[str, object]], bool]) -> None:
        found = state(-1)
        while not is_there(found):
            found = state(int(str(found["version"])))

    def stamp(found: dict[str, object]) -> object:
        parts: dict[str, dict[str, object]] = found["parts"]  # type: ignore[assignment]
        return parts["selection"]["stamp"]

    seconds, cpu = [], []
    try:
        client.open(page.url).close()
        wait(lambda found: bool(found["chain"]))
        change("chain", names=chain)
        change("cancel")  # of the links
        wait(lambda found: found["chain"] == list(chain) and found["isCurrent"] is True)
        for i in range(repeats + 1):
            known = stamp(state(-1))
            began, cpu_began = time.perf_counter(), time.process_time()
            change("select", tensor=chain[1], elements=[[*element[:-1], element[-1] + i % 2]])
            wait(lambda found, known=known: stamp(found) != known)  # type: ignore[misc]
            seconds.append(time.perf_counter() - began)
            cpu.append(time.process_time() - cpu_began)
            wait(lambda found: found["isCurrent"] is True)
    finally:
        page.close()
    return spread(seconds[1:]), spread(cpu[1:])


def timed(work: Callable[[], object], repeats: int) -> tuple[Spread, Spread]:
    """Seconds of `work`, of the clock and of the processor, after one that is not counted."""
    seconds, cpu = [], []
    for _ in range(repeats + 1):
        began, cpu_began = time.perf_counter(), time.process_time()
        work()
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - cpu_began)
    return spread(seconds[1:]), spread(cpu[1:])


if __name__ == "__main__":
    main(tables, __doc__)
