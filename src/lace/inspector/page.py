"""What every page has: a title, its place in the navigation, data, and a body that shows the data in HTML.

Rule: `?format=json` gives the data of any page, so everything that is shown can also be fetched. Every page of a lace
has the same header: the lace and its pages, one search field, and apart from them what else is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from lace.inspector.html import Markup, join, tag
from lace.inspector.widgets import link
from lace.values import dataclass

Data = dict[str, Any]
POSTED = "(posted)"  # a parameter that is set only if a form was sent; an address cannot set it
Place = tuple[str, str]  # a label and its address


class NavEntry(NamedTuple):
    """One page of the navigation, and the letter that goes to it after `g`."""

    label: str
    address: str
    key: str


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
    question: str = ""  # what the search field says


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigation:
    """The header of every page: one lace with its pages, and what else is open."""

    lace: str = ""
    base: str = ""  # the address of that lace; empty if the page is of none
    pages: Sequence[NavEntry] = ()
    others: Sequence[NavEntry] = ()


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
    of = f" · {navigation.lace}" if navigation.lace and navigation.lace != page.title else ""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{page.title}{of} · Lace"),
        tag("link", rel="icon", href="/static/icon.svg"),
        tag("link", rel="stylesheet", href="/static/lace.css"),
        tag("link", rel="stylesheet", href="/static/inspector.css"),
        tag("script", src="/static/inspector.js", defer=True),
    )
    return Markup("<!doctype html>\n" + tag("html", head, _body(page, navigation), lang="en"))


def _body(page: Page, navigation: Navigation) -> Markup:
    main = tag("main", _crumbs(page), page.body, id="main", tabindex="-1")
    skip = tag("a", "Skip to the content", href="#main", class_="skip")
    return tag("body", skip, _banner(page, navigation), main, _keys(navigation))


def _banner(page: Page, navigation: Navigation) -> Markup:
    brand = tag("a", tag("span", "Lace", class_="brand-name"), href="/", class_="brand")
    lace = link(navigation.lace, navigation.base, class_="lace-name") if navigation.lace else None
    tools = tag(
        "div",
        tag("button", "Copy link", type="button", id="copy-link", class_="quiet", hidden=True),
        tag("button", "?", type="button", id="show-keys", class_="quiet", hidden=True, aria_label="Show keys"),
        class_="tools",
    )
    pages = navigation.pages and tag("nav", _entries(navigation.pages, page.here), aria_label="Pages")
    others = navigation.others and tag(
        "nav",
        tag("span", "Also open" if navigation.lace else "Open", class_="nav-title"),
        _entries(navigation.others, page.here),
        aria_label="Also open",
        class_="others",
    )
    return tag("header", brand, lace, pages or None, _search(page, navigation), others or None, tools, class_="banner")


def _entries(entries: Sequence[NavEntry], here: str) -> Markup:
    items = [
        tag(
            "li",
            link(
                one.label,
                one.address,
                aria_current="page" if one.label == here else None,
                data_key=one.key or None,
            ),
        )
        for one in entries
    ]
    return tag("ul", items)


def _search(page: Page, navigation: Navigation) -> Markup | None:
    """The one search field: words, a coordinate or a hash."""
    if not navigation.base:
        return None
    label = tag("label", f"Search {navigation.lace}", for_="search", class_="visually-hidden")
    field = tag(
        "input",
        type="search",
        name="q",
        id="search",
        value=page.question,
        placeholder=f"Search {navigation.lace}",
        title="Words, a beg*, a coordinate such as //u//notes//, or a hash",
    )
    return tag("form", label, field, action=f"{navigation.base}/find", role="search", class_="search")


def _keys(navigation: Navigation) -> Markup:
    """What can be pressed, for `?`."""
    rows = [("/", "search")]
    rows += [(f"g {one.key}", one.label) for one in (*navigation.pages, *navigation.others) if one.key]
    rows += [("c", "copy the link to what is shown"), ("?", "show these keys")]
    listed = [tag("div", tag("dt", _pressed(keys)), tag("dd", said)) for keys, said in rows]
    close = tag("form", tag("button", "Close"), method="dialog")
    body = join(tag("h2", "Keys", id="keys-title"), tag("dl", listed, class_="fields"), close)
    return tag("dialog", body, id="keys", aria_labelledby="keys-title")


def _pressed(keys: str) -> Markup:
    return join(*(join(tag("kbd", key), " ") for key in keys.split(" ")))


def _crumbs(page: Page) -> Markup | None:
    if not page.crumbs:
        return None
    items = [tag("li", link(label, address)) for label, address in page.crumbs]
    return tag("nav", tag("ol", join(items)), class_="crumbs", aria_label="Where this is")
