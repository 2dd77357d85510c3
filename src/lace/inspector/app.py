"""The routes of all pages.

Rule: this is the only module that knows requests. A page is a function of what is opened and what was asked; failures
become pages too, with the words of the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from lace.errors import InvalidInput, LaceError, NotFound
from lace.inspector.answers import Answers
from lace.inspector.archives import archive_page
from lace.inspector.browse import browse, recent
from lace.inspector.conversation import capture_page
from lace.inspector.exposure import exposure_page
from lace.inspector.guard import CONTENT_POLICY
from lace.inspector.history import compare
from lace.inspector.home import home
from lace.inspector.html import Markup, tag
from lace.inspector.inspected import Inspected, OpenedLace
from lace.inspector.node import RateMeter, node_page
from lace.inspector.overview import overview
from lace.inspector.page import POSTED, NavEntry, Navigation, Page, respond
from lace.inspector.phases import Item
from lace.inspector.record import record_page, stream_content
from lace.inspector.rules import rules_page
from lace.inspector.search import find_page
from lace.inspector.timeline import timeline
from lace.inspector.widgets import empty, link
from lace.inspector.writing import delete_page, put_page

STATIC = Path(__file__).parent / "static"
PAGES = (  # of a lace: label, address below it, and the key that goes there after `g`
    ("Home", "", "h"),
    ("Browse", "/browse", "b"),
    ("Recent", "/recent", "n"),
    ("Rules", "/rules", "r"),
    ("Exposure", "/exposure", "e"),
)
Asked = Mapping[str, str]
LacePage = Callable[[OpenedLace, Asked], Page]
PlainPage = Callable[[Asked], Page]


def make_app(inspected: Inspected) -> Starlette:
    """The application over what was opened, without its guard."""
    return Starlette(routes=_Pages(inspected).routes(), exception_handlers={HTTPException: _http_error})


class _Pages:
    """The pages of one inspector."""

    def __init__(self, inspected: Inspected) -> None:
        self.inspected = inspected
        self.limits = inspected.limits
        self.answers = Answers(inspected.limits.answers_kept)

    def routes(self) -> list[Route | Mount]:
        limits, answers, inspected = self.limits, self.answers, self.inspected
        lace: list[tuple[str, LacePage]] = [
            ("", lambda opened, asked: (browse if asked.get("group") else home)(opened, asked, limits)),
            ("/browse", lambda opened, asked: browse(opened, asked, limits)),
            ("/recent", lambda opened, asked: recent(opened, asked, limits)),
            ("/record/{record}", lambda opened, asked: record_page(opened, asked, limits, write=inspected.write)),
            ("/compare", lambda opened, asked: compare(opened, asked, limits)),
            ("/find", lambda opened, asked: find_page(opened, asked, limits)),
            ("/exposure", exposure_page),
            ("/rules", lambda opened, asked: rules_page(opened, asked, limits, answers)),
        ]
        if inspected.write:
            lace += [("/put", put_page), ("/delete", delete_page)]
        plain: list[tuple[str, PlainPage]] = [
            ("/", lambda asked: overview(inspected)),
            ("/capture/{capture}", self._capture),
            ("/archive/{archive}", self._archive),
        ]
        if inspected.node:
            meter = RateMeter()
            plain.append(("/node", lambda asked: node_page(inspected, meter, asked)))
        return [
            *(Route(f"/lace/{{lace}}{path}", self._of_lace(page), methods=["GET", "POST"]) for path, page in lace),
            *(Route(path, self._plain(page), methods=["GET", "POST"]) for path, page in plain),
            Route("/lace/{lace}/content/{record}", self._content),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    def _of_lace(self, page: LacePage) -> Any:
        async def answer(request: Request) -> Response:
            slug = request.path_params["lace"]
            asked = await self._asked(request)
            if slug not in self.inspected.laces:
                return self._respond(request, _missing("There is no such lace here."), None)
            found = await run_in_threadpool(_told, lambda: page(self.inspected.current(slug), asked))
            return self._respond(request, found, self.inspected.laces[slug])

        return answer

    def _plain(self, page: PlainPage) -> Any:
        async def answer(request: Request) -> Response:
            asked = await self._asked(request)
            return self._respond(request, await run_in_threadpool(_told, lambda: page(asked)), None)

        return answer

    def _capture(self, asked: Asked) -> Page:
        path = self.inspected.captures.get(asked["capture"])

        def line(items: Sequence[Item], asked: Asked) -> Markup:
            return timeline(self.inspected, f"/capture/{asked['capture']}", items, asked)

        return (
            capture_page(asked["capture"], path, asked, self.limits, self.inspected.names(), line)
            if path
            else _missing("There is no such capture.")
        )

    def _archive(self, asked: Asked) -> Page:
        path = self.inspected.archives.get(asked["archive"])
        return (
            archive_page(asked["archive"], path, asked, self.limits, self.inspected.names())
            if path
            else _missing("There is no such archive.")
        )

    async def _asked(self, request: Request) -> dict[str, str]:
        """Parameters of the path, the address and the form, which is read up to a limit."""
        found = {key: str(value) for key, value in request.path_params.items()} | dict(request.query_params)
        found.pop(POSTED, None)  # an address may say anything
        if request.method == "POST":
            body = bytearray()
            async for chunk in request.stream():
                body += chunk
                if len(body) > self.limits.form_bytes:
                    raise HTTPException(413, f"a form may have at most {self.limits.form_bytes:,} bytes")
            found |= dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=64))
            found[POSTED] = "1"
        return found

    async def _content(self, request: Request) -> Response:
        """Raw content: an image that cannot run, or bytes to download."""
        slug, record = request.path_params["lace"], request.path_params["record"]
        if slug not in self.inspected.laces:
            raise HTTPException(404)
        try:
            opened = await run_in_threadpool(self.inspected.current, slug)
            head, pieces = await run_in_threadpool(stream_content, opened, record)
        except LaceError as error:
            raise HTTPException(404, str(error)) from error
        kind = head.image_type
        headers = {"Content-Security-Policy": CONTENT_POLICY, "Content-Length": str(head.length)}
        if kind is None:
            headers["Content-Disposition"] = f'attachment; filename="{record}"'
        return StreamingResponse(pieces, media_type=kind or "application/octet-stream", headers=headers)

    def _respond(self, request: Request, page: Page, opened: OpenedLace | None) -> Response:
        return respond(request, page, self.navigation(opened))

    def navigation(self, opened: OpenedLace | None) -> Navigation:
        """The navigation for the current lace, or for the only one."""
        inspected, laces = self.inspected, self.inspected.laces
        opened = opened or (next(iter(laces.values())) if len(laces) == 1 else None)
        others = [NavEntry(slug, f"/lace/{slug}", "") for slug in laces if opened is None or slug != opened.slug]
        others += [NavEntry(name, f"/capture/{name}", "") for name in inspected.captures]
        others += [NavEntry(name, f"/archive/{name}", "") for name in inspected.archives]
        others += [NavEntry("Node", "/node", "o")] if inspected.node else []
        if opened is None:
            return Navigation(others=others)
        pages = [NavEntry(label, opened.base + path, key) for label, path, key in PAGES]
        pages += [NavEntry("Put", f"{opened.base}/put", "p")] if inspected.write else []
        return Navigation(lace=opened.slug, base=opened.base, pages=pages, others=others)


def _told(work: Callable[[], Page]) -> Page:
    """A page, or a page that says why it failed."""
    try:
        return work()
    except NotFound as error:
        return _missing(str(error), *getattr(error, "__notes__", ()))
    except InvalidInput as error:
        return _failed(400, "That cannot be read", str(error))
    except LaceError as error:
        return _failed(500, "That did not work", str(error))


def _missing(text: str, *notes: str) -> Page:
    body = tag("div", tag("h1", "Not here"), empty(text, [*notes, " ", link("Start over", "/")]))
    return Page(title="Not here", data={"error": text}, body=body, status=404)


def _failed(status: int, title: str, text: str) -> Page:
    body = tag("div", tag("h1", title), tag("pre", text, class_="notice bad", role="alert"))
    return Page(title=title, data={"error": text}, body=body, status=status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse(f"{error.detail}\n", status_code=error.status_code)
