"""A console in a process of its own, a browser, and people who are signed in."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

import agent_adapter as aa
from agent_adapter.exec.approval.inbox import ApprovalRecord
from agent_adapter.store.access import create_token, new_secret

from ._programs import registry

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
SECONDS = 150
OPENING, CLOSING = 60, 20
"""Seconds after which a browser that opens no page is taken for dead, and one page for closed."""

COUNT_SENT = """addEventListener("submit", (event) => {
  if (!event.submitter || !event.submitter.matches("[data-decides]")) return;
  sessionStorage.setItem("sent", Number(sessionStorage.getItem("sent")) + 1);
}, { capture: true });"""
"""Counts, over all pages of a tab, the decisions that a page takes from its person."""

expect.set_options(timeout=SECONDS * 1000)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A headless Chromium."""
    if CHROMIUM is None:
        pytest.skip("no chromium: install it, or name one with CHROMIUM=/path")
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=FLAGS
        )
        yield launched
        await launched.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A console that is served, and the store that it is of."""

    url: str
    store_url: str
    store: aa.Store
    browser: Browser
    tokens: dict[str, str]

    @asynccontextmanager
    async def signed_in(
        self, name: str = "kim", *, lenient: bool = False, **options: Any
    ) -> AsyncIterator[Page]:
        """A page of a browser of its own in which `name` is signed in.

        A `lenient` one may fail to reach its server.
        """
        context = await self.browser.new_context(base_url=self.url, **options)
        context.set_default_timeout(SECONDS * 1000)
        await context.add_init_script(COUNT_SENT)
        try:
            page = await context.new_page()
            problems = watched(page)
            await page.goto("/sign-in")
            await page.get_by_label("Token").fill(self.tokens[name])
            await page.get_by_role("button", name="Sign in").click()
            await page.wait_for_url("**/approvals")
            yield page
            assert lenient or not problems, problems
        finally:
            # The driver may wait forever for a page that was left while it went to another one;
            # the browser's own end closes it.
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSING):
                    await context.close()

    async def ask(self, *, votes: int = 1, **arguments: Any) -> ApprovalRecord:
        """A new question in the inbox, asked by another process than the console's."""
        deferred = aa.DeferredApproval(self.store)
        port = deferred if votes == 1 else aa.QuorumApproval(votes, self.store)
        executor = aa.Executor(registry, approval=port, store=self.store)
        with pytest.raises(aa.ApprovalPending) as caught:
            owner = {"principal": "ann"} if votes > 1 else {}
            run = aa.ToolContext(run_id=f"run_{uuid.uuid4().hex}", **owner)
            await executor.run("refund", {"order_id": "A1", "amount": 5} | arguments, ctx=run)
        return await self.record(caught.value.id)

    async def record(self, id: str) -> ApprovalRecord:
        """The record as it stands."""
        return await aa.Inbox(self.store).get(id)

    async def decided(self, id: str) -> ApprovalRecord:
        """The record once it is not pending any more."""
        async with asyncio.timeout(SECONDS):
            while (found := await self.record(id)).state == "pending":
                await asyncio.sleep(0.02)
        return found

    async def waiting(self) -> ApprovalRecord:
        """The one question that another program puts."""
        async with asyncio.timeout(SECONDS):
            while not (found := await aa.Inbox(self.store).list()):
                await asyncio.sleep(0.02)
        return found[0]

    async def clear(self) -> None:
        """Deny whatever is left in the inbox."""
        inbox = aa.Inbox(self.store)
        for record in await inbox.list():
            await inbox.deny(record.id, reviewer="test")


def watched(page: Page) -> list[str]:
    """What goes wrong in a page: its scripts' errors, and what its policy stops."""
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))

    def heard(message: Any) -> None:
        refused = re.search(r"(status of|Status Error Code) (401|403|409|422)\b", message.text)
        # A script whose page was left before it came.
        left = 'responded with a MIME type of ""' in message.text
        if message.type == "error" and not refused and not left:
            problems.append(message.text)

    page.on("console", heard)
    return problems


@asynccontextmanager
async def process(*args: str, **options: Any) -> AsyncIterator[asyncio.subprocess.Process]:
    """A Python process that ends with the block."""
    started = await asyncio.create_subprocess_exec(
        sys.executable, *args, cwd=ROOT, stdout=asyncio.subprocess.PIPE, limit=2**22, **options
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.send_signal(signal.SIGTERM)
        await started.communicate()


async def told(running: asyncio.subprocess.Process) -> dict[str, Any]:
    """The next line that a program prints."""
    assert running.stdout is not None
    async with asyncio.timeout(SECONDS):
        line = await running.stdout.readline()
    assert line, "the program ended early"
    facts: dict[str, Any] = json.loads(line)
    return facts


@asynccontextmanager
async def program(name: str, site: Site) -> AsyncIterator[asyncio.subprocess.Process]:
    """One of `_programs` over the site's store."""
    async with process("-m", "tests.browser._programs", name, site.store_url) as running:
        yield running


@asynccontextmanager
async def console(browser: Browser, url: str, *options: str, port: int = 0) -> AsyncIterator[Site]:
    """A console over the store at `url`, served by `agent-adapter serve` with these options."""
    store = aa.open_store(url)
    tokens = {}
    people = {"kim": "approver", "lee": "approver", "vic": "viewer", "ada": "admin"}
    for name, role in people.items():
        secret = tokens[name] = new_secret()
        await store.write(lambda tx, n=name, r=role, s=secret: create_token(tx, n, r, s))
    async with serving(url, *options, port=port) as where:
        yield Site(url=where, store_url=url, store=store, browser=browser, tokens=tokens)
    await store.aclose()


@asynccontextmanager
async def serving(url: str, *options: str, port: int = 0) -> AsyncIterator[str]:
    """`agent-adapter serve` over the store at `url`; the address of its pages."""
    command = ("-m", "agent_adapter.cli", "serve", "--port", str(port), "--store", url)
    more = ("--registry", "tests.browser._programs:registry")
    async with process(*command, *more, "--undo-window", "0", *options) as started:
        assert started.stdout is not None
        async with asyncio.timeout(SECONDS):
            said = (await started.stdout.readline()).decode()
        assert said.startswith("console on http://127.0.0.1:"), said
        yield said.split()[-1]
