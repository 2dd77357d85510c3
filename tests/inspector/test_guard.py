"""Who is let in, and what browsers are told about what they get."""

from __future__ import annotations

import socket

import pytest

from inspector.visiting import Visitor, World
from lace.inspector.guard import MAX_SESSIONS
from lace.inspector.inspected import Inspected, InspectorLimits
from lace.inspector.serving import Inspector, inspecting

START = "/static/icon.svg"  # any page would do


def test_without_the_token_there_is_nothing(inspector: Inspector) -> None:
    for path in ("/", "/lace/notes", "/static/inspector.js", "/?token=", "/?token=wrong", "/nowhere"):
        answer = Visitor(inspector).get(path)
        assert answer.status == 401
        assert "set-cookie" not in answer.headers


def test_the_token_leaves_the_address_and_becomes_a_cookie(inspector: Inspector) -> None:
    answer = Visitor(inspector).get(f"/lace/notes?token={inspector.token}&group=u")
    assert (answer.status, answer.headers["location"]) == (303, "/lace/notes?group=u")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert "max-age" not in cookie  # gone with the browser
    assert "expires" not in cookie


def test_the_cookie_is_not_the_token_and_differs_for_each_visit(inspector: Inspector) -> None:
    first, second = Visitor.admitted(inspector), Visitor.admitted(inspector)
    name, _, secret = first.cookie.partition("=")
    assert inspector.token not in first.cookie
    assert secret != second.cookie.partition("=")[2]
    assert len(secret) >= 32
    assert first.get(START).status == second.get(START).status == 200
    assert Visitor(inspector, cookie=f"{name}={inspector.token}").get(START).status == 401  # the token is no cookie
    assert Visitor(inspector).get(f"/?token={secret}").status == 401  # and the cookie is no token


def test_a_session_belongs_to_one_run_of_the_server(visitor: Visitor) -> None:
    with inspecting(Inspected(limits=InspectorLimits())) as other:
        secret = visitor.cookie.partition("=")[2]
        assert Visitor(other, cookie=f"lace_inspector_{other.port}={secret}").get(START).status == 401


def test_sessions_are_bounded_and_the_oldest_has_to_bring_the_token_again() -> None:
    with inspecting(Inspected(limits=InspectorLimits())) as crowded:
        visitors = [Visitor.admitted(crowded) for _ in range(MAX_SESSIONS + 1)]
        assert visitors[0].get(START).status == 401
        assert visitors[1].get(START).status == visitors[-1].get(START).status == 200


@pytest.mark.parametrize("cookie", ["", "lace_inspector_1=x", "a", "=;=;", "lace_inspector_{port}=", "\xff=1"])
def test_a_strange_cookie_opens_nothing(inspector: Inspector, cookie: str) -> None:
    visitor = Visitor(inspector, cookie=cookie.format(port=inspector.port))
    assert visitor.get(START).status == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}"])
def test_a_name_that_was_made_to_point_here_is_refused(visitor: Visitor, host: str) -> None:
    rebound = Visitor(visitor.inspector, visitor.cookie, host.format(port=visitor.inspector.port))
    assert rebound.get(START).status == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1"])
def test_another_origin_is_refused_even_with_the_cookie(visitor: Visitor, origin: str) -> None:
    origin = origin.format(port=visitor.inspector.port)
    assert visitor.get(START, Origin=origin).status == 403
    assert visitor.post("/lace/notes/rules", {"rules": ""}, Origin=origin).status == 403


def test_a_form_without_an_origin_is_refused(visitor: Visitor) -> None:
    assert visitor.post("/lace/notes/rules", {"rules": ""}, Origin="").status == 403


def test_a_page_of_another_site_cannot_embed_or_fetch(visitor: Visitor) -> None:
    assert visitor.get(START, Sec_Fetch_Site="cross-site").status == 403
    assert visitor.get(START, Sec_Fetch_Site="same-site").status == 403
    assert visitor.get(START, Sec_Fetch_Site="same-origin").status == 200


def test_every_answer_forbids_what_pages_do_not_need(visitor: Visitor, inspector: Inspector) -> None:
    for answer in (visitor.get(START), visitor.get("/nowhere"), visitor.get("/static/inspector.js"),
                   Visitor(inspector).get(START)):  # fmt: skip
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_it_listens_on_this_machine_only(inspector: Inspector) -> None:
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in addresses - {"127.0.0.1"}:
        if str(address).startswith("127."):
            continue
        with socket.socket() as probe:
            probe.settimeout(2)
            assert probe.connect_ex((str(address), inspector.port)) != 0


def test_a_form_beyond_its_limit_is_refused(visitor: Visitor) -> None:
    assert visitor.post("/lace/notes/rules", {"rules": "x" * (2 << 20)}).status == 413


def test_pages_hold_no_script_of_their_own(visitor: Visitor, world: World) -> None:
    for path in ("/lace/notes", "/lace/notes/rules", f"/lace/notes/record/{world.records['hostile']}"):
        text = visitor.get(path).text
        assert text.count("<script") == 1, path
        assert '<script src="/static/inspector.js" defer></script>' in text
        assert " style=" not in text
        assert "javascript:" not in text
