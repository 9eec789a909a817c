"""Admins manage people, log-ins, roles, keys and tokens in the console."""

from __future__ import annotations

import html
import re
from functools import partial
from typing import Any

import pytest

from agent_adapter.store import access, people
from agent_adapter.store.base import Transaction
from agent_adapter.store.sqlite import SqliteStore
from tests.console._shop import Browser, ShopConsole

pytestmark = pytest.mark.anyio


async def test_a_token_is_made_shown_once_and_revoked(shop: ShopConsole) -> None:
    """Its holder signs in with it, and is signed out when it is revoked."""
    ada = await shop.browser("ada", "admin")
    made = ada.post("/tokens/create", {"name": "kim", "role": "approver"})
    secret = html.unescape(re.findall(r">(aat_[^<]+)<", made.text)[0])
    assert secret not in ada.get("/people").text
    kim = Browser(shop.client(), secret)
    assert kim.get("/people").status_code == 403
    id = re.findall(r"<td>(tok_\w+)</td><td>kim", ada.get("/people").text)[0]
    assert ada.post("/tokens/revoke", {"id": id}).status_code == 303
    assert kim.get("/approvals").status_code == 303
    rows = await shop.store.read(lambda tx: tx.select("ledger", {"kind": "token-created"}))
    assert b"token:ada" in rows[-1]["body"]


async def test_a_person_gets_log_ins_and_roles(shop: ShopConsole) -> None:
    """As by `agent-adapter people`; a bad value changes nothing and is named."""
    ada = await shop.browser("ada", "admin")
    assert ada.post("/people/add", {"name": "Kim Lee"}).status_code == 303
    form = {"who": "Kim Lee", "logins": "os:kim token:kim", "role": "approver", "tenant": "acme"}
    assert ada.post("/people/link", form).status_code == 303
    wrongs = {"key": "public key", "logins": "no log-in", "days": "days", "role": "no role"}
    for wrong, said in wrongs.items():
        answer = ada.post("/people/link", {"who": "Kim Lee", wrong: "what?"})
        assert answer.status_code == 422 and said in answer.text, wrong
    text = ada.get("/people").text
    assert "os:kim" in text and "token:kim" in text and "approver of acme" in text
    assert ada.post("/people/revoke", {"which": "token:kim"}).status_code == 303
    [kim] = await shop.store.read(people.people)
    revoked = {each["login"] for each in kim["logins"] if each["revoked_at"]}
    assert revoked == {"token:kim"} and kim["roles"] == {"acme": "approver"}


def _admin(name: str, tenant: str, secret: str, tx: Transaction) -> Any:
    return access.create_token(tx, name, "admin", secret, tenants=[tenant])


async def test_an_admin_of_one_tenant_manages_that_tenant(store: SqliteStore) -> None:
    """Its tokens and roles; what concerns others is neither shown nor changed."""
    shop, secret = ShopConsole(store), access.new_secret()
    await store.write(partial(_admin, "ada", "acme", secret))
    await store.write(partial(_admin, "bea", "beta", access.new_secret()))
    ada = Browser(shop.client(), secret)
    text = ada.get("/people").text
    assert "<td>ada</td>" in text and "<td>bea</td>" not in text
    made = ada.post("/tokens/create", {"name": "kim", "role": "viewer", "tenants": "beta"})
    assert made.status_code == 200
    rows = {row["name"]: row for row in await store.read(access.tokens)}
    assert rows["kim"]["tenants"] == '["acme"]'
    assert ada.post("/tokens/revoke", {"id": rows["bea"]["id"]}).status_code == 422
    for path, form in (
        ("/people/add", {"name": "Eve"}),
        ("/people/revoke", {"which": "bea"}),
        ("/people/link", {"who": "bea", "logins": "token:ada"}),
        ("/writes/stop", {"reason": "x"}),
    ):
        assert ada.post(path, form).status_code == 403, path
    assert [row["revoked_at"] for row in await store.read(access.tokens)] == [None] * 3
