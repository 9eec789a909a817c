"""What fills the outbox, and what empties it."""

from __future__ import annotations

import pytest

import agent_adapter as aa
from agent_adapter.notify.channels.sending import SendFailed
from agent_adapter.store import notifications, people

from .conftest import World

pytestmark = pytest.mark.anyio


async def test_a_request_is_told_once(world: World) -> None:
    """However often the store is looked at, and by however many notifiers."""
    id = await world.ask()
    await world.rule()
    first = world.notifier()
    assert (await first.round()).sent == 1
    await first.round()
    await world.notifier().round()
    [told] = world.receiver.taken
    assert told.message.link == f"https://console.example/approvals/{id}"
    assert dict(told.message.facts)["record"] == id
    [row] = await world.rows()
    assert (row["state"], row["attempts"], row["id"]) == ("sent", 1, told.message.id)


async def test_each_rule_is_told_under_an_id_of_its_own(world: World) -> None:
    """Two rules make two notifications of one request, with different ids."""
    await world.ask()
    await world.rule("ops")
    await world.rule("boss")
    await world.notifier().round()
    assert len(set(world.receiver.ids)) == 2


async def test_a_failure_is_tried_again_under_the_same_id(world: World) -> None:
    """After five seconds, then ten; the reason is kept until it is taken."""
    await world.ask()
    await world.rule()
    notifier = world.notifier()
    world.receiver.fails = SendFailed("answered 500")
    for wait in (5.0, 10.0):
        assert (await notifier.round()).failed == 1
        [row] = await world.rows()
        assert (row["state"], row["error"]) == ("pending", "answered 500")
        assert row["due_at"] == pytest.approx(world.clock.now + wait)
        assert (await notifier.round()).failed == 0, "not before its time"
        world.clock.now += wait + 0.1
    world.receiver.fails = None
    assert (await notifier.round()).sent == 1
    [row] = await world.rows()
    assert (row["state"], row["attempts"], row["error"]) == ("sent", 3, None)
    assert world.receiver.ids == [row["id"]]


async def test_a_receiver_may_say_when(world: World) -> None:
    """`Retry-After` is respected, up to an hour."""
    await world.ask()
    await world.rule()
    world.receiver.fails = SendFailed("answered 429", wait=120)
    await world.notifier().round()
    [row] = await world.rows()
    assert row["due_at"] == pytest.approx(world.clock.now + 120)


async def test_it_is_given_up_after_three_days(world: World) -> None:
    """Then it is `failed`, is seen in the summary, and can be sent again by hand."""
    await world.doubt()
    await world.rule(events=["in-doubt"])
    notifier = world.notifier()
    world.receiver.fails = SendFailed("answered 500")
    await notifier.round()
    world.clock.now += notifications.GIVE_UP_SECONDS
    await notifier.round()
    summary = await world.store.read(lambda tx: notifications.summary(tx, ""))
    assert (summary.states["failed"], summary.error) == (1, "answered 500")
    [row] = await world.rows()
    await world.store.write(lambda tx: notifications.retry(tx, row["id"]))
    world.receiver.fails = None
    await notifier.round()
    assert world.receiver.ids == [row["id"]]


async def test_what_is_decided_meanwhile_is_not_sent(world: World) -> None:
    """The text is made when it is sent: nobody is called to a decided record."""
    id = await world.ask()
    await world.rule()
    world.receiver.fails = SendFailed("answered 500")
    notifier = world.notifier()
    await notifier.round()
    await aa.Inbox(world.store).approve(id, reviewer="ann")
    world.receiver.fails = None
    world.clock.now += 10
    await notifier.round()
    [row] = await world.rows()
    assert (row["state"], row["error"]) == ("dropped", "the record is approved")
    assert world.receiver.taken == []


async def test_it_escalates_before_expiry(world: World) -> None:
    """`expiring` is told `before` the end of the time, once, and not for a decided record."""
    kept = await world.ask("A1")
    decided = await world.ask("B2")
    await world.rule("boss", events=["expiring"], before="1h")
    notifier = world.notifier()
    await notifier.round()
    assert world.receiver.taken == []
    await aa.Inbox(world.store).deny(decided, reviewer="ann")
    record = await aa.Inbox(world.store).get(kept)
    world.clock.now = record.decide_by - 3_601
    await notifier.round()
    assert world.receiver.taken == []
    world.clock.now += 2
    await notifier.round()
    await world.notifier().round()
    [told] = world.receiver.taken
    assert told.message.title == "Expires soon: refund"
    assert dict(told.message.facts)["record"] == kept


async def test_a_short_time_is_halved(world: World) -> None:
    """A request with less time than `before` is not told as expiring when it is made."""
    await world.ask(terms={"decide_within": 600.0})
    await world.rule(events=["expiring"], before="1h")
    notifier = world.notifier()
    world.clock.now += 200
    await notifier.round()
    assert world.receiver.taken == []
    world.clock.now += 101
    await notifier.round()
    assert len(world.receiver.taken) == 1


async def test_a_doubt_is_told(world: World) -> None:
    """A write with unknown outcome, with the page where it is resolved."""
    key = await world.doubt()
    await world.rule(events=["in-doubt"])
    await world.notifier().round()
    [told] = world.receiver.taken
    assert told.message.title == "Outcome unknown: refund"
    assert dict(told.message.facts)["call"] == key
    assert told.message.link == "https://console.example/in-doubt"


async def test_rules_are_by_tool_and_tenant(world: World) -> None:
    """A rule is told of its tenant's tools alone; `*` is every tenant."""
    await world.ask("A1", tenant="acme")
    await world.ask("B2")
    await world.ask("C3", tool="mail_customer")
    await world.rule("acme", tenant="acme")
    await world.rule("mail", tools=["mail_*"])
    await world.rule("all", tenant="*")
    await world.notifier().round()
    told = sorted((row["rule"], row["tenant"]) for row in await world.rows())
    assert told == [("acme", "acme"), ("all", ""), ("all", ""), ("all", "acme"), ("mail", "")]


async def test_a_person_is_told_of_what_they_can_decide(world: World) -> None:
    """Not of other tenants, and not of what they asked for and may not decide."""
    for name, tenant, role in (("Kim", "acme", "approver"), ("Lee", "acme", "viewer")):
        await world.store.write(lambda tx, n=name: people.add(tx, n, by="ana"))
        await world.store.write(
            lambda tx, n=name, t=tenant, r=role: people.link(tx, n, roles={t: r}, by="ana")
        )
    mine = await world.ask("A1", tenant="acme", principal="bo")
    await world.ask("B2", tenant="other", principal="bo")
    await world.rule("kim", tenant="*", person="Kim")
    await world.rule("lee", tenant="*", person="lee")
    await world.notifier().round()
    assert [(row["rule"], row["subject"]) for row in await world.rows()] == [("kim", mine)]


@pytest.mark.alters_store
async def test_a_broken_chain_is_told(world: World) -> None:
    """The ledger is verified now and then; equal problems are told once."""
    await world.ask()
    await world.rule(events=["chain-broken"])
    assert (await world.notifier().round()).found == 0
    await world.store.write(lambda tx: tx.update("ledger", {"seq": 1}, {"body": b"{}"}))
    await world.notifier().round()
    await world.notifier().round()
    [told] = world.receiver.taken
    assert told.message.title == "The ledger does not verify"


async def test_what_a_dead_process_was_sending_is_sent(world: World) -> None:
    """A row that its owner did not finish is taken by another, under its id."""
    await world.ask()
    await world.rule()
    world.receiver.fails = SendFailed("answered 500")
    await world.notifier().round()
    dead = {"state": "sending", "owner_id": "own_dead", "due_at": 0.0}
    await world.store.write(lambda tx: tx.update("notifications", {}, dead))
    world.receiver.fails = None
    assert (await world.notifier().round()).sent == 1
    [row] = await world.rows()
    assert world.receiver.ids == [row["id"]]


async def test_a_rule_that_is_gone_sends_nothing(world: World) -> None:
    """What it had not sent is dropped, and says why."""
    await world.ask()
    await world.rule()
    world.receiver.fails = SendFailed("answered 500")
    await world.notifier().round()
    await world.store.write(lambda tx: notifications.remove_rule(tx, "ops", by="ana"))
    world.clock.now += 60
    world.receiver.fails = None
    await world.notifier().round()
    [row] = await world.rows()
    assert (row["state"], row["error"]) == ("dropped", "the rule ops is gone")


async def test_a_failure_never_shows_the_address(world: World) -> None:
    """An unset variable is named; nothing of a secret address is in the outbox."""
    await world.ask()
    await world.rule(to="https://hooks.example/${NO_SUCH_VARIABLE}")
    await world.notifier().round()
    [row] = await world.rows()
    assert row["error"] == "the environment variable NO_SUCH_VARIABLE is not set"
    assert row["state"] == "pending"
