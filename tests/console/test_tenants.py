"""Whose records a person sees: the tenants of their token, or of their log-in at the proxy."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

import agent_adapter as aa
from agent_adapter.console import TrustedProxy, create_app
from agent_adapter.store import access, people
from agent_adapter.store.base import Transaction
from agent_adapter.store.sqlite import SqliteStore
from tests.console._shop import ORIGIN, Browser, ShopConsole

pytestmark = pytest.mark.anyio


async def ask(shop: ShopConsole, tenant: str) -> str:
    """The id of a record of the tenant that waits."""
    ctx = aa.ToolContext(run_id="run_1", principal="ann", tenant=tenant)
    with pytest.raises(aa.ApprovalPending) as caught:
        await shop.executor.run("refund", {"order": tenant, "amount": 5}, ctx=ctx)
    return caught.value.id


async def token(store: SqliteStore, *tenants: str, role: str = "admin", name: str = "kim") -> str:
    """A token of these tenants."""
    secret = access.new_secret()
    made = await store.write(
        lambda tx: access.create_token(tx, name, role, secret, tenants=tenants)
    )
    assert isinstance(made, dict), made
    return secret


async def link(store: SqliteStore, login: str, **roles: str) -> None:
    """Kim with this log-in and these roles."""

    def op(tx: Transaction) -> Any:
        people.add(tx, "kim", by="os:ana")
        return people.link(tx, "kim", logins=[login], roles=roles, by="os:ana")

    assert isinstance(await store.write(op), dict)


def bot(shop: ShopConsole, secret: str, **headers: str) -> Any:
    """A program with the token."""
    bearer = {"authorization": f"Bearer {secret}"} | headers
    return TestClient(shop.app, base_url=f"{ORIGIN}/api/v1", headers=bearer)


def names(client: Any) -> list[str]:
    """The orders of the records that wait."""
    found = client.get("/approvals").json()["approvals"]
    return [each["arguments"]["order"] for each in found]


async def test_a_token_of_several_tenants_chooses_one(store: SqliteStore) -> None:
    """By a header in the API, by a form in the console; never all of them at once."""
    shop = ShopConsole(store)
    ids = {tenant: await ask(shop, tenant) for tenant in ("acme", "beta", "corp")}
    secret = await token(store, "beta", "acme")
    assert names(bot(shop, secret)) == ["acme"]
    beta = {"agent-adapter-tenant": "beta"}
    assert names(bot(shop, secret, **beta)) == ["beta"]
    assert bot(shop, secret, **beta).get("/me").json()["tenants"] == ["acme", "beta"]
    browser = Browser(shop.client(), secret)
    assert browser.get(f"/approvals/{ids['acme']}").status_code == 200
    assert browser.get(f"/approvals/{ids['beta']}").status_code == 404
    assert browser.post("/tenant", {"tenant": "beta"}).status_code == 303
    assert browser.get(f"/approvals/{ids['acme']}").status_code == 404
    assert browser.decide(ids["beta"]).status_code == 303


@pytest.mark.parametrize("tenant", ["corp", "nowhere", "", "ACME", "acme "])
async def test_a_tenant_that_the_token_lacks_is_refused(store: SqliteStore, tenant: str) -> None:
    """In the same words whether there is such a tenant or not."""
    shop = ShopConsole(store)
    await ask(shop, "corp")
    secret = await token(store, "acme", "beta")
    if tenant == tenant.strip():  # a header's value loses its spaces on the way
        answer = bot(shop, secret, **{"agent-adapter-tenant": tenant}).get("/approvals")
        assert (answer.status_code, answer.json()["error"]["kind"]) == (403, "tenant")
        assert answer.json()["error"]["message"].replace(repr(tenant), "") == (
            "this token does not belong to the tenant "
        )
    browser = Browser(shop.client(), secret)
    assert browser.post("/tenant", {"tenant": tenant}).status_code == 403


async def test_a_console_of_one_tenant_takes_its_tokens_only(store: SqliteStore) -> None:
    """A token of another is as good as none."""
    shop = ShopConsole(store, tenant="acme")
    mine, other = await token(store, "acme", "beta"), await token(store, "beta", name="lee")
    assert bot(shop, mine).get("/me").json()["tenants"] == ["acme"]
    assert bot(shop, other).get("/me").status_code == 401


async def test_a_token_of_an_earlier_version_has_the_tenant_of_its_console(
    store: SqliteStore,
) -> None:
    """Without one, it sees records without a tenant."""
    secret = access.new_secret()
    await store.write(lambda tx: access.create_token(tx, "old", "admin", secret))
    for shop, tenant in ((ShopConsole(store), ""), (ShopConsole(store, tenant="acme"), "acme")):
        assert bot(shop, secret).get("/me").json()["tenants"] == [tenant]


async def test_a_linked_person_limits_the_token(store: SqliteStore) -> None:
    """In each tenant the lower role counts; without a role there is no access."""
    shop = ShopConsole(store)
    secret = await token(store, "acme", "beta", "corp", role="approver")
    await link(store, "token:kim", acme="viewer", beta="admin")
    assert bot(shop, secret).get("/me").json()["tenants"] == ["acme", "beta"]
    for tenant, role in (("acme", "viewer"), ("beta", "approver")):
        mine = bot(shop, secret, **{"agent-adapter-tenant": tenant})
        assert mine.get("/me").json()["role"] == role


async def test_a_session_ends_with_the_role_or_the_person(store: SqliteStore) -> None:
    """At the next request."""
    shop = ShopConsole(store)
    browser = Browser(shop.client(), await token(store, "acme"))
    assert browser.get("/approvals").status_code == 200
    await link(store, "token:kim", acme="none")
    assert browser.get("/approvals").status_code == 303


@pytest.mark.parametrize("which", ["kim", "token:kim"])
async def test_a_revoked_person_has_no_access(store: SqliteStore, which: str) -> None:
    """Their token opens nothing."""
    shop = ShopConsole(store)
    secret = await token(store, "acme")
    await link(store, "token:kim")
    assert bot(shop, secret).get("/me").status_code == 200
    await store.write(lambda tx: people.revoke(tx, which, by="os:ana"))
    assert bot(shop, secret).get("/me").status_code == 401


async def test_a_linked_proxy_name_has_the_roles_of_the_person(store: SqliteStore) -> None:
    """In the person's tenants; others have the proxy's role for records without a tenant."""
    shop = ShopConsole(store)
    id = await ask(shop, "acme")
    proxy = TrustedProxy(peers=["127.0.0.1"], role="viewer")
    shop.app = create_app(store, trusted_proxy=proxy)
    await link(store, "proxy:kim", acme="approver")
    for name, status in (("kim", 200), ("lee", 404)):
        client = shop.client(client=("127.0.0.1", 1), headers={"x-forwarded-user": name})
        assert client.get(f"/approvals/{id}").status_code == status
        assert client.get(f"/approvals/{id}").status_code == status


async def test_a_token_belongs_to_some_tenant(store: SqliteStore) -> None:
    """An empty list is refused."""
    made = await store.write(
        lambda tx: access.create_token(tx, "kim", "admin", "aat_x", tenants=[])
    )
    assert "no tenant" in made.reason  # type: ignore[union-attr]  # it is a refusal
