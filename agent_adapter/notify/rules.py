"""Rules: who is told of which events, and where."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.inert import short
from agent_adapter.store import notifications
from agent_adapter.store.base import Row, Transaction

EVENTS: Mapping[str, str] = {
    "waiting": "a request waits for a person",
    "expiring": "a request expires soon and nobody has decided",
    "in-doubt": "the outcome of a write is unknown",
    "your-turn": "it is a person's turn in a channel",
    "parked": "a turn waits for a decision",
    "channel-failed": "a turn failed for good, or a channel ran out of time",
    "chain-broken": "a channel or the ledger does not verify",
}
"""What a rule can ask for, and what it means."""

DEFAULT_EVENTS = ("waiting", "expiring", "in-doubt", "your-turn", "channel-failed", "chain-broken")
BEFORE_SECONDS = 3600.0

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_AGE = re.compile(r"(\d{1,6})([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LONGEST = 2_000


class RuleInvalid(AgentAdapterError):
    """A rule for notifications is invalid; the message names the field and the fix."""

    kind = "rule-invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyRule:
    """One rule. `${NAME}` in `to` and `secret` is an environment variable, read when it is sent.

    `tenant` `""` is that of records without one, `None` every tenant. `tools` are patterns
    (`refund`, `mail_*`); without any, every tool. `person`: only what this person can act on.
    `before`: how many seconds before a request expires `expiring` is told. Without `details` no
    arguments leave the store.
    """

    name: str
    to: str
    events: tuple[str, ...] = DEFAULT_EVENTS
    tenant: str | None = ""
    tools: tuple[str, ...] = ()
    person: str | None = None
    before: float = BEFORE_SECONDS
    secret: str | None = None
    details: bool = True

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise RuleInvalid(
                f"{short(self.name)!r} is no name for a rule: use up to 64 letters, digits and ._@-"
            )
        unknown = sorted(set(self.events) - EVENTS.keys())
        if unknown or not self.events:
            raise RuleInvalid(
                f"rule {self.name}: no event {', '.join(unknown) or 'is named'};"
                f" there are {', '.join(EVENTS)}"
            )
        if "://" not in self.to or len(self.to) > _LONGEST or not self.to.isprintable():
            raise RuleInvalid(
                f"rule {self.name}: `to` is no URL: write https://…, slack+https://…,"
                " smtp://host?from=…&to=…, or a URL of Apprise"
            )
        if not 0 < self.before <= 30 * 86_400:
            raise RuleInvalid(f"rule {self.name}: `before` is not a time of up to 30 days")

    def wants(self, event: str, tenant: str, tool: str | None) -> bool:
        """Whether the rule asks for such an event."""
        if event not in self.events or (self.tenant is not None and tenant != self.tenant):
            return False
        return not self.tools or any(fnmatchcase(tool or "", each) for each in self.tools)

    @property
    def address(self) -> str:
        """`to` for people: the path, the password and the query hidden, which may be secrets."""
        return masked(self.to)


def masked(url: str) -> str:
    """A URL without what may be a secret in it."""
    scheme, _, rest = url.partition("://")
    try:
        parts = urlsplit(f"x://{rest}")
        host = parts.hostname or ""
    except ValueError:
        return f"{scheme}://…"
    more = "…" if parts.path.strip("/") or parts.query else ""
    # Of Apprise's URLs the host may be the token.
    shown = host if scheme.split("+")[-1] in ("http", "https", "smtp", "smtps") else "…"
    return f"{scheme}://{shown}/{more}".removesuffix("/")


def expanded(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """`text` with its `${NAME}` replaced; `RuleInvalid` names a variable that is not set."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in environ:
            raise RuleInvalid(f"the environment variable {found[1]} is not set")
        return environ[found[1]]

    return _VARIABLE.sub(value, text)


def seconds_of(written: str) -> float:
    """An age such as `30m`, `2h`, `90s` or `1d` in seconds."""
    found = _AGE.fullmatch(written.strip())
    if found is None:
        raise RuleInvalid(f"{written!r} is not a time: write 30m, 2h, 90s or 1d")
    return int(found[1]) * _SECONDS[found[2]]


def rule_of(data: Mapping[str, Any]) -> NotifyRule:
    """The rule in a mapping, as in a file; a field that no rule has is refused by name."""
    known = {each.name for each in fields(NotifyRule)}
    unknown = sorted(data.keys() - known)
    if unknown:
        raise RuleInvalid(
            f"no field {', '.join(unknown)} in a rule; there are {', '.join(sorted(known))}"
        )
    missing = sorted({"name", "to"} - data.keys())
    if missing:
        raise RuleInvalid(f"a rule has no {', '.join(missing)}: give it")
    values = {name: _checked(name, value) for name, value in data.items()}
    return NotifyRule(**values)


def to_json(rule: NotifyRule) -> str:
    """The rule as the store keeps it."""
    return json.dumps({"v": 1, **asdict(rule)})


def stored_rules(tx: Transaction) -> list[NotifyRule]:
    """The rules of the store."""
    return [rule_of_row(row) for row in notifications.rules(tx)]


def rule_of_row(row: Row) -> NotifyRule:
    """The rule in a row of the store."""
    data = json.loads(row["data"])
    del data["v"]
    return rule_of(data)


def read_rules(file: Path) -> list[NotifyRule]:
    """The rules in a file: `[[rule]]` tables of TOML, or `{"rule": […]}` in JSON."""
    try:
        text = file.read_text(encoding="utf-8")
        data = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except OSError as exc:
        raise RuleInvalid(f"{file} cannot be read: {exc.strerror or exc}") from None
    except ValueError as exc:
        raise RuleInvalid(f"{file} is neither TOML nor JSON (.json): {exc}") from None
    found = data.get("rule") if isinstance(data, dict) else None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise RuleInvalid(f"{file} has no rules: write a [[rule]] table for each")
    if set(data) != {"rule"}:
        raise RuleInvalid(f"{file}: only [[rule]] tables are known, not {', '.join(data)}")
    try:
        return unique([rule_of(each) for each in found])
    except RuleInvalid as exc:
        raise RuleInvalid(f"{file}: {exc}") from None


def unique(rules: Sequence[NotifyRule]) -> list[NotifyRule]:
    """The rules, unless two have one name."""
    names = [rule.name for rule in rules]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RuleInvalid(f"two rules are called {', '.join(twice)}: rename one")
    return list(rules)


def _checked(name: str, value: Any) -> Any:
    if name in ("events", "tools"):
        several = [value] if isinstance(value, str) else value
        if not isinstance(several, (list, tuple)) or not all(isinstance(e, str) for e in several):
            raise RuleInvalid(f"`{name}` is not a list of texts")
        return tuple(several)
    if name == "before":
        if isinstance(value, str):
            return seconds_of(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise RuleInvalid("`before` is not a time: write '30m', or seconds")
        return float(value)
    if name == "tenant" and value == "*":
        return None
    if name == "details":
        wanted: type = bool
    else:
        wanted = str
    if not isinstance(value, wanted) and not (value is None and name not in ("name", "to")):
        raise RuleInvalid(f"`{name}` is {type(value).__name__}, not {wanted.__name__}")
    return value
