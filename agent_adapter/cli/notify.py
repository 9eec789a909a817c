"""`agent-adapter notify`: who is told what, where; the outbox; the program that sends."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from agent_adapter.cli.exit_codes import FAILED, OK, CommandError
from agent_adapter.cli.options import AsJson, Reviewer, StoreUrl, reviewer_name, with_store
from agent_adapter.cli.output import print_line, print_list, print_text, when
from agent_adapter.cli.prefixes import whole_id

if TYPE_CHECKING:
    from agent_adapter.notify.rules import NotifyRule
    from agent_adapter.store.base import Operation, Row, Store

app = typer.Typer(name="notify", help="Tell people by webhook, e-mail and chat; see the outbox.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The rule.", show_default=False)]
RulesFile = Annotated[
    Path | None,
    typer.Option("--rules", metavar="FILE", help="More rules: [[rule]] tables of a TOML file."),
]
"""`--rules FILE`."""
ConsoleUrl = Annotated[
    str | None,
    typer.Option(
        "--console-url",
        envvar="AGENT_ADAPTER_CONSOLE_URL",
        metavar="URL",
        help="The address of the console, for links.",
    ),
]
"""`--console-url URL`."""


class Event(StrEnum):
    """What a rule can ask for; the same as `agent_adapter.notify.rules.EVENTS`."""

    WAITING = "waiting"
    EXPIRING = "expiring"
    IN_DOUBT = "in-doubt"
    YOUR_TURN = "your-turn"
    PARKED = "parked"
    CHANNEL_FAILED = "channel-failed"
    CHAIN_BROKEN = "chain-broken"


class OutboxFilter(StrEnum):
    """The notifications that `outbox` shows."""

    OPEN = "open"
    SENT = "sent"
    DROPPED = "dropped"
    FAILED = "failed"
    ALL = "all"


@app.command(
    epilog="Example: agent-adapter notify add ops --to https://example.org/hook"
    " --secret '${HOOK_SECRET}' --on waiting --on in-doubt"
)
def add(
    name: Name,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="URL",
            help="https://…, slack+https://…, smtp://host?from=…&to=…, or a URL of Apprise;"
            " ${NAME} is an environment variable of the program that sends.",
        ),
    ],
    on: Annotated[
        list[Event] | None, typer.Option("--on", help="An event; repeatable; default: most.")
    ] = None,
    tools: Annotated[
        list[str] | None,
        typer.Option("--tool", metavar="PATTERN", help="Only of these tools: refund, mail_*."),
    ] = None,
    person: Annotated[
        str | None, typer.Option("--person", help="Only what this person can act on.")
    ] = None,
    before: Annotated[
        str, typer.Option("--before", metavar="AGE", help="How long before expiry: 30m, 2h.")
    ] = "1h",
    secret: Annotated[
        str | None,
        typer.Option("--secret", help="Signs webhooks; write it as '${NAME}' to keep it out."),
    ] = None,
    bare: Annotated[bool, typer.Option("--no-details", help="Send no arguments of calls.")] = False,
    tenant: Annotated[
        str, typer.Option("--tenant", help="The tenant; default: none; '*': every one.")
    ] = "",
    reviewer: Reviewer = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Add a rule: who is told of which events, and where."""
    from agent_adapter.notify import rules
    from agent_adapter.store import notifications

    more = {} if not on else {"events": [each.value for each in on]}
    rule = rules.rule_of(
        {"name": name, "to": to, "tenant": tenant, "tools": tools or [], "person": person}
        | {"before": before, "secret": secret, "details": not bare}
        | more
    )
    by, data = reviewer_name(reviewer), rules.to_json(rule)
    _write(store, lambda tx: notifications.add_rule(tx, name, rule.tenant, data, by=by), new=True)
    print_line(_shown(rule), f"{name} tells {rule.address} of {', '.join(rule.events)}", as_json)


@app.command("list", epilog="Example: agent-adapter notify list")
def list_(rules: RulesFile = None, store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List the rules; what may be secret in an address is hidden."""
    found = with_store(store, lambda opened: _rules(opened, rules))
    print_list(
        [_shown(rule) for rule in found],
        ("rule", "to", "events", "tenant", "tools", "person"),
        (
            (
                rule.name,
                rule.address,
                ", ".join(rule.events),
                "every" if rule.tenant is None else rule.tenant or "(none)",
                ", ".join(rule.tools) or "all",
                rule.person or "-",
            )
            for rule in found
        ),
        empty="no rules: nobody is told",
        as_json=as_json,
    )


@app.command(epilog="Example: agent-adapter notify remove ops")
def remove(
    name: Name, reviewer: Reviewer = None, store: StoreUrl = None, as_json: AsJson = False
) -> None:
    """Remove a rule; what it has not sent is dropped."""
    from agent_adapter.store import notifications

    by = reviewer_name(reviewer)
    _write(store, lambda tx: notifications.remove_rule(tx, name, by=by))
    print_line({"removed": name}, f"{name} is removed", as_json)


@app.command(epilog="Example: agent-adapter notify test ops")
def test(
    name: Name,
    rules: RulesFile = None,
    console_url: ConsoleUrl = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> int:
    """Send a test message by a rule now; exit code 1 if it was not taken."""
    from agent_adapter.exec.ids import new_id
    from agent_adapter.notify.channels import send
    from agent_adapter.notify.messages import test_message
    from agent_adapter.notify.notifier import attempt

    async def work(opened: Store) -> tuple[str, str | None]:
        rule = next((each for each in await _rules(opened, rules) if each.name == name), None)
        if rule is None:
            raise CommandError(f"no rule {name}; `agent-adapter notify list` shows all")
        now = await opened.read(lambda tx: tx.now)
        message = test_message(new_id("ntf"), now, console_url)
        problem = await attempt(send, rule, message, now)
        return rule.address, None if problem is None else problem[0]

    address, problem = with_store(store, work)
    if problem is not None:
        raise CommandError(f"{name} ({address}): {problem}", kind="send-failed")
    print_line({"rule": name, "sent": True}, f"{name}: {address} has taken it", as_json)
    return OK


@app.command(epilog="Example: agent-adapter notify outbox --state failed")
def outbox(
    state: Annotated[
        OutboxFilter, typer.Option("--state", help="The state of the notifications.")
    ] = OutboxFilter.OPEN,
    limit: Annotated[int, typer.Option("--limit", min=1, help="The maximum number.")] = 100,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List notifications, the newest first: what waits, why it failed, what was sent."""
    from agent_adapter.store import notifications

    wanted = {OutboxFilter.OPEN: ("pending", "sending"), OutboxFilter.ALL: None}
    states = wanted.get(state, (state.value,))
    rows = with_store(
        store,
        lambda opened: opened.read(lambda tx: notifications.outbox(tx, states=states, limit=limit)),
    )
    print_list(
        rows,
        ("id", "state", "rule", "event", "about", "attempts", "due", "problem"),
        (
            (
                *(row["id"], row["state"], row["rule"], row["event"], row["subject"]),
                *(row["attempts"], when(row["due_at"]), row["error"] or "-"),
            )
            for row in rows
        ),
        empty="nothing waits to be sent" if state is OutboxFilter.OPEN else "no notifications",
        as_json=as_json,
    )


@app.command(epilog="Example: agent-adapter notify retry ntf_0123")
def retry(
    id: Annotated[str, typer.Argument(metavar="ID", help="The notification, ntf_….")],
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Send a notification again, under its id, when the outbox is next emptied."""
    from agent_adapter.store import notifications

    async def work(opened: Store) -> Row:
        whole = await whole_id(opened, "notification", id, None)
        return await _done(opened, lambda tx: notifications.retry(tx, whole))

    row = with_store(store, work)
    print_line({"id": row["id"], "state": row["state"]}, f"{row['id']} is due again", as_json)


@app.command(epilog="Example: agent-adapter notify run --console-url https://console.example.org")
def run(
    rules: RulesFile = None,
    console_url: ConsoleUrl = None,
    once: Annotated[
        bool, typer.Option("--once", help="Send what is due and leave; exit code 1 if some failed.")
    ] = False,
    verify_every: Annotated[
        str,
        typer.Option(
            "--verify-every", metavar="AGE", help="How often the ledger is verified; or never."
        ),
    ] = "1d",
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> int:
    """Look for events and send notifications until Ctrl-C, as `serve` does beside the console."""
    from agent_adapter.notify.notifier import Notifier, Round
    from agent_adapter.notify.rules import read_rules, seconds_of

    every = None if verify_every == "never" else seconds_of(verify_every)
    more = [] if rules is None else read_rules(rules)

    async def work(opened: Store) -> Round | None:
        notifier = Notifier(opened, more, console=console_url, verify_every=every)
        if once:
            return await notifier.round()
        signal.signal(signal.SIGTERM, _leave)
        print_text('{"running": true}' if as_json else "sending notifications; Ctrl-C ends it")
        await notifier.run()
        return None

    done = None
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        done = with_store(store, work)
    if done is None:
        return OK
    said = f"{done.found} new, {done.sent} sent or settled, {done.failed} to be tried again"
    print_line(asdict(done), said, as_json)
    return FAILED if done.failed else OK


def _leave(number: int, frame: object) -> NoReturn:
    raise SystemExit(OK)


async def _rules(store: Store, file: Path | None) -> Sequence[NotifyRule]:
    from agent_adapter.notify.rules import read_rules, stored_rules, unique

    stored = await store.read(stored_rules)
    return stored if file is None else unique([*read_rules(file), *stored])


def _shown(rule: NotifyRule) -> dict[str, Any]:
    hidden = {"to": rule.address, "secret": None if rule.secret is None else "***"}
    return asdict(rule) | hidden


def _write(url: str | None, op: Operation[Any], *, new: bool = False) -> Row:
    return with_store(url, lambda opened: _done(opened, op), new=new)


async def _done(store: Store, op: Operation[Any]) -> Row:
    from agent_adapter.store.refusal import Refusal

    row = await store.write(op)
    if isinstance(row, Refusal):
        raise CommandError(row.reason)
    made: Row = row
    return made
