"""Passports and résumés: what they hold, and what cannot be one."""

from __future__ import annotations

from typing import Any

import pytest

from agent_adapter.core.errors import NetworkError, ProtocolError
from agent_adapter.network import (
    AuthBlock,
    CostProfile,
    Hub,
    HubClient,
    LocalLink,
    ObservedStat,
    Passport,
    Resume,
)
from agent_adapter.network.identity import ResumeExample


def test_passport_survives_json() -> None:
    """A passport reads back as it was written."""
    passport = Passport(name="triage", kind="human", cost=CostProfile(1.5), agent_id="agt_1")
    assert Passport.from_dict(passport.to_dict()) == passport


def test_resume_survives_json() -> None:
    """A résumé reads back with its examples and what was observed."""
    resume = Resume(
        claimed_capabilities=["refunds"],
        examples=[ResumeExample("first")],
        observed={"refunds": ObservedStat(n=2, completed=1)},
    )
    assert Resume.from_dict(resume.to_dict()) == resume


def test_claim_is_not_written() -> None:
    """What a participant proves itself with is not stored with its passport."""
    passport = Passport(name="a", auth=AuthBlock(scheme="api_key", claim={"token": "secret"}))
    assert passport.to_dict()["auth"]["claim"] == {}


def test_no_kind_is_an_agent() -> None:
    """A passport without a kind is that of an agent."""
    assert Passport(name="a").effective_kind == "agent"


@pytest.mark.parametrize("name", ["", " ", " a", "a\n", "a\u202eb", "x" * 201])
def test_name_must_be_an_address(name: str) -> None:
    """A name that cannot be read and written by people and models is refused."""
    with pytest.raises(ValueError, match=r"Passport\.name"):
        Passport(name=name)


def test_unknown_kind_is_refused() -> None:
    """A misspelt kind is refused with the kinds that there are."""
    with pytest.raises(ValueError, match="'agent', 'human', 'remote_agent'"):
        Passport(name="a", kind="huMan")  # type: ignore[arg-type]  # the case


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ({"name": 1}, "name"),
        ({"name": "a", "power": 9000}, "power"),
        ({}, "name"),
        ("a", "JSON object"),
        ({"name": "a", "cost": {"free": True}}, "free"),
    ],
)
def test_foreign_record_is_refused(data: Any, what: str) -> None:
    """A record that is no passport is refused with the field that does not fit."""
    with pytest.raises(ProtocolError, match=what):
        Passport.from_dict(data)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("passport", "problem"),
    [
        (Passport(name="a", auth=AuthBlock(scheme="api_key")), "unknown auth scheme: 'api_key'"),
        (Passport(name="a", auth=AuthBlock(issuer="s3cret")), "checks nothing"),
        (Passport(name="a", hub_id="hub_2"), "belongs to the hub 'hub_2'"),
    ],
)
async def test_a_hub_refuses_what_it_does_not_check(passport: Passport, problem: str) -> None:
    """A passport that asks for another authentication or hub does not register."""
    async with await Hub.open("memory://") as hub, HubClient(LocalLink(hub)) as client:
        with pytest.raises(NetworkError, match=problem) as refused:
            await client.register_human(passport)
        assert "s3cret" not in str(refused.value)
        assert await client.list_agents() == []
