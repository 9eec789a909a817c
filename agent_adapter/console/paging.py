"""Previous and next: each page of a list carries the starts of the pages before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

_MOST_BACK = 20
_FIRST = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLinks:
    """The queries of the pages around this one; `None` where there is none."""

    first: str | None
    previous: str | None
    next: str | None


def page_links(
    request: Request,
    query: Mapping[str, Any],
    *,
    start: float | str | None,
    following: float | str | None,
    name: str = "start",
) -> PageLinks:
    """The links around a page of a list that is read by `name`.

    `query` is what the list is filtered by; `following` is where the next page begins.
    """
    back = request.query_params.getlist("back")[-_MOST_BACK:]
    filters = [(key, str(value)) for key, value in query.items() if value not in (None, "", False)]
    if not start:
        back = []

    def link(start: str | None, back: list[str]) -> str:
        at = [] if start in (None, _FIRST) else [(name, str(start))]
        return "?" + urlencode([*filters, *at, *(("back", each) for each in back)])

    here = str(start) if start else _FIRST
    return PageLinks(
        first=link(None, []) if start else None,
        previous=link(back[-1], back[:-1]) if back else None,
        next=None if following is None else link(str(following), [*back, here][-_MOST_BACK:]),
    )
