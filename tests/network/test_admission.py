"""What passes a hub: access in and out, limits, inboxes and rates."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agent_adapter.core.errors import AccessDeniedError, InboxFull, NetworkError, ProtocolError
from agent_adapter.core.rate import TokenBucket
from agent_adapter.flow import Envelope
from agent_adapter.network import (
    AccessBlock,
    Allow,
    BaseHubArbiter,
    ChannelManifest,
    ChannelTypeAccess,
    Decision,
    Deny,
    LimitsBlock,
    Passport,
    Resume,
    Rule,
    RuleBasedArbiter,
)
from agent_adapter.network.channels.transaction import ENVELOPE_LIMIT, check_size
from agent_adapter.network.hub import admission as admission_module
from agent_adapter.network.hub.admission import Admission
from agent_adapter.network.rules import InboxBlock, RateBlock
from tests.network._channels import identity, said

pytestmark = pytest.mark.anyio

WORKFLOW = ChannelManifest("workflow")


def access(**block: list[str]) -> Rule:
    """A rule about access alone."""
    return Rule(access=AccessBlock(**block))


async def test_defaults_permit() -> None:
    """Participants without rules may speak with each other."""
    await Admission().check_open(WORKFLOW, identity("A"), [identity("B")], 100)
    assert await Admission().check_post(said("a"), identity("A"), [identity("B")], {}) == said("a")


async def test_opener_must_be_let_out() -> None:
    """Whom a participant may not speak to it may not invite."""
    opener = identity("A", access(outbound_to=["support-*"]))
    with pytest.raises(AccessDeniedError, match="A may not speak to B"):
        await Admission().check_open(WORKFLOW, opener, [identity("B")], 0)


async def test_invited_must_let_in() -> None:
    """Who takes no messages of the opener cannot be invited by it."""
    invited = identity("B", access(inbound_from=["boss"]))
    with pytest.raises(AccessDeniedError, match="B takes no messages of A"):
        await Admission().check_open(WORKFLOW, identity("A"), [invited], 0)


@pytest.mark.parametrize("side", ["initiate", "accept"])
async def test_channel_types_hold_on_both_sides(side: str) -> None:
    """A type of channel is refused to whoever may not open it, or takes no part in it."""
    rule = Rule(access=AccessBlock(channel_types=ChannelTypeAccess(**{side: ["consulting"]})))
    opener = identity("A", rule if side == "initiate" else None)
    invited = identity("B", rule if side == "accept" else None)
    with pytest.raises(AccessDeniedError, match="'workflow'"):
        await Admission().check_open(WORKFLOW, opener, [invited], 0)


async def test_number_of_channels_is_limited() -> None:
    """Nobody has more channels open than its rule allows."""
    opener = identity("A", Rule(limits=LimitsBlock(max_concurrent_channels=2)))
    await Admission().check_open(WORKFLOW, opener, [identity("B")], 1)
    with pytest.raises(AccessDeniedError, match="has 2 channels open and may have 2"):
        await Admission().check_open(WORKFLOW, opener, [identity("B")], 2)


async def test_message_must_be_let_out() -> None:
    """A message to somebody whom its sender may not speak to is refused."""
    sender = identity("A", access(outbound_to=["C"]))
    with pytest.raises(AccessDeniedError, match="A may not speak to B"):
        await Admission().check_post(said("a"), sender, [identity("B")], {})


async def test_message_to_an_audience_asks_only_about_it() -> None:
    """Who is not in the audience does not matter."""
    sender = identity("A", access(outbound_to=["C"]))
    envelope = said("a", audience=["c"])
    others = [identity("B"), identity("C")]
    assert await Admission().check_post(envelope, sender, others, {}) == envelope


async def test_who_blocks_the_sender_sees_nothing() -> None:
    """A participant that takes no messages of the sender is left out of the audience."""
    others = [identity("B", access(inbound_from=["C"])), identity("C")]
    admitted = await Admission().check_post(said("a"), identity("A"), others, {})
    assert admitted.audience == ["c"]


async def test_delegation_is_not_endless() -> None:
    """A message that is deeper than the sender may delegate is refused with both depths."""
    with pytest.raises(AccessDeniedError, match="5 deep; this message is 6 deep"):
        await Admission().check_post(said("a", depth=6), identity("A"), [], {})


async def test_full_inbox_refuses() -> None:
    """Nothing more is accepted for a participant that has as much waiting as it takes."""
    rule = Rule(limits=LimitsBlock(inbox=InboxBlock(max_pending=3)))
    with pytest.raises(InboxFull, match="3 messages wait for B"):
        await Admission().check_post(said("a"), identity("A"), [identity("B", rule)], {"b": 3})


class Clock:
    """Time that passes when it is told to."""

    now = 100.0

    def __call__(self) -> float:
        """The time it is."""
        return self.now


async def test_rate_is_enforced() -> None:
    """After a burst a message is refused until its time has come."""
    clock = Clock()
    bucket = TokenBucket(clock=clock)
    assert [bucket.wait("a", burst=2, per_minute=60) for _ in range(3)] == [0.0, 0.0, 1.0]
    clock.now += 1
    assert bucket.wait("a", burst=2, per_minute=60) == 0.0


async def test_rate_is_counted_per_participant() -> None:
    """One participant's messages do not use up another's."""
    bucket = TokenBucket(burst=1, per_minute=60, clock=Clock())
    assert bucket.wait("a") == bucket.wait("b") == 0.0


async def test_rate_refusal_names_the_wait() -> None:
    """A refused sender is told its rate and when to come back."""
    admission = Admission(clock=Clock())
    sender = identity("A", Rule(limits=LimitsBlock(rate=RateBlock(per_minute=60, burst=1))))
    await admission.check_post(said("a"), sender, [], {})
    with pytest.raises(AccessDeniedError, match=r"60 messages a minute; the next one in 1\.0 s"):
        await admission.check_post(said("a"), sender, [], {})


async def test_turns_do_not_count_for_the_rate() -> None:
    """What a participant says in a turn that it was given is never refused for its rate."""
    admission = Admission(clock=Clock())
    sender = identity("A", Rule(limits=LimitsBlock(rate=RateBlock(per_minute=60, burst=1))))
    for _ in range(3):
        await admission.check_post(said("a"), sender, [], {}, in_turn=True)


async def test_own_arbiter_is_asked() -> None:
    """An arbiter of the program's own decides, and its reason is what the caller reads."""

    class Closed(RuleBasedArbiter):
        async def authorize_register(
            self, passport: Passport, resume: Resume, rule: Rule
        ) -> Decision:
            return Deny(f"no place for {passport.name}")

    with pytest.raises(AccessDeniedError, match="no place for A"):
        await Admission(Closed()).check_register(identity("A"))


def _gate(name: str, answer: Any, *, waits: bool) -> Any:
    """An arbiter that allows all but what the method `name` decides: it gives `answer`."""

    def said() -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def later(self: Any, *about: Any) -> Any:
        await asyncio.sleep(0)
        return said()

    methods = {name: later if waits else lambda self, *about: said()}
    return type("Own", (BaseHubArbiter,), methods)()


_ASKED: dict[str, Callable[[Admission], Awaitable[Any]]] = {
    "authorize_register": lambda own: own.check_register(identity("A")),
    "authorize_channel_open": lambda own: own.check_open(
        WORKFLOW, identity("A"), [identity("B")], 0
    ),
    "authorize_send": lambda own: own.check_post(said("a"), identity("A"), [identity("B")], {}),
    "authorize_inbox": lambda own: own.check_post(said("a"), identity("A"), [identity("B")], {}),
}
_NO = [Deny("no"), None, True, object(), "allow", Allow, ValueError("broken"), InboxFull("full")]


@pytest.mark.parametrize("waits", [True, False], ids=["async", "plain"])
@pytest.mark.parametrize("answer", _NO, ids=[type(item).__name__ + str(item)[:5] for item in _NO])
@pytest.mark.parametrize("gate", [*_ASKED, "authorize_dispatch"])
async def test_only_allow_admits(gate: str, answer: Any, waits: bool) -> None:
    """N5: async or not, whatever is not an `Allow` refuses, at every gate."""
    own = Admission(_gate(gate, answer, waits=waits))
    if gate == "authorize_dispatch":
        left = await own.check_post(said("a"), identity("A"), [identity("B")], {})
        assert left.audience == []
        with pytest.raises(NetworkError):
            await own.check_open(WORKFLOW, identity("A"), [identity("B")], 0)
        return
    with pytest.raises(NetworkError):
        await _ASKED[gate](own)


@pytest.mark.parametrize("waits", [True, False], ids=["async", "plain"])
@pytest.mark.parametrize("gate", [*_ASKED, "authorize_dispatch"])
async def test_allow_admits(gate: str, waits: bool) -> None:
    """N5: an explicit `Allow` is a yes at every gate."""
    own = Admission(_gate(gate, Allow(), waits=waits))
    for ask in _ASKED.values():
        await ask(own)


async def test_a_refusal_of_its_own_class_reaches_the_caller() -> None:
    """`Deny.error` is what is raised; a class that is no error of the network is not."""
    full = Deny("later", error=InboxFull)
    with pytest.raises(InboxFull, match="later"):
        await _ASKED["authorize_send"](Admission(_gate("authorize_send", full, waits=True)))
    wrong = Deny("no", error=ValueError)  # type: ignore[arg-type]
    with pytest.raises(AccessDeniedError, match="no"):
        await _ASKED["authorize_send"](Admission(_gate("authorize_send", wrong, waits=True)))


async def test_what_a_gate_said_wrong_is_named() -> None:
    """The refused caller reads which gate gave what, and what admits."""
    own = Admission(_gate("authorize_send", None, waits=True))
    with pytest.raises(AccessDeniedError, match=r"returned None; only Allow\(\) admits"):
        await _ASKED["authorize_send"](own)


async def test_a_gate_that_never_answers_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for an answer is bounded."""
    monkeypatch.setattr(admission_module, "_GATE_SECONDS", 0.01)

    class Hangs(BaseHubArbiter):
        async def authorize_register(
            self, passport: Passport, resume: Resume, rule: Rule
        ) -> Decision:
            await asyncio.Event().wait()
            return Allow()

    with pytest.raises(AccessDeniedError, match=r"authorize_register failed \(TimeoutError\)"):
        await Admission(Hangs()).check_register(identity("A"))


async def test_an_arbiter_without_a_gate_is_refused() -> None:
    """The error names what is missing, and what to derive from."""

    class Half:
        async def authorize_send(self, *about: Any) -> Decision:
            return Allow()

    with pytest.raises(TypeError, match=r"Half lacks authorize_register, .* RuleBasedArbiter"):
        Admission(Half())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is a class"):
        Admission(BaseHubArbiter)  # type: ignore[arg-type]


async def test_unknown_ids_may_be_replaced() -> None:
    """An arbiter names who receives in the place of those who are registered nowhere."""

    class Redirects(BaseHubArbiter):
        async def resolve_unknown_audience(
            self, envelope: Envelope, unknown_ids: list[str]
        ) -> list[str] | None:
            return ["b"] if unknown_ids == ["far"] else None

    own, sent = Admission(Redirects()), said("a", audience=["far"])
    others = [identity("B")]
    found = await own.check_post(sent, identity("A"), others, {}, unknown=["far"])
    assert found.audience == ["b"]
    kept = await own.check_post(sent, identity("A"), others, {}, unknown=["gone"])
    assert kept.audience == ["far"]


async def test_a_filling_inbox_is_told_once() -> None:
    """When the mark is reached, with how many wait."""
    rule = Rule(limits=LimitsBlock(inbox=InboxBlock(max_pending=10)))
    told: list[int] = []
    own = Admission()
    own.on_pressure = lambda recipient, waiting: told.append(waiting)
    for waiting in range(9):
        await own.check_post(said("a"), identity("A"), [identity("B", rule)], {"b": waiting})
    assert told == [8]


async def test_size_is_limited() -> None:
    """An envelope that is too long is refused with both sizes."""
    check_size(ENVELOPE_LIMIT)
    with pytest.raises(ProtocolError, match=rf"{ENVELOPE_LIMIT + 1} bytes of JSON"):
        check_size(ENVELOPE_LIMIT + 1)
