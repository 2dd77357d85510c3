"""What every page has: a title, its place in the navigation, data, and a body that shows the data in HTML.

Rule: `?format=json` gives the data of any page, so everything that is shown can also be fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from lace.inspector.html import Markup, join, tag
from lace.inspector.widgets import link
from lace.values import dataclass

Data = dict[str, Any]
POSTED = "(posted)"  # a parameter that is set only if a form was sent; an address cannot set it
Place = tuple[str, str]  # a label and its address


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page, independent of whether it is sent as HTML or JSON."""

    title: str
    data: Data
    body: Markup
    crumbs: Sequence[Place] = ()
    here: str = ""  # the entry of the navigation that it belongs to
    status: int = 200
    location: str = ""  # where to send the browser after a change
    fragment: Markup | None = None  # the part that changes while somebody types


@dataclass(frozen=True, slots=True)
class Navigation:
    """The links on every page: the general ones, and those of one lace."""

    places: Sequence[Place]
    lace: str = ""
    lace_places: Sequence[Place] = field(default=())


def respond(request: Request, page: Page, navigation: Navigation) -> Response:
    """The page in the form that was asked for."""
    wanted = request.query_params.get("format", "")
    if wanted == "json":
        return JSONResponse(page.data, status_code=page.status)
    if page.location:
        return RedirectResponse(page.location, status_code=303)
    if wanted == "fragment" and page.fragment is not None:
        return HTMLResponse(page.fragment, status_code=page.status)
    return HTMLResponse(document(page, navigation), status_code=page.status)


def document(page: Page, navigation: Navigation) -> Markup:
    """The whole page."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{page.title} · Lace"),
        tag("link", rel="icon", href="/static/icon.svg"),
        tag("link", rel="stylesheet", href="/static/inspector.css"),
        tag("script", src="/static/inspector.js", defer=True),
    )
    return Markup("<!doctype html>\n" + tag("html", head, _body(page, navigation), lang="en"))


def _body(page: Page, navigation: Navigation) -> Markup:
    main = tag("main", _crumbs(page), page.body, id="main", tabindex="-1")
    return tag("body", tag("a", "Skip to the content", href="#main", class_="skip"), _banner(page, navigation), main)


def _banner(page: Page, navigation: Navigation) -> Markup:
    brand = tag("a", tag("span", "Lace", class_="brand-name"), href="/", class_="brand")
    lace = tag("span", navigation.lace, class_="lace-name") if navigation.lace else None
    entries = [*navigation.lace_places, *navigation.places]
    links = [
        tag("li", link(label, address, aria_current="page" if label == page.here else None))
        for label, address in entries
    ]
    return tag("header", brand, lace, tag("nav", tag("ul", links), aria_label="Pages"), class_="banner")


def _crumbs(page: Page) -> Markup | None:
    if not page.crumbs:
        return None
    items = [tag("li", link(label, address)) for label, address in page.crumbs]
    return tag("nav", tag("ol", join(items)), class_="crumbs", aria_label="Where this is")
