"""A browser, a console in a process of its own, and somebody who is signed in.

What needs a browser is imported inside the fixtures: a test file says itself when it is left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

    from ._site import Site


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A headless Chromium."""
    from ._site import chromium

    async with chromium() as launched:
        yield launched


@pytest.fixture(scope="module")
async def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """A console over a store of its own."""
    from ._site import console

    folder = tmp_path_factory.mktemp("console")
    async with console(browser, f"sqlite:///{folder / 'state.db'}") as opened:
        yield opened


@pytest.fixture
async def site(served: Site) -> Site:
    """The console, nothing waiting in it."""
    await served.clear()
    return served


@pytest.fixture
async def page(site: Site) -> AsyncIterator[Page]:
    """Kim, who may approve, in front of the inbox."""
    async with site.signed_in() as opened:
        yield opened
