"""Who may send requests: this machine, with the printed token, from our own pages.

Rule: everything else is refused here, before any page sees it. A foreign page that makes the browser call us has the
wrong Origin, a foreign name that resolves to us has the wrong Host, and another user of this machine has no token. The
token starts a session, whose cookie is a separate secret.
"""

from __future__ import annotations

import hmac
import secrets
from collections import deque
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"  # noqa: S105 - a name, not a secret
SESSION_BYTES = 24
MAX_SESSIONS = 64  # browsers with a session; beyond that the oldest needs the token again
SAFE_METHODS = frozenset(("GET", "HEAD"))
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
CONTENT_POLICY = "sandbox; default-src 'none'; frame-ancestors 'none'"


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._sessions: deque[bytes] = deque(maxlen=MAX_SESSIONS)  # in memory only, so they end with this server
        self._cookie = f"lace_inspector_{port}"
        self._hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no WebSockets here
        answer = self._refusal(scope) or self._admission(scope)
        await (answer or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            return _refused(421, "this is not our address: use the one that `lace inspect` printed")
        origin = headers.get("origin")
        if origin is None and scope["method"] not in SAFE_METHODS:
            return _refused(403, "a request that may change something must say which page it comes from")
        if origin is not None and origin.lower() != f"http://{host}":
            return _refused(403, "another site's page asked for this")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _refused(403, "another site's page asked for this")
        return None

    def _admission(self, scope: Scope) -> Response | None:
        """None for a request with a session's cookie; a request with the token gets a session; others are refused.

        The cookie is not the token: who reads what a browser keeps cannot begin a session with it.
        """
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for key, value in query if key == TOKEN), None)
        if given is not None and self._is_token(given):
            rest = urlencode([pair for pair in query if pair[0] != TOKEN])
            answer = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), status_code=303)
            answer.set_cookie(self._cookie, self._begin_session(), httponly=True, samesite="strict", path="/")
            return answer
        if any(map(self._is_session, _cookies(Headers(scope=scope).getlist("cookie"), self._cookie))):
            return None
        return _refused(401, "open the address that `lace inspect` printed, with its token")

    def _is_token(self, given: str) -> bool:
        return _is_same(given, self._token)

    def _begin_session(self) -> str:
        secret = secrets.token_urlsafe(SESSION_BYTES)
        self._sessions.append(secret.encode())
        return secret

    def _is_session(self, given: str) -> bool:
        return any(_is_same(given, known) for known in self._sessions)


def _is_same(given: str, secret: bytes) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret)


def _cookies(headers: Iterable[str], name: str) -> Iterable[str]:
    for header in headers:
        try:
            found = SimpleCookie(header).get(name)
        except CookieError:
            continue
        if found is not None:
            yield found.value


def _refused(status: int, why: str) -> Response:
    return PlainTextResponse(f"{why}\n", status_code=status)


def _with_headers(send: Send) -> Send:
    """Add headers that tell a browser what it may do with an answer; a page's own stricter policy stays."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("Content-Security-Policy", PAGE_POLICY)
            headers.setdefault("Cache-Control", "no-store")
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "same-origin"  # `no-referrer` would make our own forms say Origin: null
            headers["Cross-Origin-Opener-Policy"] = "same-origin"
            headers["Cross-Origin-Resource-Policy"] = "same-origin"
        await send(message)

    return send_with_headers
