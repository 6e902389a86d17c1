"""Who is let in."""

from __future__ import annotations

import random

import pytest

from tests.server.asking import ask
from torchgraph_explorer.server.guard import IN_COLAB, LOOPBACK, host_name, own_hosts_only, token_only
from torchgraph_explorer.server.response import App, Environment, StartResponse, problem, send

TOKEN = "s3cret-Token_"


def open_door(environment: Environment, start_response: StartResponse) -> list[bytes]:
    return send(problem(200, "in"), environment, start_response)


@pytest.fixture
def served() -> App:
    return token_only(open_door, TOKEN)


OURS = ("localhost", "localhost:8080", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:65535", "LocalHost:1", "LOCALHOST")
FOREIGN = (
    *("evil.example", "evil.example:8080", "localhost.evil.example", "192.168.0.7", "", "[::2]", "::1", "0.0.0.0"),
    *("[::1].evil", "[::1].evil:80", "[::1]evil", "[::1", "::1]", "[[::1]]", "[::1]:", "[::1%25lo]", "[::1%lo]:80"),
    *("[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]", "[v1.localhost]", "[localhost]", "[127.0.0.1]"),
    *("localhost:80:evil.com", "localhost:80@evil.com", "localhost@evil.com", "evil.com@localhost", "u:p@localhost"),
    *("localhost:", "localhost:0", "localhost:65536", "localhost:99999999999", "localhost:-1", "localhost:+80"),
    *("localhost: 80", "localhost:80 ", " localhost", "localhost:8o", "localhost:0x50", "localhost:80,localhost"),
    *("localhost,evil.com", "localhost, localhost", "localhost evil.com", "localhost\tevil.com", "localhost:\xb2"),
    *("localhost.", "localhost..", ".localhost", "localhost.:80", "127.0.0.1.", "127.0.0.01", "127.1", "2130706433"),
    *("%6cocalhost", "localhost%00", "localhost%2eevil.com", "localhost\0", "localhost\n", "localhost/", "localhost/a"),
    *(
        "localhost?",
        "localhost#",
        "localhost\\evil.com",
        "http://localhost",
        "//localhost",
        "xn--localhost-",
        "localho\u017ft",
    ),
    *(
        "\uff4cocalhost",
        "localhost\uff0eevil.com",
        "localhost:\uff18\uff10",
        "loca\xadlhost",
        "127\u3002 0.0.1",
        "a" * 9999,
    ),
)


PROXIED = {
    "8080-gpu-t4-s-abc.us-east1-0.prod.colab.dev": (403, 200),
    "abc-0kxydtn87-colab.googleusercontent.com:443": (403, 200),
    "prod.colab.dev.evil.example": (403, 403),
    "evilprod.colab.dev": (403, 403),
}
"""Names, and the answers outside and inside of Google Colab."""


@pytest.mark.parametrize(("host", "expected"), PROXIED.items(), ids=PROXIED)
def test_in_colab_the_names_of_its_proxy_are_ours(
    host: str, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(IN_COLAB, raising=False)
    outside = own_hosts_only(open_door, LOOPBACK)
    monkeypatch.setenv(IN_COLAB, "release-colab-external_20261101")
    inside = own_hosts_only(open_door, LOOPBACK)
    assert tuple(ask(app, "/", HTTP_HOST=host).status for app in (outside, inside)) == expected


@pytest.mark.parametrize("host", OURS)
def test_our_own_names_are_answered(host: str) -> None:
    assert ask(own_hosts_only(open_door, LOOPBACK), "/", HTTP_HOST=host).status == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_no_other_name_is_answered(host: str) -> None:
    answer = ask(own_hosts_only(open_door, LOOPBACK), "/", HTTP_HOST=host)
    assert answer.status == 403
    assert repr(host[:80]) in answer.json["error"]
    assert len(answer.json["error"]) < 400


PORTS = frozenset(map(str, range(1, 65536)))
ODD = [
    *"localhst127.:[]%@,/\\?#&=+- \t\r\n\0_09aAzZ",
    "\xb2",
    "\xa0",
    "\u017f",
    "\u0661",
    "\uff0e",
    ":80",
    "::",
    "evil.com",
    "[::1]",
]


def is_ours(host: str) -> bool:
    """By counting up what is allowed."""
    names = [name for name in ("localhost", "127.0.0.1", "[::1]") if host.isascii() and host.lower().startswith(name)]
    return any(host[len(name) :] == "" or (host[len(name)] == ":" and host[len(name) + 1 :] in PORTS) for name in names)


def mutated(rng: random.Random) -> str:
    letters = list(rng.choice(OURS))
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(letters))
        letters[at : at + rng.randint(0, 2)] = rng.choice(([], [rng.choice(ODD)], [rng.choice(ODD), rng.choice(ODD)]))
    return "".join(letters)


@pytest.mark.slow
def test_of_a_hundred_thousand_mutated_names_just_ours_are_taken() -> None:
    rng = random.Random(0)
    hosts = {mutated(rng) for _ in range(100_000)}
    taken = {host for host in hosts if host_name(host) in LOOPBACK}
    assert taken == {host for host in hosts if is_ours(host)}
    assert len(taken) > 100


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


def test_a_page_in_an_iframe_gets_the_token_as_a_folder(served: App) -> None:
    answer = ask(served, "/", f"token={TOKEN}&a=b", HTTP_SEC_FETCH_DEST="iframe")
    assert (answer.status, answer.headers["Location"]) == (303, f"./token-{TOKEN}/?a=b")
    assert "Set-Cookie" not in answer.headers
    assert ask(served, f"/token-{TOKEN}/api/runs").status == 200


@pytest.mark.parametrize("path", ["/token-/", "/token-wrong/", f"/{TOKEN}/", f"//token-{TOKEN}/", f"/a/token-{TOKEN}/"])
def test_another_folder_does_not_let_in(path: str, served: App) -> None:
    assert ask(served, path).status == 401
