"""The scenario of the demo: two agents, one registry, two approved calls, one ledger."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agent_adapter.cli.demo.conversation import DemoAgent, DemoMessage
from agent_adapter.cli.exit_codes import DOUBT, FAILED, OK, CommandError
from agent_adapter.cli.output import console, plain, print_json, print_rows

if TYPE_CHECKING:
    from rich.console import Console

    from agent_adapter.store.base import Store


class Scenario:
    """One run of the demo over a store; `record` is what `--json` prints."""

    def __init__(self, store: Store, as_json: bool) -> None:
        self._store = store
        self._as_json = as_json
        self._out: Console = console()
        self.record: dict[str, Any] = {"store": store.url, "agents": []}

    async def run(self) -> int:
        """Run the scenario; returns the exit code."""
        from agent_adapter.cli.demo.ag2_agent import Ag2DemoAgent
        from agent_adapter.cli.demo.agno_agent import AgnoDemoAgent
        from agent_adapter.cli.demo.shop import paid_back, registry
        from agent_adapter.exec.approval.ports.deferred import DeferredApproval
        from agent_adapter.exec.executor import Executor

        paid_back.clear()
        port = DeferredApproval(self._store)
        executor = Executor(registry, approval=port, store=self._store)
        self._head("One registry")
        rows = [(spec.name, spec.effects, spec.confirm, spec.description) for spec in registry]
        self._show(("tool", "effects", "confirm", "description"), rows)
        self._line("Both agents use these tools; their models are scripted.")
        await self._run_agent(Ag2DemoAgent(registry, executor, port))
        await self._run_agent(AgnoDemoAgent(registry, executor, port))
        return await self._end(paid_back)

    async def _run_agent(self, agent: DemoAgent) -> None:
        from agent_adapter.exec.approval.inbox import Inbox

        self._head(f"{agent.framework}: the agent runs until a call needs approval")
        before = await agent.start()
        self._said(before)
        waiting = await Inbox(self._store).list("pending")
        if len(waiting) != 1:
            raise CommandError(
                f"{agent.framework}: {len(waiting)} calls are pending, not one: report this"
            )
        held = waiting[0]
        self._head(f"{agent.framework}: another process approves the call")
        await self._shell("approvals", "list")
        await self._shell("approvals", "approve", held.id, "--reason", "the order was checked")
        self._head(f"{agent.framework}: the run continues, the tool runs once")
        after = await agent.resume()
        self._said(after)
        taken = await Inbox(self._store).get(held.id)
        self.record["agents"].append(
            {
                "framework": agent.framework,
                "before": [asdict(said) for said in before],
                "approval": asdict(taken),
                "after": [asdict(said) for said in after],
            }
        )

    async def _end(self, paid_back: list[tuple[str, float]]) -> int:
        from agent_adapter.cli.ledger import ENTRY_COLUMNS, entry_row, print_report
        from agent_adapter.exec.ledger import entries, verify

        self._head("The ledger")
        written = await entries(self._store)
        self._show(ENTRY_COLUMNS, map(entry_row, written))
        report = await verify(self._store)
        once = sorted(paid_back) == [("A1", 40.0), ("B2", 19.0)]
        moved = ", ".join(f"{amount:.2f} EUR for {order}" for order, amount in paid_back)
        self._line(f"money moved: {moved}")
        self.record |= {"paid_back": paid_back, "verified": report.ok}
        self.record["ledger"] = [asdict(entry) for entry in written]
        if self._as_json:
            print_json(self.record)
        else:
            print_report(report)
        if not report.ok:
            return DOUBT
        return OK if once else FAILED

    async def _shell(self, *args: str) -> None:
        """Run a command in a process of its own, as a reviewer would."""
        typed = shlex.join(["agent-adapter", *args])
        self._line(f"$ {typed}")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "agent_adapter.cli",
            *args,
            "--store",
            self._store.url,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        text = output.decode(errors="replace").rstrip()
        self._line(text)
        if process.returncode != OK:
            raise CommandError(f"{typed} ended with {process.returncode}: {text}")

    def _said(self, lines: list[DemoMessage]) -> None:
        for said in lines:
            who = "agent says" if said.tool is None else said.tool
            self._line(f"  {who:<14} {said.shown}")

    def _head(self, text: str) -> None:
        if not self._as_json:
            self._out.print()
            self._out.print(text, style="bold")

    def _line(self, text: str) -> None:
        if not self._as_json:
            self._out.print(plain(text, lines=True), soft_wrap=True)

    def _show(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        if not self._as_json:
            print_rows(self._out, columns, rows)
