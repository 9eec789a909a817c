"""What a person does who looks: a button is used again until the page takes it."""

from __future__ import annotations

import asyncio

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Locator, Page, expect

from ._site import SECONDS


async def press(button: Locator, *, tap: bool = False) -> None:
    """Decide with `button`; a page that has just changed refuses, then it is used once more."""
    page = button.page
    before = await sent(page)
    async with asyncio.timeout(SECONDS):
        while await sent(page) == before:
            # The driver scrolls while it waits by itself.
            await expect(button).to_be_enabled()
            if tap:
                await button.tap()
            else:
                # Away from the button first: a hand that rests on it does not point at it.
                await page.mouse.move(1, 1)
                await button.click()


async def sent(page: Page) -> int:
    """How many decisions the pages of this tab have taken from their person."""
    while True:
        try:
            return int(await page.evaluate("Number(sessionStorage.getItem('sent'))"))
        except PlaywrightError as error:
            # A decision leads from the page of one record to the next page.
            if "context was destroyed" not in str(error):
                raise
            await page.wait_for_load_state()
