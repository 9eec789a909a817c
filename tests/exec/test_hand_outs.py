"""Whoever gets a value passes the guards, and a cached value is of the call that it is given to."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest

import agent_adapter as aa
from agent_adapter.core.errors import GuardrailBlocked, ToolDefinitionError
from agent_adapter.core.types import CachePolicy
from agent_adapter.exec import ledger
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.scope import RunScope, current_scope
from tests.exec.kit import check_guard
from tests.exec.shop import ARGS, Till, in_run, no_key, rows, until

pytestmark = pytest.mark.anyio


class Redactor:
    """Hides a word in every result."""

    def after(self, call: Any, result: Any) -> Any:
        """The result without it."""
        return result.replace("secret", "***")


class Withholder:
    """Keeps every result back."""

    async def after(self, call: Any, result: Any) -> Any:
        """Nothing comes through."""
        raise GuardrailBlocked("not for you")


class Stamp:
    """A guard that is not idempotent."""

    def after(self, call: Any, result: Any) -> Any:
        """The result with one more line."""
        return f"{result}\nchecked"


def cached(then: Any = "a secret") -> Till:
    """A read that everybody shares."""
    return Till(then, effects="read", cache=CachePolicy(scope="global"), cache_key=no_key)


async def test_i18_a_cached_value_passes_the_guards_of_whoever_gets_it(store: Any) -> None:
    """I18: the second caller's redactor sees what the first caller's run has kept."""
    till, strict = cached(), Executor(store=store, hooks=[Redactor()])
    assert await Executor(store=store).run_spec(till.spec, ARGS, in_run("a")) == "a secret"
    assert await strict.run_spec(till.spec, ARGS, in_run("b")) == "a ***"
    assert len(till.ran) == 1
    (row,) = await rows(store, run_id="b")
    kept = await store.read(lambda tx: tx.get("payloads", row["result"]))
    assert b"secret" not in kept["data"]


async def test_i18_a_cached_value_that_is_withheld_is_recorded_as_such(store: Any) -> None:
    """I18: its call has a row, and its value is not in it."""
    till = cached()
    await Executor(store=store).run_spec(till.spec, ARGS, in_run("a"))
    with pytest.raises(GuardrailBlocked, match="withheld: not for you"):
        await Executor(store=store, hooks=[Withholder()]).run_spec(till.spec, ARGS, in_run("b"))
    (row,) = await rows(store, run_id="b")
    assert (row["ending"], row["error_kind"], row["result"]) == ("ok", "guardrail-blocked", None)


async def test_i18_a_shared_execution_passes_the_guards_of_each_scope(store: Any) -> None:
    """I18: two calls in flight, and the second one's run has a guard of its own."""
    gate = asyncio.Event()

    async def found() -> str:
        await gate.wait()
        return "a secret"

    till, executor = cached(found), Executor(store=store)

    async def guarded() -> Any:
        current_scope.set(RunScope(run_id="b", guards=(Redactor(),)))
        return await executor.run_spec(till.spec, ARGS)

    first = asyncio.create_task(executor.run_spec(till.spec, ARGS, in_run("a")))
    await until(lambda: bool(till.ran))
    second = asyncio.create_task(guarded())
    for _ in range(10):
        await asyncio.sleep(0)
    gate.set()
    assert (await first, await second, len(till.ran)) == ("a secret", "a ***", 1)


async def test_i18_a_replayed_value_passes_the_guards_of_today(store: Any) -> None:
    """I18: a redactor that is added before a replay holds for what was recorded without it."""
    till = Till("a secret", once_key=lambda args: "k")
    await Executor(store=store).run_spec(till.spec, ARGS, in_run("a"))
    strict = Executor(store=store, hooks=[Redactor()])
    assert await strict.run_spec(till.spec, ARGS, in_run("b")) == "a ***"
    with pytest.raises(GuardrailBlocked):
        await Executor(store=store, hooks=[Withholder()]).run_spec(till.spec, ARGS, in_run("c"))
    assert len(till.ran) == 1


async def test_i18_a_resumed_value_passes_the_guards_of_today(store: Any) -> None:
    """I18: a second `resume` gives the recorded outcome, guarded."""
    till, registry = Till("a secret", confirm=True), aa.ToolRegistry()
    registry.add(till.spec)
    port = aa.DeferredApproval(store)
    with pytest.raises(aa.ApprovalPending) as held:
        await Executor(registry, store=store, approval=port).run("charge", ARGS, ctx=in_run())
    await aa.Inbox(store).approve(held.value.id, reviewer="ann")
    assert await Executor(registry, approval=port).resume(held.value.id) == "a secret"
    strict = Executor(registry, approval=port, hooks=[Redactor()])
    assert await strict.resume(held.value.id) == "a ***"


async def test_a_replayed_untrusted_value_taints_whoever_gets_it(store: Any) -> None:
    """A write that happens once over all runs labels each run that reads its result."""
    page = Till("text", trust="untrusted", once_key=lambda args: "k")
    asking = Till(confirm="tainted")
    executor = Executor(store=store)
    for run in "ab":
        await executor.run_spec(page.spec, ARGS, in_run(run))
        with pytest.raises(aa.ApprovalDenied, match="the run has read charge"):
            await executor.run_spec(asking.spec, ARGS, in_run(run))
    assert (await ledger.verify(store)).ok


def test_the_kit_finds_a_guard_that_is_not_idempotent() -> None:
    """It says what the guard made of its own result."""
    spec = Till().spec
    check_guard(Redactor(), spec, ["a secret", ""])
    check_guard(Withholder(), spec, ["x"])
    with pytest.raises(AssertionError, match=r"Stamp\.after is not idempotent"):
        check_guard(Stamp(), spec, ["x"])


# -- what a cached result depends on -------------------------------------------------------------


def test_a_cache_that_could_mix_callers_is_refused() -> None:
    """With a context or a dependency the arguments are not all that a result depends on."""

    def with_context(ctx: aa.ToolContext) -> str:
        """Say who calls."""
        return str(ctx.principal)

    def with_dependency(rows: Annotated[dict[str, str], aa.Depends(dict)]) -> str:
        """Look."""
        return str(rows)

    for fn, name in ((with_context, "ctx"), (with_dependency, "rows")):
        with pytest.raises(ToolDefinitionError, match=f"'{name}' needs cache_key="):
            aa.ToolSpec.from_function(fn, effects="read", cache=CachePolicy())


async def test_a_cache_key_tells_results_apart(store: Any) -> None:
    """What it gives is part of the key, beside the arguments."""
    spoken: list[str] = []

    def greet(name: str, ctx: aa.ToolContext) -> str:
        """Greet in the caller's language."""
        spoken.append(ctx.extras["language"])
        return f"{ctx.extras['language']}: {name}"

    spec = aa.ToolSpec.from_function(
        greet,
        effects="read",
        cache=CachePolicy(scope="global"),
        cache_key=lambda args, ctx: ctx.extras["language"],
    )
    executor = Executor(store=store)
    for language in ("en", "de", "en"):
        context = aa.ToolContext(run_id="r", extras={"language": language})
        assert await executor.run_spec(spec, {"name": "Kim"}, context) == f"{language}: Kim"
    assert spoken == ["en", "de"]


@pytest.mark.parametrize("key", [lambda args, ctx: 7, lambda args, ctx: ctx.extras["none"]])
async def test_a_cache_key_that_fails_is_an_error(store: Any, key: Any) -> None:
    """It names the tool; nothing runs."""
    till = Till(effects="read", cache=CachePolicy(), cache_key=key)
    with pytest.raises(ToolDefinitionError, match=r"tool 'charge': cache_key (gave 7|raised Key)"):
        await Executor(store=store).run_spec(till.spec, ARGS, in_run())
    assert till.ran == []
