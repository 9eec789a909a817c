"""The forms that stop things: one run, or all writes of the store."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_adapter.console.authentication import Person
from agent_adapter.console.pages import Console, Form, action, see_other
from agent_adapter.console.problems import Problem
from agent_adapter.console.routing import in_path
from agent_adapter.console.runs import run_line
from agent_adapter.exec import upkeep


def check_whole_store(person: Person) -> None:
    """Raise `Problem` 403 unless the person may act on what all tenants share."""
    person.check("admin")
    if person.tenant:
        raise Problem(
            403,
            "tenant",
            "this concerns every tenant of the store: an admin of the records without a tenant may"
            " do it, or `agent-adapter` on the machine of the store",
        )


async def _cancel(console: Console, request: Request, person: Person, form: Form) -> Response:
    run_id = request.path_params["id"]
    await run_line(console, run_id)
    await upkeep.cancel_run(
        console.store, run_id, by=person.reviewer, reason=_reason(form, "cancelled")
    )
    return see_other(f"/runs/{in_path(run_id)}")


async def _stop(console: Console, request: Request, person: Person, form: Form) -> Response:
    check_whole_store(person)
    await upkeep.stop_writes(console.store, by=person.reviewer, reason=_reason(form, "stopped"))
    return see_other("/health")


async def _allow(console: Console, request: Request, person: Person, form: Form) -> Response:
    check_whole_store(person)
    await upkeep.allow_writes(console.store, by=person.reviewer)
    return see_other("/health")


def _reason(form: Form, what: str) -> str:
    reason = form.get("reason", "").strip()
    if not reason:
        raise Problem(422, "reason", f"reason: say why; nothing was {what}")
    return reason[:2_000]


ROUTES: list[Route] = [
    action("/runs/{id}/cancel", _cancel),
    action("/writes/stop", _stop, role="admin"),
    action("/writes/allow", _allow, role="admin"),
]
