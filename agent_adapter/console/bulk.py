"""Decisions on several records at once, after a preview of what each of them runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console import actions
from agent_adapter.console.actions import MAX_PREVIEWED
from agent_adapter.console.approvals import SEARCHED, InboxParameters, now
from agent_adapter.console.argument_view import Line, whole_lines
from agent_adapter.console.authentication import Person
from agent_adapter.console.deciding import seen_of, verdict_of
from agent_adapter.console.pages import Console, Form, action, see_other
from agent_adapter.console.problems import Problem
from agent_adapter.exec.approval.inbox import ApprovalRecord, records_of
from agent_adapter.store import inbox_pages, views
from agent_adapter.store.approvals import Seen
from agent_adapter.store.base import Transaction

_LONGEST = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Records of one tool: the arguments that all share, and for each record those that differ."""

    tool: str
    records: list[ApprovalRecord]
    common: list[Line]
    names: list[str]
    rows: list[tuple[ApprovalRecord, list[Line | None]]]

    @property
    def irreversible(self) -> bool:
        """Whether one of them cannot be undone once it runs."""
        return any(record.irreversible for record in self.records)


async def _preview(console: Console, request: Request, person: Person, form: Form) -> Response:
    """What the selected records run, by tool; nothing is decided."""
    wanted = [_seen_record(text) for text in request.state.records]
    if form.get("all"):
        records, total = await _whole_result(console, form)
    else:
        records = await _records(console, [id for id, _ in wanted])
        total = len(records)
    if not records:
        raise Problem(422, "bulk", "select at least one request that still waits")
    seen = dict(wanted)
    changed = [r.id for r in records if r.id in seen and seen[r.id] != r.seen]
    whole = [record for record in records if len(record.shown) <= _LONGEST]
    return console.render(
        request,
        "bulk.html",
        groups=groups_of(whole),
        total=total,
        shown=len(whole),
        long=[record for record in records if len(record.shown) > _LONGEST],
        changed=changed,
        now=await now(console),
    )


async def _decide(console: Console, request: Request, person: Person, form: Form) -> Response:
    """Decide the records of one group, as they were shown; says what came of each."""
    verdict = verdict_of(form)
    if verdict == "answered":
        raise Problem(422, "verdict", "several requests are approved or denied, not answered")
    records = [_seen_record(text) for text in request.state.records]
    decided, failed = await actions.decide_bulk(
        console.settings, person, records, verdict, reason=form.get("reason")
    )
    return console.render(
        request,
        "bulk_done.html",
        verdict=verdict,
        decided=decided,
        failed=failed,
        now=await now(console),
    )


async def _decide_alike(console: Console, request: Request, person: Person, form: Form) -> Response:
    verdict = verdict_of(form)
    if verdict == "answered":
        raise Problem(422, "verdict", "several requests are approved or denied, not answered")
    decided, failed = await actions.decide_several(
        console.settings,
        person,
        [_seen_record(text) for text in request.state.records],
        verdict,
        reason=form.get("reason"),
    )
    if failed:
        text = f"{len(decided)} decided, {len(failed)} not decided: " + "; ".join(failed)
        raise Problem(409, "stale", text)
    return see_other("/approvals")


async def _undo(console: Console, request: Request, person: Person, form: Form) -> Response:
    """Take back the decisions of a bulk that are still held."""
    failed = []
    for id in request.state.records[:MAX_PREVIEWED]:
        try:
            await actions.undo(console.settings, person, id)
        except Problem as problem:
            failed.append(problem.message)
    if failed:
        raise Problem(409, "stale", f"{len(failed)} not undone: " + "; ".join(failed[:10]))
    return see_other("/approvals")


async def _save_view(console: Console, request: Request, person: Person, form: Form) -> Response:
    name, query = form.get("name", "").strip(), form.get("query", "")
    tenant = console.settings.tenant
    problem = await console.store.write(
        lambda tx: views.save(tx, person.name, tenant, name=name, query=query)
    )
    if problem is not None:
        raise Problem(422, "view", problem)
    return see_other(f"/approvals{query}")


async def _drop_view(console: Console, request: Request, person: Person, form: Form) -> Response:
    tenant, id = console.settings.tenant, form.get("id", "")
    await console.store.write(lambda tx: views.drop(tx, person.name, tenant, id))
    return see_other("/approvals")


def groups_of(records: Sequence[ApprovalRecord]) -> list[Group]:
    """The records by what will run: tool by tool, every argument that differs shown whole."""
    by_tool: dict[tuple[str, str], list[ApprovalRecord]] = {}
    for record in records:
        by_tool.setdefault((record.tool, record.fingerprint), []).append(record)
    return [_group(each) for each in by_tool.values()]


def _group(records: list[ApprovalRecord]) -> Group:
    lines = [{line.name: line for line in whole_lines(record)} for record in records]
    names = list(dict.fromkeys(name for each in lines for name in each))
    same = [name for name in names if len({_key(each.get(name)) for each in lines}) == 1]
    differs = [name for name in names if name not in same]
    return Group(
        tool=records[0].tool,
        records=records,
        common=[line for name in same if (line := lines[0].get(name)) is not None],
        names=differs,
        rows=[
            (record, [each.get(name) for name in differs])
            for record, each in zip(records, lines, strict=True)
        ],
    )


def _key(line: Line | None) -> str:
    if line is None:
        return ""
    texts = [None if v is None else v.start for v in (line.value, line.before)]
    return json.dumps([line.kind, line.changed, *texts])


async def _whole_result(console: Console, form: Form) -> tuple[list[ApprovalRecord], int]:
    asked = InboxParameters.model_validate(
        {name: form[name] for name in (*SEARCHED, "sort") if form.get(name)}
    )
    tenant, query = console.settings.tenant, asked.query

    def op(tx: Transaction) -> tuple[list[ApprovalRecord], int]:
        rows = inbox_pages.every(tx, tenant, query, limit=MAX_PREVIEWED)
        total = inbox_pages.page(tx, tenant, query, limit=1).total
        return records_of(tx, rows), total

    return await console.store.read(op)


async def _records(console: Console, ids: list[str]) -> list[ApprovalRecord]:
    tenant = console.settings.tenant

    def op(tx: Transaction) -> list[ApprovalRecord]:
        rows = tx.select(
            "approvals", {"id in": ids[:MAX_PREVIEWED], "tenant": tenant, "state": "pending"}
        )
        return [record for record in records_of(tx, rows) if record.state == "pending"]

    return await console.store.read(op)


def _seen_record(text: str) -> tuple[str, Seen]:
    id, digest, version = [*text.split("|"), "", ""][:3]
    return id, seen_of({"digest": digest, "version": version})


ROUTES: list[Route] = [
    action("/approvals/alike", _decide_alike),
    action("/approvals/bulk", _preview),
    action("/approvals/bulk/decide", _decide),
    action("/approvals/bulk/undo", _undo),
    action("/approvals/views", _save_view, role="viewer"),
    action("/approvals/views/drop", _drop_view, role="viewer"),
]
