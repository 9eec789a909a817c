"""What passes a hub: access in and out, limits, inboxes and rates."""

from __future__ import annotations

import pytest

from agent_adapter.core.errors import AccessDeniedError, InboxFull, ProtocolError
from agent_adapter.core.rate import TokenBucket
from agent_adapter.network import (
    AccessBlock,
    ChannelManifest,
    ChannelTypeAccess,
    LimitsBlock,
    Rule,
    RuleBasedArbiter,
)
from agent_adapter.network.channels.transaction import ENVELOPE_LIMIT, check_size
from agent_adapter.network.hub.admission import (
    Admission,
    Decision,
    Deny,
    Registration,
)
from agent_adapter.network.rules import InboxBlock, RateBlock
from tests.network._channels import identity, said

WORKFLOW = ChannelManifest("workflow")


def access(**block: list[str]) -> Rule:
    """A rule about access alone."""
    return Rule(access=AccessBlock(**block))


def test_defaults_permit() -> None:
    """Participants without rules may speak with each other."""
    Admission().check_open(WORKFLOW, identity("A"), [identity("B")], 100)
    assert Admission().check_post(said("a"), identity("A"), [identity("B")], {}) == said("a")


def test_opener_must_be_let_out() -> None:
    """Whom a participant may not speak to it may not invite."""
    opener = identity("A", access(outbound_to=["support-*"]))
    with pytest.raises(AccessDeniedError, match="A may not speak to B"):
        Admission().check_open(WORKFLOW, opener, [identity("B")], 0)


def test_invited_must_let_in() -> None:
    """Who takes no messages of the opener cannot be invited by it."""
    invited = identity("B", access(inbound_from=["boss"]))
    with pytest.raises(AccessDeniedError, match="B takes no messages of A"):
        Admission().check_open(WORKFLOW, identity("A"), [invited], 0)


@pytest.mark.parametrize("side", ["initiate", "accept"])
def test_channel_types_hold_on_both_sides(side: str) -> None:
    """A type of channel is refused to whoever may not open it, or takes no part in it."""
    rule = Rule(access=AccessBlock(channel_types=ChannelTypeAccess(**{side: ["consulting"]})))
    opener = identity("A", rule if side == "initiate" else None)
    invited = identity("B", rule if side == "accept" else None)
    with pytest.raises(AccessDeniedError, match="'workflow'"):
        Admission().check_open(WORKFLOW, opener, [invited], 0)


def test_number_of_channels_is_limited() -> None:
    """Nobody has more channels open than its rule allows."""
    opener = identity("A", Rule(limits=LimitsBlock(max_concurrent_channels=2)))
    Admission().check_open(WORKFLOW, opener, [identity("B")], 1)
    with pytest.raises(AccessDeniedError, match="has 2 channels open and may have 2"):
        Admission().check_open(WORKFLOW, opener, [identity("B")], 2)


def test_message_must_be_let_out() -> None:
    """A message to somebody whom its sender may not speak to is refused."""
    sender = identity("A", access(outbound_to=["C"]))
    with pytest.raises(AccessDeniedError, match="A may not speak to B"):
        Admission().check_post(said("a"), sender, [identity("B")], {})


def test_message_to_an_audience_asks_only_about_it() -> None:
    """Who is not in the audience does not matter."""
    sender = identity("A", access(outbound_to=["C"]))
    envelope = said("a", audience=["c"])
    others = [identity("B"), identity("C")]
    assert Admission().check_post(envelope, sender, others, {}) == envelope


def test_who_blocks_the_sender_sees_nothing() -> None:
    """A participant that takes no messages of the sender is left out of the audience."""
    others = [identity("B", access(inbound_from=["C"])), identity("C")]
    admitted = Admission().check_post(said("a"), identity("A"), others, {})
    assert admitted.audience == ["c"]


def test_delegation_is_not_endless() -> None:
    """A message that is deeper than the sender may delegate is refused with both depths."""
    with pytest.raises(AccessDeniedError, match="5 deep; this message is 6 deep"):
        Admission().check_post(said("a", depth=6), identity("A"), [], {})


def test_full_inbox_refuses() -> None:
    """Nothing more is accepted for a participant that has as much waiting as it takes."""
    rule = Rule(limits=LimitsBlock(inbox=InboxBlock(max_pending=3)))
    with pytest.raises(InboxFull, match="3 messages wait for B"):
        Admission().check_post(said("a"), identity("A"), [identity("B", rule)], {"b": 3})


class Clock:
    """Time that passes when it is told to."""

    now = 100.0

    def __call__(self) -> float:
        """The time it is."""
        return self.now


def test_rate_is_enforced() -> None:
    """After a burst a message is refused until its time has come."""
    clock = Clock()
    bucket = TokenBucket(clock=clock)
    assert [bucket.wait("a", burst=2, per_minute=60) for _ in range(3)] == [0.0, 0.0, 1.0]
    clock.now += 1
    assert bucket.wait("a", burst=2, per_minute=60) == 0.0


def test_rate_is_counted_per_participant() -> None:
    """One participant's messages do not use up another's."""
    bucket = TokenBucket(burst=1, per_minute=60, clock=Clock())
    assert bucket.wait("a") == bucket.wait("b") == 0.0


def test_rate_refusal_names_the_wait() -> None:
    """A refused sender is told its rate and when to come back."""
    admission = Admission(clock=Clock())
    sender = identity("A", Rule(limits=LimitsBlock(rate=RateBlock(per_minute=60, burst=1))))
    admission.check_post(said("a"), sender, [], {})
    with pytest.raises(AccessDeniedError, match=r"60 messages a minute; the next one in 1\.0 s"):
        admission.check_post(said("a"), sender, [], {})


def test_turns_do_not_count_for_the_rate() -> None:
    """What a participant says in a turn that it was given is never refused for its rate."""
    admission = Admission(clock=Clock())
    sender = identity("A", Rule(limits=LimitsBlock(rate=RateBlock(per_minute=60, burst=1))))
    for _ in range(3):
        admission.check_post(said("a"), sender, [], {}, in_turn=True)


def test_own_arbiter_is_asked() -> None:
    """An arbiter of the program's own decides, and its reason is what the caller reads."""

    class Closed(RuleBasedArbiter):
        def authorize_register(self, newcomer: Registration) -> Decision:
            return Deny(f"no place for {newcomer.name}")

    with pytest.raises(AccessDeniedError, match="no place for A"):
        Admission(Closed()).check_register(identity("A"))


def test_size_is_limited() -> None:
    """An envelope that is too long is refused with both sizes."""
    check_size(ENVELOPE_LIMIT)
    with pytest.raises(ProtocolError, match=rf"{ENVELOPE_LIMIT + 1} bytes of JSON"):
        check_size(ENVELOPE_LIMIT + 1)
