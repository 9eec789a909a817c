"""The approvals pages: the inbox, and each record on a page of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_adapter.console import actions
from agent_adapter.console.argument_form import Field, fields_of
from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, Form, page
from agent_adapter.console.parameters import Parameters, read_query
from agent_adapter.console.problems import Problem
from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.exec.approval.inbox import ApprovalRecord, Inbox, records_of
from agent_adapter.store import inbox_pages, queries, views
from agent_adapter.store.base import Transaction
from agent_adapter.store.inbox_pages import InboxQuery, Risk, Sort

PAGE_SIZE = 25

# The list must not offer to approve what it does not show: longer arguments have their own page.
MAX_LISTED = 8_000

ApprovalState = Literal[
    "pending", "approved", "denied", "answered", "taken", "expired", "withdrawn"
]


class InboxParameters(Parameters):
    """What the address of an inbox page says."""

    state: Literal[ApprovalState, "all"] = "pending"
    q: str = ""
    tool: str = ""
    person: str = ""
    run: str = ""
    risk: Risk = ""
    sort: Sort | None = None
    after: str = ""
    before: str = ""
    whole: bool = False

    @property
    def query(self) -> InboxQuery:
        """Which records it shows."""
        usual: Sort = "expiry" if self.state == "pending" else "newest"
        return InboxQuery(
            state=self.state,
            text=self.q,
            tool=self.tool,
            person=self.person,
            run=self.run,
            risk=self.risk,
            sort=self.sort or usual,
        )

    @property
    def suffix(self) -> str:
        """The search as the end of an address; empty for the usual one."""
        said = {name: getattr(self, name) for name in ("state", *SEARCHED, "sort")}
        given = {name: value for name, value in said.items() if value and value != "pending"}
        return f"?{urlencode(given)}" if given else ""


SEARCHED = ("q", "tool", "person", "run", "risk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The ids around a record among those that wait, and how many wait."""

    previous: str
    next: str
    total: int


async def approval_page(
    console: Console,
    state: ApprovalState | Literal["all"],
    *,
    limit: int,
    after: float | None,
    newest_first: bool = False,
) -> tuple[list[ApprovalRecord], float | None]:
    """One page of the tenant's records, and the `after` of the next page."""
    found = await Inbox(console.store, tenant=console.settings.tenant).list(
        None if state == "all" else state,
        limit=limit + 1,
        after=after,
        newest_first=newest_first,
    )
    return found[:limit], found[limit - 1].created_at if len(found) > limit else None


async def _list(console: Console, request: Request, person: Person) -> Response:
    asked = read_query(request, InboxParameters)
    tenant, query = console.settings.tenant, asked.query

    def op(tx: Transaction) -> dict[str, Any]:
        found = inbox_pages.page(
            tx, tenant, query, limit=PAGE_SIZE, after=asked.after, before=asked.before
        )
        _, pending = queries.pending_approvals(tx, tenant, 1)
        return {
            "records": records_of(tx, found.rows),
            "found": found,
            "total": pending,
            "now": tx.now,
            "views": views.of(tx, person.name, tenant),
        }

    shown = await console.store.read(op)
    first = not (asked.after or asked.before)
    live = asked.state == "pending" and first and not query.searches and query.sort == "expiry"
    return console.render(
        request,
        "approvals.html",
        **shown,
        **item_values(asked),
        asked=asked,
        states=(*get_args(ApprovalState), "all"),
        sorts=get_args(Sort),
        risks=get_args(Risk),
        identical=_identical(shown["records"]) if asked.state == "pending" else [],
        live=live,
    )


def item_values(asked: InboxParameters) -> dict[str, Any]:
    """What the template of one item needs besides its record."""
    return {
        "max_listed": MAX_LISTED,
        "query_suffix": asked.suffix,
        "confirming": False,
        "sent_reason": "",
    }


async def render_item(
    console: Console, request: Request, record: ApprovalRecord, **more: Any
) -> Response:
    """One record as an item of the list."""
    values = item_values(InboxParameters()) | {"now": await now(console)} | more
    return console.render(request, "_approval.html", record=record, **values)


async def _item(console: Console, request: Request, person: Person) -> Response:
    """One record as an item of the list; an open page adds it without a reload."""
    record = await record_of_path(console, request)
    if record.state != "pending":
        raise Problem(404, "not-found", "the request is not pending any more")
    return await render_item(console, request, record)


async def _outcome(console: Console, request: Request, person: Person) -> Response:
    """One record as an item of the list, however it stands: a decided one keeps its place."""
    return await render_item(console, request, await record_of_path(console, request))


async def _decided(console: Console, request: Request, person: Person) -> Response:
    """Which of the records that a page shows wait no more."""
    ids = request.query_params.getlist("id")[: 4 * PAGE_SIZE]
    tenant = console.settings.tenant

    def op(tx: Transaction) -> list[str]:
        rows = tx.select("approvals", {"id in": ids, "tenant": tenant, "state": "pending"})
        waiting = {record.id for record in records_of(tx, rows) if record.state == "pending"}
        return [id for id in ids if id not in waiting]

    return JSONResponse({"decided": await console.store.read(op)})


async def _show(console: Console, request: Request, person: Person) -> Response:
    record = await record_of_path(console, request)
    return await render_record(console, request, record)


async def render_record(
    console: Console,
    request: Request,
    record: ApprovalRecord,
    *,
    problem: Problem | None = None,
    sent: Form | None = None,
    confirming: bool = False,
) -> Response:
    """The page of one record."""
    asked = read_query(request, InboxParameters)
    return console.render(
        request,
        "approval.html",
        status=problem.status if problem is not None else 200,
        record=record,
        place=await _place(console, record, asked),
        query_suffix=asked.suffix,
        fields=form_fields(console, record),
        has_schema=actions.spec_of(console.settings, record) is not None,
        problem=problem,
        field_problems={} if problem is None else problem.fields,
        sent=sent or {},
        whole=asked.whole or bool(sent and sent.get("whole")),
        confirming=confirming,
        now=await now(console),
        key=_has_key(console, request),
    )


async def _place(console: Console, record: ApprovalRecord, asked: InboxParameters) -> Neighbours:
    tenant, query = console.settings.tenant, asked.query

    def op(tx: Transaction) -> Neighbours:
        row = tx.get("approvals", record.id)
        total = queries.pending_approvals(tx, tenant, 1)[1]
        around = ("", "") if row is None else inbox_pages.neighbours(tx, tenant, row, query)
        return Neighbours(previous=around[0], next=around[1], total=total)

    return await console.store.read(op)


def form_fields(console: Console, record: ApprovalRecord) -> list[Field]:
    """The fields to edit a record's arguments."""
    spec = actions.spec_of(console.settings, record)
    return fields_of(record.will_run, None if spec is None else spec.json_schema())


def _identical(records: list[ApprovalRecord]) -> list[list[ApprovalRecord]]:
    """The groups of identical requests: each can be decided at once."""
    groups: dict[str, list[ApprovalRecord]] = {}
    for record in records:
        groups.setdefault(record.alike, []).append(record)
    return [group for group in groups.values() if len(group) > 1]


async def record_of_path(console: Console, request: Request) -> ApprovalRecord:
    """The record that a path names; `Problem` 404 if it does not exist."""
    return await actions.approval_record(console.settings, request.path_params["id"])


def _has_key(console: Console, request: Request) -> bool:
    person: Person = request.state.person
    try:
        return console.settings.key_of(person.name) is not None
    except AgentAdapterError:
        return False


async def now(console: Console) -> float:
    """The store's time."""
    return await console.store.read(lambda tx: tx.now)


ROUTES: list[Route] = [
    page("/approvals", _list),
    page("/approvals/decided", _decided),
    page("/approvals/{id}", _show),
    page("/approvals/{id}/item", _item),
    page("/approvals/{id}/outcome", _outcome),
]
