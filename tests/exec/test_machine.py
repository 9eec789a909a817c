"""Approvals and calls under any order of events: what must never happen does not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent_adapter.core.types import ApprovalRequest, RunLimits
from agent_adapter.exec import ledger
from agent_adapter.store import MemoryStore, approvals
from agent_adapter.store.approvals import Refusal, Take, Terms
from agent_adapter.store.calls import begin_call, end_call
from agent_adapter.store.doubt import resolve
from agent_adapter.store.identity import call_key_of
from agent_adapter.store.intents import Begun, Intent, Outcome, Reserve
from tests.exec.shop import FakeClock

CALLS = st.integers(1, 3)
ENDINGS = st.sampled_from(["ok", "no-effect", "unknown", "aborted"])
LIMITS = RunLimits(max_calls=6, max_parallel=2)


class Machine(RuleBasedStateMachine):
    """Three calls of one run, their records, and a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.store = MemoryStore(clock=self.clock)
        self.loop = asyncio.new_event_loop()
        self.filed = 0
        self.taken: dict[str, int] = {}
        self.open: set[str] = set()
        self.ended_ok: set[str] = set()
        self.ran = 0

    def teardown(self) -> None:
        """Close what was opened."""
        self.loop.close()

    def do(self, op: Any) -> Any:
        """Run one operation."""
        return self.loop.run_until_complete(self.store.write(op))

    def records(self) -> list[Any]:
        """Every record."""
        return self.do(lambda tx: tx.select("approvals", order_by="id"))

    @rule(n=CALLS)
    def file(self, n: int) -> None:
        """Ask about a call."""
        self.filed += 1
        new_id = f"apr_{self.filed:04d}"
        self.do(lambda tx: approvals.file(tx, _request(n), Terms(per_run=4), new_id))

    @rule(n=st.integers(0, 30), verdict=st.sampled_from(["approved", "denied"]))
    def decide(self, n: int, verdict: str) -> None:
        """Say something about a record: only a pending one in time changes."""
        found = self.records()
        if not found:
            return
        row = found[n % len(found)]
        said = self.do(lambda tx: approvals.decide(tx, row["id"], verdict=verdict, reviewer="ann"))
        may = row["state"] == "pending" and self.clock.now <= row["decide_by"]
        assert isinstance(said, Refusal) is not may

    @rule(seconds=st.sampled_from([1, 300, 601, 3601]))
    def wait(self, seconds: int) -> None:
        """Let time go by."""
        self.clock.pass_(seconds)

    @rule(n=CALLS, at=st.integers(0, 30))
    def begin(self, n: int, at: int) -> None:
        """Begin a call with some record: it must be its own, approved and in time."""
        found = self.records()
        if not found:
            return
        row = found[at % len(found)]
        begun: Begun = self.do(
            lambda tx: begin_call(
                tx,
                _intent(n),
                consume=_take(n, row["id"]),
                reserve=Reserve(limits=LIMITS, run_id="run"),
            )
        )
        if begun.state != "started":
            return
        assert row["state"] == "approved" and self.clock.now <= row["use_by"]
        assert row["call_key"] == _key(n)
        self.taken[row["id"]] = self.taken.get(row["id"], 0) + 1
        self.open.add(begun.call_key)
        self.ran += 1

    @precondition(lambda self: self.open)
    @rule(ending=ENDINGS, late=st.booleans())
    def end(self, ending: Any, late: bool) -> None:
        """End an open call, and perhaps once more."""
        key = min(self.open)
        outcome = Outcome(call_key=key, run_id="run", ending=ending, tag="json", result=b"1")
        assert self.do(lambda tx: end_call(tx, outcome)) is True
        self.open.discard(key)
        self.ran -= ending == "aborted"
        if ending == "ok":
            self.ended_ok.add(key)
        if late:
            assert self.do(lambda tx: end_call(tx, outcome)) is False

    @rule(n=CALLS, happened=st.booleans())
    def resolve(self, n: int, happened: bool) -> None:
        """A person's word: only on what is unknown."""
        row = self.do(lambda tx: tx.get("calls", _key(n)))
        said = self.do(lambda tx: resolve(tx, _key(n), reviewer="ann", happened=happened))
        unknown = row is not None and row["ending"] == "unknown"
        assert isinstance(said, Refusal) is not unknown
        if unknown and happened:
            self.ended_ok.add(_key(n))

    @invariant()
    def a_record_is_taken_at_most_once(self) -> None:
        """And only then is it `taken`."""
        assert all(count == 1 for count in self.taken.values())
        taken = {row["id"] for row in self.records() if row["state"] == "taken"}
        assert taken == set(self.taken)

    @invariant()
    def what_is_done_stays_done(self) -> None:
        """A call that ended well is never open again."""
        for key in self.ended_ok:
            row = self.do(lambda tx, key=key: tx.get("calls", key))
            assert (row["state"], row["ending"]) == ("done", "ok")

    @invariant()
    def limits_hold(self) -> None:
        """What runs is counted, and never more than allowed."""
        usage = self.do(lambda tx: tx.get("usage", "run", ""))
        assert (usage["calls"] if usage else 0) == self.ran <= 6 and len(self.open) <= 2

    @invariant()
    def the_ledger_is_whole(self) -> None:
        """After every step."""
        report = self.loop.run_until_complete(ledger.verify(self.store))
        assert report.problems == ()


def _key(n: int) -> str:
    return call_key_of("run", "pay", f"digest{n}", 1)


def _intent(n: int) -> Intent:
    return Intent(
        run_id="run",
        tool="pay",
        digest=f"digest{n}",
        effects="write",
        fingerprint="f",
        arguments=b"{}",
        call_key=_key(n),
        n=1,
    )


def _take(n: int, record_id: str) -> Take:
    return Take(
        record_id=record_id,
        tenant="",
        call_key=_key(n),
        principal=None,
        fingerprint="f",
        digest=f"digest{n}",
    )


def _request(n: int) -> ApprovalRequest:
    return ApprovalRequest(
        tool="pay",
        description="Pays.",
        arguments={"n": n},
        shown=json.dumps({"n": n}),
        call_id="c",
        run_id="run",
        thread_id=None,
        call_key=_key(n),
        binding="b",
        fingerprint="f",
        digest=f"digest{n}",
        reason="it asks",
        payload=json.dumps({"n": n}).encode(),
    )


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
class TestMachine(Machine.TestCase):  # type: ignore[name-defined,misc]  # made by hypothesis
    """Runs the machine."""

    settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
