"""Any text can be an id: its page is found by the link that the console makes."""

from __future__ import annotations

import html
import re
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

import agent_adapter as aa
from agent_adapter.console.routing import IdRoute, in_path
from tests.console._shop import ShopConsole

pytestmark = pytest.mark.anyio

ODD = [
    *("a/b", "/", "/a", "a/", "a//b", "a/chain", "a/b/chain", "%2F", "100%", "a%20b", "?x=1"),
    *("#top", "a#b", "..", ".", "../..", "~..", "~", "~~x", "ü/ñ/字", "🦆", "a b", "a+b", "a&b=c"),
    *("'\"<b>", "\\a", "x;y", "http://h/p?q#f", "\u202egpj"),
]


async def _run(shop: ShopConsole, run: str) -> None:
    await shop.executor.run("look_up", {"order": "A"}, ctx=aa.ToolContext(run_id=run))
    await shop.store.flush()


async def test_a_run_of_any_name_has_a_page(shop: ShopConsole) -> None:
    """D11: the list links to it, and so do its calls; so has its chain."""
    for run in ODD:
        await _run(shop, run)
    browser = await shop.browser()
    links, page = set[str](), "/runs"
    while page:
        text = browser.get(page).text
        links |= set(map(html.unescape, re.findall(r'href="(/runs/[^"]+)"', text)))
        following = re.search(r'rel="next" href="([^"]+)"', text)
        page = f"/runs{html.unescape(following[1]).removeprefix('/runs')}" if following else ""
    assert links == {f"/runs/{in_path(run)}" for run in ODD}
    for run in ODD:
        link = f"/runs/{in_path(run)}"
        for path in (link, f"{link}/chain"):
            answer = browser.get(path)
            assert answer.status_code == 200, (path, answer.text)
    rows = await shop.store.read(lambda tx: tx.select("calls"))
    for row in rows:
        link = html.escape(f"/runs/{in_path(row['run_id'])}")
        assert f'href="{link}"' in browser.get(f"/calls/{row['call_key']}").text


async def test_a_plainly_encoded_id_is_found(shop: ShopConsole) -> None:
    """D11: as any program would write it, in the console and in the API."""
    browser = await shop.browser()
    headers = {"authorization": f"Bearer {browser.token}"}
    for run in ("a/b", "a%2Fb", "x?y#z", "ü/字"):
        await _run(shop, run)
        encoded = quote(run, safe="")
        assert browser.get(f"/runs/{encoded}").status_code == 200
        answer = browser.get(f"/api/v1/runs/{encoded}", headers=headers)
        assert (answer.status_code, answer.json()["run_id"]) == (200, run)
        assert browser.get(f"/api/v1/runs/{encoded}/calls", headers=headers).status_code == 200


async def test_a_tool_and_a_channel_of_an_odd_name_are_looked_for(shop: ShopConsole) -> None:
    """What is not there is named whole."""
    browser = await shop.browser()
    for path in ("/tools", "/channels", "/calls", "/approvals"):
        answer = browser.get(f"{path}/a%2Fb")
        assert answer.status_code == 404 and "a/b" in answer.text, path


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_every_text_comes_back_from_a_path(text: str) -> None:
    """One segment is written, that text is read, whatever is in it."""
    path = f"/x/{in_path(text)}"
    assert path.count("/") == 2 and not re.search(r"/(\.|%2e){1,2}$", path, re.IGNORECASE)
    scope = {"type": "http", "method": "GET", "path": unquote(path), "raw_path": path.encode()}
    match, child = IdRoute("/x/{id}", _never, methods=["GET"]).matches(scope)
    assert match is Match.FULL
    assert child["path_params"] == {"id": text}


async def _never(request: Request) -> Response:
    raise AssertionError
