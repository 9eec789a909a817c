"""Policies of agents' own tools: their options, and which statement counts."""

from __future__ import annotations

import copy
import logging
import pickle
from typing import Annotated, Any

import pytest
from pydantic import SecretStr

import agent_adapter as aa
from agent_adapter.core.native import NativePolicies, NativeTool, NativeTools


def _spec(said: dict[str, aa.Policy] | None = None, function: Any = None) -> aa.ToolSpec:
    def run(**arguments: Any) -> None:
        """Run."""

    tool = NativeTool(function=function, description="Charge.")
    return NativePolicies(said).spec("charge", tool, run, noun="AG2", trust="trusted")


def _declared(**policy: Any) -> Any:
    @aa.ToolRegistry().tool(**policy)
    def charge(amount: int) -> None:
        """Charge."""

    return charge


def test_a_policy_says_only_what_was_given() -> None:
    """Options that were left out are not part of it."""
    assert aa.Policy(effects="write", confirm=False).stated() == {
        "effects": "write",
        "confirm": False,
    }


def test_a_policy_is_a_value() -> None:
    """It compares by its options, is copied and pickled, and cannot be changed."""
    policy = aa.Policy(timeout=3)
    assert policy == pickle.loads(pickle.dumps(policy)) == copy.copy(policy)
    with pytest.raises(AttributeError):
        policy.timeout = 4  # type: ignore[misc]  # what is refused


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"efects": "write"}, "Policy has no option 'efects' (did you mean 'effects'?)"),
        ({"effects": "writes"}, "Policy: effects is one of 'read', 'idempotent', 'write'"),
        ({"confirm": "always"}, "Policy: confirm is True, False, 'tainted'"),
        ({"timeout": -1}, "Policy: timeout is a positive"),
        (
            {"effects": "write", "retries": aa.RetryPolicy()},
            "retries on a tool with effects='write'",
        ),
        ({"cache_key": str}, "cache_key does nothing without cache"),
    ],
)
def test_an_invalid_policy_is_refused(options: dict[str, Any], said: str) -> None:
    """The error names the option and the reason."""
    with pytest.raises(aa.ToolDefinitionError) as refused:
        aa.Policy(**options)
    assert said in str(refused.value)


def test_a_native_tool_is_idempotent_by_default() -> None:
    """Its recorded outcome answers, and it may run again where there is none."""
    spec = _spec()
    assert (spec.effects, spec.confirm, spec.trust, spec.native) == (
        "idempotent",
        False,
        "trusted",
        True,
    )


def test_the_policy_for_the_tool_counts_before_the_one_for_all() -> None:
    """Option by option: what it leaves out comes from `"*"`."""
    spec = _spec({"*": aa.Policy(effects="read", timeout=3), "charge": aa.Policy(effects="write")})
    assert (spec.effects, spec.timeout) == ("write", 3)


def test_the_author_counts_before_the_policy_for_all() -> None:
    """A gate of the author's, and their effects, stay."""
    spec = _spec({"*": aa.Policy(effects="read", confirm=False)}, _declared(confirm=True))
    assert (spec.effects, spec.confirm) == ("write", True)


def test_the_policy_for_all_gates_what_the_author_said_nothing_about() -> None:
    """A default of `@tool` is not a statement against the user's."""
    assert _spec({"*": aa.Policy(confirm=True)}, _declared(effects="read")).confirm is True


def test_the_users_policy_for_the_tool_counts_before_the_author() -> None:
    """They name the tool, and know what they run."""
    spec = _spec({"charge": aa.Policy(confirm=False)}, _declared(confirm=True))
    assert spec.confirm is False


def test_secrets_of_a_decorated_function_stay_masked() -> None:
    """The ledger of a native call keeps no clear text of a parameter marked as secret."""

    @aa.ToolRegistry().tool
    def login(word: SecretStr, pin: Annotated[str, aa.Secret()]) -> None:
        """Log in."""

    shown = _spec(None, login).masked({"word": "swordfish", "pin": "sesame"}, b"k" * 32)
    assert "swordfish" not in str(shown) and "sesame" not in str(shown)


def test_a_policy_that_does_not_fit_its_tool_is_refused_when_it_is_registered() -> None:
    """`"*"` with retries cannot hold for a tool whose author says that it writes."""
    policies = NativePolicies({"*": aa.Policy(retries=aa.RetryPolicy())})
    known = NativeTools(tools={"charge": NativeTool(function=_declared())})
    with pytest.raises(aa.ToolDefinitionError, match="'charge': retries"):
        policies.check(known, "ann")


def test_a_name_that_may_come_later_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Where an agent lists some tools only while it runs, a strange name is a warning."""
    policies = NativePolicies({"charge": aa.Policy(confirm=True)})
    with caplog.at_level(logging.WARNING):
        policies.check(NativeTools(complete=False), "ann")
    assert "ann has no tool 'charge'" in caplog.text


def test_what_is_no_policy_is_refused() -> None:
    """The error shows how to write one."""
    wrong: Any = {"charge": {"effects": "write"}}
    with pytest.raises(aa.ToolDefinitionError, match=r"Policy\(effects='write'\)"):
        NativePolicies(wrong)
