"""The viewer through a proxy that strips a prefix, as Jupyter and Colab have one: every address is relative."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
import torch
from playwright.sync_api import Page, Request, expect
from torch import Tensor

from tests.browser.page import Viewer
from tests.browser.servers import ServerProcess
from tests.exploring.models import load_forward_mode, mlp
from tests.tb_plugin.hosts import PREFIX, notebook, prefix_stripping_proxy, serving
from torchgraph_explorer.exploring.serving import Page as FlowPage
from torchgraph_explorer.exploring.session import Session
from torchgraph_explorer.exploring.source import LiveSource


@pytest.fixture
def tab(page: Page) -> Iterator[Page]:
    """A page in which nothing fails, and which asks for nothing beside the prefix."""
    viewer, asked = Viewer(page, ""), list[str]()

    def note(request: Request) -> None:
        asked.append(request.url)

    page.on("request", note)
    yield page
    page.goto("about:blank")
    viewer.leave()
    assert viewer.complaints == []
    assert [url for url in asked if f"{PREFIX}/" not in url and not url.startswith(("about:", "data:", "blob:"))] == []


def test_kept_tensors_their_dependencies_and_the_network_are_shown(
    tab: Page, server: ServerProcess, dependent: str
) -> None:
    with serving(prefix_stripping_proxy(server.url)) as address:
        tab.goto(f"{address}{PREFIX}/#{urlencode({'run': dependent, 'view': 'tensors', 'list': 'graph'})}")
        nodes = tab.get_by_role("group", name="Dependency graph of tensors").get_by_role("button")
        expect(nodes).to_have_count(5)
        expect(tab.locator(".tensor-pane")).not_to_have_count(0)
        expect(tab.get_by_role("slider", name="value over steps")).to_be_visible()
        tab.get_by_role("radio", name="Network").check(force=True)
        expect(tab.locator(".network tbody tr")).not_to_have_count(0)
        leave(tab)


def leave(tab: Page) -> None:
    """Before the proxy ends: nothing is asked for any more."""
    tab.goto("about:blank")


def squares(output: Tensor) -> Tensor:
    return output.square().sum()


@pytest.fixture
def flow(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlowPage]:
    """The page of an MLP."""
    monkeypatch.chdir(tmp_path_factory.mktemp("flow"))
    load_forward_mode()
    session = Session(mlp(), torch.randn(2, 6), loss=squares)
    served = FlowPage(LiveSource(session, loss=squares), host="127.0.0.1", port=0, logdir=None)
    yield served
    served.close()


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({}, id="its own host, the page's origin"),
        pytest.param({"Host": "hub.example.org", "Origin": "https://hub.example.org:8443"}, id="others, as a hub"),
        pytest.param({"Origin": "null"}, id="no origin, as a sandbox"),
    ],
)
def test_the_flow_of_gradients_is_shown_and_changed(tab: Page, flow: FlowPage, changed: dict[str, str]) -> None:
    with serving(prefix_stripping_proxy(flow.url, **changed)) as address:
        tab.goto(f"{address}{PREFIX}/{flow.url.partition('://')[2].partition('/')[2]}")
        tab.locator(".flow-card canvas").first.click(position={"x": 4, "y": 4})
        expect(tab.locator(".flow-selected")).to_have_text("Selected: [0, 0]")
        leave(tab)


def test_the_flow_of_gradients_is_changed_in_an_iframe_of_another_site(tab: Page, flow: FlowPage) -> None:
    with (
        serving(prefix_stripping_proxy(flow.url)) as address,
        serving(notebook(f"{address}{PREFIX}/?{flow.url.partition('?')[2]}")) as outer,
    ):
        tab.goto(f"{outer.replace('localhost', '127.0.0.1')}{PREFIX}/")
        inner = tab.frame_locator("iframe")
        inner.locator(".flow-card canvas").first.click(position={"x": 4, "y": 4})
        expect(inner.locator(".flow-selected")).to_have_text("Selected: [0, 0]")
        assert "/token-" in tab.frames[-1].url  # such an iframe gets no cookies
        leave(tab)
