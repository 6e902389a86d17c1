"""Who is let in."""

from __future__ import annotations

import pytest

from tests.server.asking import ask
from torchgraph_explorer.server.guard import LOOPBACK, own_hosts_only, token_only
from torchgraph_explorer.server.response import App, Environment, StartResponse, problem, send

TOKEN = "s3cret-Token_"


def open_door(environment: Environment, start_response: StartResponse) -> list[bytes]:
    return send(problem(200, "in"), environment, start_response)


@pytest.fixture
def served() -> App:
    return token_only(open_door, TOKEN)


HOSTS = {
    **dict.fromkeys(("localhost:8080", "127.0.0.1", "127.0.0.1:80", "[::1]:8080", "LocalHost:8080"), 200),
    **dict.fromkeys(("evil.example", "evil.example:8080", "localhost.evil.example", "192.168.0.7", "", "[::2]"), 403),
}


@pytest.mark.parametrize(("host", "status"), HOSTS.items())
def test_only_our_own_names_are_answered(host: str, status: int) -> None:
    answer = ask(own_hosts_only(open_door, LOOPBACK), "/", HTTP_HOST=host)
    assert answer.status == status
    assert status == 200 or repr(host.partition(":")[0])[:-1] in answer.json["error"]


def cookie_of(served: App) -> str:
    return ask(served, "/", f"token={TOKEN}").headers["Set-Cookie"].partition(";")[0]


ADDRESSES = {
    "page": ("", "/", f"token={TOKEN}", "./"),
    "deeper": ("", "/assets/a.js", f"token={TOKEN}", "./a.js"),
    "prefix": ("/tools/graph", "/", f"token={TOKEN}", "./"),
    "prefix without a slash": ("/tools/graph", "", f"token={TOKEN}", "./graph"),
    "other parameters": ("", "/api/frame", f"run=a%26b&token={TOKEN}&frame=1", "./frame?run=a%26b&frame=1"),
    "odd name": ("", "//evil.example", f"token={TOKEN}", "./evil.example"),
    "letters": ("", "/\xc3\xa4:b", f"token={TOKEN}", "./%C3%A4%3Ab"),
}


@pytest.mark.parametrize(("prefix", "path", "query", "location"), ADDRESSES.values(), ids=ADDRESSES)
def test_the_token_is_taken_out_of_the_address_and_all_else_kept(
    prefix: str, path: str, query: str, location: str, served: App
) -> None:
    answer = ask(served, path, query, SCRIPT_NAME=prefix)
    assert (answer.status, answer.headers["Location"]) == (303, location)
    assert answer.headers["Set-Cookie"].endswith("; HttpOnly; SameSite=Strict; Path=/")
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_the_cookie_lets_in_also_among_others(served: App) -> None:
    assert ask(served, "/", HTTP_COOKIE=f'bad[=1; a="b; {cookie_of(served)}; c').status == 200


@pytest.mark.parametrize("query", ["", "token=", "token=wrong", f"token={TOKEN[:-1]}", "token=%ff"])
@pytest.mark.parametrize("cookie", ["", "torchgraph=1", "{name}=wrong", "{name}="])
def test_who_has_no_token_is_told_where_it_is(query: str, cookie: str, served: App) -> None:
    name = cookie_of(served).partition("=")[0]
    answer = ask(served, "/", query, HTTP_COOKIE=cookie.format(name=name))
    assert answer.status == 401
    assert "open the address that it printed in its terminal" in answer.json["error"]
    assert TOKEN not in repr(answer)


def test_servers_on_one_host_do_not_take_each_others_cookies(served: App) -> None:
    other = token_only(open_door, "another")
    assert (
        ask(other, "/", "token=another").headers["Set-Cookie"].partition("=")[0] != cookie_of(served).partition("=")[0]
    )
    assert ask(other, "/", HTTP_COOKIE=cookie_of(served)).status == 401
