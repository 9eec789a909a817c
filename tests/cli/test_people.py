"""`agent-adapter people`."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run


def test_a_person_has_log_ins_keys_and_roles(run: Run) -> None:
    """All of them are listed; a key is shown by its public half."""
    run("keys", "create", "kim.key")
    assert run("people", "add", "Kim Lee").code == 0
    linked = run("people", "link", "Kim Lee", "os:Kim", "token:k.lee", "--role", "approver")
    assert linked.code == 0, linked
    assert run("people", "link", "kim lee", "--key", "kim.key.pub", "--valid-for", "90d").code == 0
    (kim,) = run("people", "list", "--json").json
    assert [each["login"] for each in kim["logins"]][:2] == ["os:kim", "token:k.lee"]
    assert kim["logins"][2]["login"].startswith("key:ed25519:") and kim["roles"] == {"": "approver"}
    shown = run("people", "list").out
    assert "os:kim" in shown and "approver of (none)" in shown and "(ends)" in shown


def test_a_linked_log_in_cannot_decide_the_persons_own_call(run: Run, held: str) -> None:
    """And one that is revoked decides nothing at all."""
    run("people", "add", "Ana")
    run("people", "link", "Ana", "token:boss")
    assert run("people", "revoke", "Ana", "--json").json["revoked"] == "Ana"
    ran = run("approvals", "approve", held)
    assert ran.code == 1 and "os:ana is revoked" in ran.err
    assert "revoked" in run("people", "list").out


def test_rotating_ends_the_other_keys(run: Run, held: str) -> None:
    """The old key signs nothing more."""
    run("people", "add", "ana")
    for n, more in ((1, ()), (2, ("--rotate",))):
        run("keys", "create", f"ana{n}.key")
        assert run("people", "link", "ana", "--key", f"ana{n}.key.pub", *more).code == 0
    old = run("approvals", "approve", held, "--key", "ana1.key")
    assert old.code == 1 and "out of its time" in old.err
    assert run("approvals", "approve", held, "--key", "ana2.key").code == 0


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("add", "\u200b"), 1, "no name for a person"),
        (("link", "bob", "os:bob"), 1, "no person bob"),
        (("link", "ana"), 2, "nothing to link"),
        (("link", "ana", "bob"), 1, "no log-in"),
        (("link", "ana", "os:x", "--rotate"), 2, "need the new key"),
        (("link", "ana", "--key", "no.pub"), 1, "cannot be read"),
        (("link", "ana", "--key", "shop.py"), 1, "no Ed25519 public key"),
        (("link", "ana", "--key", "no.pub", "--valid-for", "0d"), 2, "write 90d"),
        (("revoke", "bob"), 1, "no person or log-in"),
    ],
)
def test_bad_input_is_one_line(run: Run, args: tuple[str, ...], code: int, said: str) -> None:
    """Each refusal names the thing, and nothing changes."""
    run("people", "add", "ana")
    before = run("people", "list", "--json").out
    ran = run("people", *args)
    assert ran.code == code, ran
    assert said in ran.err and len(ran.err.splitlines()) == 1
    assert run("people", "list", "--json").out == before
    assert Path("shop.py").exists()
