"""Operations on people: one person, many log-ins, and a role in each tenant.

Who a decision counts for is `person_of` alone. Log-ins of equal names are one person; more is only
known where somebody linked it. A role comes from a link, never from a name.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_adapter.core.inert import short
from agent_adapter.core.logins import bare, folded
from agent_adapter.store import ledger
from agent_adapter.store.base import Row, Transaction
from agent_adapter.store.refusal import Refusal
from agent_adapter.store.witness import UPKEEP, chain_of_people

ROLES = ("viewer", "approver", "admin")
"""Each role includes the ones before it: read; decide; administer."""

_LONGEST = 256
_NAMED = "name:"
_KEY = "key:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """What a linked log-in may do: the role in each tenant, `none` where it was taken away.

    Without any, the person is linked to be counted only. `revoked`: nothing any more.
    """

    person: str
    roles: Mapping[str, str]
    revoked: bool


def person_of(tx: Transaction, login: str | None, key: str | None = None) -> str | None:
    """Who is behind a log-in: a person's id, or else the bare name; `None` without a visible name.

    The public `key` of a signature decides, if it belongs to a person, whatever the log-in says.
    """
    if key is not None and (signed := tx.get("logins", _KEY + key)) is not None:
        return str(signed["person_id"])
    name = bare(login)
    if not name:
        return None
    known = tx.select("logins", {"name": name}, limit=1)
    return str(known[0]["person_id"]) if known else _NAMED + name


def problem(tx: Transaction, login: str, key: str | None = None) -> str | None:
    """Why nothing counts that is decided under this log-in, or signed with this public key."""
    if not bare(login):
        return "a decision needs the name of its reviewer: one that can be seen"
    used = tx.get("logins", folded(login))
    signed = None if key is None else tx.get("logins", _KEY + key)
    person = tx.get("people", person_of(tx, login, key) or "")
    ended = person is not None and person["revoked_at"] is not None
    if ended or any(row is not None and _is_revoked(tx, row) for row in (used, signed)):
        return f"{short(login)} is revoked: decide under another log-in"
    until = None if signed is None else signed["valid_until"]
    if until is not None and tx.now >= until:
        return f"the key of {short(login)} is out of its time: sign with a newer one"
    return None


def key_of(signature: str | None) -> str | None:
    """The public key that a signature names; the executor compares it with the one it pins."""
    try:
        public = json.loads(signature or "{}").get("public")
    except (ValueError, AttributeError):
        return None
    return public if isinstance(public, str) else None


def reviewer_of(tx: Transaction, reviewer: str, signer: str, key: str) -> str:
    """Whose decision it is that is signed with a key: the reviewer's only if the key is theirs."""
    whose = person_of(tx, _KEY + signer, key)
    if person_of(tx, reviewer) == whose:
        return reviewer
    person = tx.get("people", whose or "")
    return _KEY + (signer if person is None else str(person["name"]))


def signature_problem(
    tx: Transaction, reviewer: str, signer: str, key: str, at: float
) -> str | None:
    """Why what a reviewer signed then (by the store's clock) does not count; `None` if it does."""
    if person_of(tx, reviewer) != person_of(tx, _KEY + signer, key):
        return f"is signed by {short(signer)}, and names {short(reviewer)}"
    row = tx.get("logins", _KEY + key)
    if row is None:
        return None
    if _is_revoked(tx, row):
        return "was signed with a key that is revoked"
    if not row["created_at"] <= at <= (row["valid_until"] or at):
        return "was signed with a key outside of its time"
    return None


def authority(tx: Transaction, login: str) -> Authority | None:
    """What the person of exactly this log-in may do; `None` for one that nobody linked."""
    row = tx.get("logins", folded(login))
    if row is None:
        return None
    theirs = tx.select("memberships", {"person_id": row["person_id"]})
    return Authority(
        person=row["person_id"],
        roles={each["tenant"]: each["role"] for each in theirs},
        revoked=_is_revoked(tx, row),
    )


def add(tx: Transaction, name: str, *, by: str) -> Row | Refusal:
    """Add a person; names that look the same are one person's."""
    known = bare(name)
    if not known or ":" in folded(name) or len(name) > _LONGEST:
        return Refusal(
            reason=f"{short(name)!r} is no name for a person: use up to {_LONGEST} visible"
            " characters without a colon"
        )
    if taken := _owner(tx, known):
        return Refusal(
            reason=f"{short(name)} is {taken['name']} already: names are compared without case"
        )
    row: Row = {"id": f"psn_{secrets.token_hex(6)}", "name": name.strip(), "folded": known}
    row |= {"created_at": tx.now, "revoked_at": None}
    tx.insert("people", row)
    _add_login(tx, row, _NAMED + known, known)
    facts = {"person": row["id"], "name": row["name"], "reviewer": by}
    ledger.append(tx, UPKEEP, "person-added", None, facts)
    return row


def link(
    tx: Transaction,
    who: str,
    *,
    logins: Sequence[str] = (),
    key: str | None = None,
    valid_for: float | None = None,
    rotate: bool = False,
    roles: Mapping[str, str] | None = None,
    by: str,
) -> Row | Refusal:
    """Give a person log-ins, a signing key (`valid_for` seconds), and roles in tenants.

    With `rotate` the person's other keys end now: what they signed before still counts.
    """
    person = find(tx, who)
    if person is None:
        return Refusal(reason=f"no person {short(who)}; `agent-adapter people list` shows all")
    refused = _cannot_link(tx, person, logins, key) or _no_role(roles or {})
    if refused is not None:
        return refused
    facts = {"person": person["id"], "logins": list(logins), "key": key, "reviewer": by}
    ledger.append(tx, UPKEEP, "person-linked", None, facts)
    for login in logins:
        _add_login(tx, person, folded(login), bare(login))
    if rotate:
        _end_keys(tx, person)
    if key is not None:
        until = None if valid_for is None else tx.now + valid_for
        _add_login(tx, person, _KEY + key, None, public_key=key, valid_until=until)
    for tenant, role in (roles or {}).items():
        _give_role(tx, person, tenant, role, by)
    return person


def revoke(tx: Transaction, which: str, *, by: str) -> Row | Refusal:
    """Revoke a person, one log-in (`token:kim`) or one key (`key:ed25519:…`).

    They stay known: what they decided is still theirs, and a name is not free for somebody else.
    """
    login = tx.get("logins", which) or tx.get("logins", folded(which))
    if login is None or login["login"].startswith(_NAMED):
        person = find(tx, which)
        if person is None:
            return Refusal(
                reason=f"no person or log-in {short(which)}; `agent-adapter people list`"
            )
        table, key = "people", {"id": person["id"]}
    else:
        person = tx.get("people", login["person_id"]) or {}
        table, key = "logins", {"login": login["login"]}
    if not tx.update(table, key | {"revoked_at": None}, {"revoked_at": tx.now}):
        return Refusal(reason=f"{short(which)} is revoked already")
    facts = {"person": person["id"], "which": which, "reviewer": by}
    ledger.append(tx, UPKEEP, "person-revoked", None, facts)
    return person


def allowed(
    tx: Transaction, login: str, roles: Mapping[str, str], *, at_most: bool
) -> dict[str, str]:
    """The role of a log-in in each tenant, from the `roles` that it has of its own.

    Those of a linked person take their place; with `at_most` none becomes more than its own.
    """
    known = authority(tx, login)
    if known is None or not (known.roles or known.revoked):
        return dict(roles)
    given = {} if known.revoked else {t: r for t, r in known.roles.items() if r in ROLES}
    if not at_most:
        return given
    both = roles.keys() & given.keys()
    return {each: min(roles[each], given[each], key=ROLES.index) for each in roles if each in both}


def find(tx: Transaction, who: str) -> Row | None:
    """The person with that id, or to whom that name belongs."""
    return tx.get("people", who) or _owner(tx, bare(who))


def people(tx: Transaction) -> list[Row]:
    """Every person, oldest first, with `logins` and `roles`."""
    return [
        row
        | {
            "logins": tx.select("logins", {"person_id": row["id"]}, order_by="created_at"),
            "roles": {
                each["tenant"]: each["role"]
                for each in tx.select("memberships", {"person_id": row["id"]}, order_by="tenant")
            },
        }
        for row in tx.select("people", order_by="created_at")
    ]


def _owner(tx: Transaction, name: str) -> Row | None:
    known = tx.select("logins", {"name": name}, limit=1)
    return tx.get("people", known[0]["person_id"]) if known else None


def _is_revoked(tx: Transaction, login: Row) -> bool:
    if login["revoked_at"] is not None:
        return True
    person = tx.get("people", login["person_id"])
    return person is None or person["revoked_at"] is not None


def _cannot_link(
    tx: Transaction, person: Row, logins: Sequence[str], key: str | None
) -> Refusal | None:
    if person["revoked_at"] is not None:
        return Refusal(reason=f"{person['name']} is revoked: add a person of another name")
    if key is not None and (owned := tx.get("logins", _KEY + key)) is not None:
        return Refusal(reason=f"the key belongs to {owned['person_id']} already; make a new one")
    refused = (_no_login(tx, person, each) for each in logins)
    return next((each for each in refused if each is not None), None)


def _end_keys(tx: Transaction, person: Row) -> None:
    theirs = {"person_id": person["id"], "public_key !=": None, "revoked_at": None}
    for old in tx.select("logins", theirs):
        until = min(tx.now, old["valid_until"] or tx.now)
        tx.update("logins", {"login": old["login"]}, {"valid_until": until})


def _no_login(tx: Transaction, person: Row, login: str) -> Refusal | None:
    source, colon, name = folded(login).partition(":")
    if (
        not colon
        or not source
        or not bare(name)
        or len(login) > _LONGEST
        or source in ("key", "name")
    ):
        return Refusal(
            reason=f"{short(login)!r} is no log-in: write os:NAME, token:NAME or proxy:NAME (a key"
            " is given with --key)"
        )
    owner = _owner(tx, bare(login))
    if owner is not None and owner["id"] != person["id"]:
        return Refusal(
            reason=f"{short(login)} has the name of {owner['name']}: log-ins of equal names are one"
            " person"
        )
    return None


def _no_role(roles: Mapping[str, str]) -> Refusal | None:
    wrong = sorted(set(roles.values()) - {*ROLES, "none"})
    if not wrong:
        return None
    return Refusal(reason=f"no role {wrong[0]!r}; there are {', '.join(ROLES)}, none")


def _add_login(
    tx: Transaction,
    person: Row,
    login: str,
    name: str | None,
    *,
    public_key: str | None = None,
    valid_until: float | None = None,
) -> None:
    row: Row = {"login": login, "person_id": person["id"], "name": name, "created_at": tx.now}
    row |= {"public_key": public_key, "valid_until": valid_until, "revoked_at": None}
    if not tx.insert("logins", row):
        tx.update("logins", {"login": login}, {"revoked_at": None})


def _give_role(tx: Transaction, person: Row, tenant: str, role: str, by: str) -> None:
    key = {"person_id": person["id"], "tenant": tenant}
    # `none` is kept: without any role a log-in would only be limited by its own.
    if not tx.insert("memberships", key | {"role": role, "at": tx.now}):
        tx.update("memberships", key, {"role": role, "at": tx.now})
    facts = {"person": person["id"], "role": role, "reviewer": by}
    ledger.append(tx, chain_of_people(tenant), "role-given", None, facts)
