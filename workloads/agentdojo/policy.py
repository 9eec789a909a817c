"""What the owner of AgentDojo's tools would declare: whose text they give, and their sinks.

The library knows none of these names: all of it goes through `trust`, `source`, `sinks`, `confirm`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from workloads.agentdojo.effects import effects_of

__all__ = ["POLICIES", "PolicyName", "declared"]

PolicyName = Literal["none", "tainted", "provenance"]

POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)
"""Nobody asks; each write of a tainted conversation asks; only strange targets ask."""

SOURCES = frozenset(
    {
        "get_balance",
        "get_current_day",
        "get_iban",
        "get_user_info",
        "get_user_information",
        "get_users_in_channel",
        "search_contacts_by_email",
        "search_contacts_by_name",
    }
)
"""Registers that only the owner of the account writes; whatever else reads is foreign text."""

SINKS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "send_email": {"recipients": "recipient", "cc": "recipient", "bcc": "recipient"},
        "delete_email": {"email_id": "email"},
        # An entry in a calendar speaks to its owner: what it is called is a target, too.
        "create_calendar_event": {"participants": "recipient", "title": "title"},
        "cancel_calendar_event": {"event_id": "event"},
        "add_calendar_event_participants": {"participants": "recipient"},
        "delete_file": {"file_id": "file"},
        "share_file": {"email": "recipient"},
        "reserve_hotel": {"hotel": "company"},
        "reserve_car_rental": {"company": "company"},
        "reserve_restaurant": {"restaurant": "company"},
        "send_money": {"recipient": "account"},
        "schedule_transaction": {"recipient": "account"},
        "update_scheduled_transaction": {"recipient": "account"},
        "update_password": {"password": "password"},
        "update_user_info": {"street": "address", "city": "address"},
        "add_user_to_channel": {"user": "recipient", "channel": "channel"},
        # A message to a friend may still carry a stranger's link.
        "send_direct_message": {"recipient": "recipient", "body": "links"},
        "send_channel_message": {"channel": "channel", "body": "links"},
        "invite_user_to_slack": {"user": "recipient", "user_email": "recipient"},
        "remove_user_from_slack": {"user": "recipient"},
        "post_webpage": {"url": "url"},
    }
)
"""The arguments that decide where something goes, or what is lost.

What stays in the user's own files, or moves their own entry to another hour, has none.
"""


def declared(function: str, policy: PolicyName) -> dict[str, Any]:
    """The options of the tool made of a function."""
    effects = effects_of(function)
    options: dict[str, Any] = {"effects": effects}
    if policy == "none":
        return options
    if effects == "read":
        own = function in SOURCES
        return options | ({"source": True} if own else {"trust": "untrusted"})
    if policy == "tainted":
        return options | {"confirm": "tainted"}
    sinks = SINKS.get(function)
    return options if sinks is None else options | {"confirm": "provenance", "sinks": sinks}
