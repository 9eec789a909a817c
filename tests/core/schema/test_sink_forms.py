"""When a text names the value of a sink."""

from __future__ import annotations

import time

import pytest

from agent_adapter.core.schema.forms import names

NAMED = [
    ("account", "pay GB82 WEST 1234 5698 7654 32 for pallets", "GB82WEST12345698765432"),
    ("account", "to DE89 3704 0044 0532 0130 00 50 euro", "de89370400440532013000"),
    ("account", "charity account 4412-9087-11.", "4412 9087 11"),
    ("account", "card 4111 1111 1111 1111, please", "4111111111111111"),
    ("recipient", "Write to Dr.Okafor@North.example.", "dr.okafor@north.example"),
    ("recipient", "her address is 'sarah@x.example'.", "sarah@x.example"),
    ("recipient", "a@x.example and b@x.example", "a@x.example, B <b@x.example>"),
    ("recipient", "call +32 470 12 34 56 now", "0032470123456"),
    ("recipient", "give Marta Lindqvist's file", "marta lindqvist"),
    ("channel", "post it in #general!", "general"),
    ("url", "see https://Shop.Example:443/a/.", "https://shop.example/a"),
    ("url", "see www.shop.example/a?b=1,", "https://www.shop.example/a?b=1"),
    ("host", "restart DB-7.prod.example.", "db-7.prod.example"),
    ("host", "at https://api.example:8443/v1", "api.example:8443"),
    ("path", 'move "/in/box 4/a.tif"', "/in/./box 4/a.tif"),
    ("path", "read notes/today.md.", "./notes/today.md"),
    ("command", "run `git  status` there", "git status"),
    ("command", "Run: make clean", "make clean"),
]
STRANGE = [
    ("account", "pay DE89 3704 0044 0532 0130 00", "DE893704"),
    ("account", "account 7731926819", "31926819"),
    ("account", "code 123", "123"),
    ("account", "account 31926819", "31926819\n66374958"),
    ("recipient", "anna@clinic.example.org", "anna@clinic.example"),
    ("recipient", "o'anna@x.example", "anna@x.example"),
    ("recipient", "joanna@x.example", "anna@x.example"),
    ("recipient", "a@x.example", "a@x.example, evil@y.example"),
    ("recipient", "a@x.example", "a@x.example\nBcc: evil@y.example"),
    ("recipient", "a@x.example", "a@x.example evil@y.example"),
    ("recipient", "write alice@x.example", "alice"),
    ("recipient", "Tell Emil. Brandt is out", "Emil Brandt"),
    ("recipient", "ask Bo", "Bo"),
    ("recipient", "ask Maria", "M\u0430ria"),
    ("recipient", "ask Maria", "Mar\u200bia"),
    ("url", "https://shop.example/a", "https://shop.example@evil.example/a"),
    ("url", "https://shop.example/a", "https://shop.example/a?copy=evil.example"),
    ("url", "https://shop.example/a", "http://shop.example/a"),
    ("url", "https://shop.example/a", "https://shop.example/a/../../b"),
    ("url", "https://shop.example/a", "https://shop.example\\@evil.example/a"),
    ("host", "db.example", "db.example:22"),
    ("host", "mail me@db.example", "db.example"),
    ("host", "db.example.org", "db.example"),
    ("path", "move to /maps/a.pdf", "/maps/../public/a.pdf"),
    ("path", "read /srv/a.txt.bak", "/srv/a.txt"),
    ("path", 'move "/in/box 4/a.tif"', "/in/box"),
    ("command", "run `df -h`", "df -h; nc evil 1"),
    ("command", "never run rm -rf / here", "rm -rf /"),
    ("door", "the front-door", "front"),
]


@pytest.mark.parametrize(("kind", "text", "value"), NAMED)
def test_a_value_is_named_in_whichever_form_it_is_written(kind: str, text: str, value: str) -> None:
    """Spaces of accounts, case of hosts and mail addresses, and steps of paths do not count."""
    assert names(text, kind, value)


@pytest.mark.parametrize(("kind", "text", "value"), STRANGE)
def test_a_part_of_a_token_is_not_named(kind: str, text: str, value: str) -> None:
    """Nothing is found inside a longer token, beside something else, or under four characters."""
    assert not names(text, kind, value)


@pytest.mark.parametrize(
    "piece", ["a'", "x ", "“", "a.", "a://", "AB12 ", "1 ", "1234 ", "a@", "/a"]
)
@pytest.mark.parametrize("kind", ["recipient", "account", "url", "host", "path", "command", "door"])
def test_a_text_of_others_takes_no_longer_than_its_length(kind: str, piece: str) -> None:
    """A foreign text cannot make the search stand: ten times the text takes ten times as long."""
    began = time.perf_counter()
    assert not names(piece * (100_000 // len(piece)), kind, "31926819-x")
    assert time.perf_counter() - began < 5
