"""Rules: what is taken, what is refused, what is hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_adapter.notify.rules import (
    DEFAULT_EVENTS,
    RuleInvalid,
    expanded,
    masked,
    read_rules,
    rule_of,
)

HOOK = {"name": "ops", "to": "https://example.org/hook"}


def test_a_file_has_rules(tmp_path: Path) -> None:
    """`[[rule]]` tables in TOML, the same in JSON."""
    (tmp_path / "r.toml").write_text(
        '[[rule]]\nname = "ops"\nto = "https://example.org/hook"\nevents = ["waiting"]\n'
        'tools = "refund"\nbefore = "30m"\ntenant = "acme"\n'
        '[[rule]]\nname = "all"\nto = "https://example.org/hook"\ntenant = "*"\n'
    )
    (tmp_path / "r.json").write_text(
        '{"rule": [{"name": "ops", "to": "https://example.org/hook", "before": 60}]}'
    )
    first, second = read_rules(tmp_path / "r.toml")
    assert (first.events, first.tools, first.before) == (("waiting",), ("refund",), 1800.0)
    assert (first.tenant, second.tenant, second.events) == ("acme", None, DEFAULT_EVENTS)
    assert read_rules(tmp_path / "r.json")[0].before == 60.0


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "a b"}, "no name for a rule"),
        ({"to": "hook"}, "`to` is no URL"),
        ({"events": ["wating"]}, "no event wating"),
        ({"events": []}, "is named"),
        ({"event": ["waiting"]}, "no field event"),
        ({"tools": [1]}, "`tools` is not a list of texts"),
        ({"before": "soon"}, "write 30m"),
        ({"before": True}, "`before` is not a time"),
        ({"before": "0m"}, "up to 30 days"),
        ({"details": "no"}, "`details` is str, not bool"),
        ({"person": 3}, "`person` is int"),
    ],
)
def test_a_bad_rule_names_the_field(fields: dict[str, Any], said: str) -> None:
    """Unknown fields and events are refused, not ignored."""
    with pytest.raises(RuleInvalid, match=said):
        rule_of(HOOK | fields)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rule = 3", "has no rules"),
        ("[[rule]]\nname = 'a'", "no to"),
        ("[[rule]]\nname='a'\nto='x://y'\n[[rule]]\nname='a'\nto='x://y'", "called a"),
        ("[[rule]\n", "neither TOML"),
        ("x = 1\n[[rule]]\nname='a'\nto='x://y'", "only"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    """The error has the file, the reason and the fix."""
    file = tmp_path / "r.toml"
    file.write_text(text)
    with pytest.raises(RuleInvalid, match=said) as caught:
        read_rules(file)
    assert "r.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.slack.com/services/T1/B2/SECRET", "https://hooks.slack.com/…"),
        ("https://kim:pass@example.org/x?token=1", "https://example.org/…"),
        ("smtp://u:p@mail.example:25?from=a@x&to=b@y", "smtp://mail.example/…"),
        ("tgram://123456:SECRET/chat", "tgram://…/…"),
        ("https://example.org", "https://example.org"),
    ],
)
def test_an_address_is_shown_without_secrets(url: str, shown: str) -> None:
    """A path, a password, a query and a service's token are hidden."""
    assert masked(url) == shown


def test_variables_are_of_the_environment() -> None:
    """`${NAME}` is replaced when it is sent; one that is not set is named."""
    assert expanded("https://x/${A}", {"A": "1"}) == "https://x/1"
    with pytest.raises(RuleInvalid, match="variable B is not set"):
        expanded("${B}", {})
