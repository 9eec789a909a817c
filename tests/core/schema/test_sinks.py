"""Which arguments are sinks, and what a call gives them."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel, Field, RootModel
from typing_extensions import TypedDict

import agent_adapter as aa
from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.tool import ToolSpec

Account = Annotated[str, aa.Sink("account")]


class Payee(BaseModel):
    """A payee, with further ones below."""

    account: Account = Field(alias="accountNo")
    note: str = ""
    more: list[Payee] = []


class Box(RootModel[list[Account]]):
    """A list that is a model."""


@dataclasses.dataclass
class Order:
    """An order."""

    iban: Account
    text: str = ""


class Row(TypedDict):
    """A row."""

    iban: Account | None


class Pair(NamedTuple):
    """A pair."""

    iban: Account
    text: str


def given(annotation: Any, value: Any) -> list[tuple[str, str]]:
    """The path and the text of each sink of a tool that takes `value`."""

    def send(value: Any) -> None:
        """Send."""

    send.__annotations__["value"] = annotation
    spec = ToolSpec.from_function(send, confirm="provenance")
    found = spec.sink_values(spec.validate({"value": value}))
    return [(item.path, item.text) for item in found]


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Account, "1234", [("value", "1234")]),
        (Account | None, "1234", [("value", "1234")]),
        (Annotated[int, aa.Sink("account")], 1234, [("value", "1234")]),
        (list[Account], ["1234", "5678"], [("value[0]", "1234"), ("value[1]", "5678")]),
        (Annotated[list[str], aa.Sink("account")], ["1234"], [("value", "1234")]),
        (dict[str, Account], {"a": "1234"}, [("value.a", "1234")]),
        (dict[Account, str], {"1234": "a"}, [("value.1234", "1234")]),
        (Payee, {"accountNo": "1234"}, [("value.accountNo", "1234")]),
        (
            Payee | None,
            {"accountNo": "1234", "more": [{"accountNo": "5678"}]},
            [("value.accountNo", "1234"), ("value.more[0].accountNo", "5678")],
        ),
        (Box, ["1234"], [("value[0]", "1234")]),
        (Order, {"iban": "1234"}, [("value.iban", "1234")]),
        (list[Row], [{"iban": "1234"}, {"iban": None}], [("value[0].iban", "1234")]),
        (tuple[Account, str], ["1234", "x"], [("value[0]", "1234")]),
        (Pair, ["1234", "x"], [("value[0]", "1234")]),
    ],
)
def test_a_mark_is_found_wherever_it_stands(annotation: Any, value: Any, expected: Any) -> None:
    """In unions, lists, dictionaries, tuples, models, dataclasses and typed dictionaries."""
    found = given(annotation, value)
    assert all(item in found for item in expected), found


def test_a_default_that_is_left_as_it_is_is_no_value_of_the_model() -> None:
    """The author of the tool chose it."""

    def send(to: Annotated[str, aa.Sink("recipient")] = "desk@x.example") -> None:
        """Send."""

    spec = ToolSpec.from_function(send, confirm="provenance")
    assert spec.sink_values(spec.validate({})) == []


def test_sinks_of_a_foreign_schema_are_named_by_path() -> None:
    """A path passes through lists."""
    spec = ToolSpec.from_json_schema(
        "pay",
        "Pay.",
        {"type": "object", "properties": {"rows": {"type": "array"}}},
        lambda **_: None,
        confirm="provenance",
        sinks={"rows.payee.account": "Account"},
    )
    rows = [{"payee": {"account": "1234", "name": "x"}}, {"payee": {"account": "5678"}}]
    found = spec.sink_values({"rows": rows})
    assert [(item.kind, item.text) for item in found] == [("account", "1234"), ("account", "5678")]


def test_a_mark_is_in_no_schema() -> None:
    """A model reads the same with and without it."""

    def send(to: Annotated[str, aa.Sink("recipient")]) -> None:
        """Send."""

    assert ToolSpec.from_function(send).json_schema()["properties"]["to"] == {"type": "string"}


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ({"confirm": "provenance"}, "needs an argument that decides where"),
        ({"sinks": "to"}, "maps arguments to kinds"),
        ({"sinks": {"to": "mail address"}}, "the kind of a sink is a name"),
        ({"sinks": {"": "account"}}, "names no argument"),
        ({"source": True, "trust": "untrusted"}, "nobody else writes into its results"),
        ({"source": "yes"}, "source is True or False"),
    ],
)
def test_a_wrong_declaration_is_refused(policy: dict[str, Any], text: str) -> None:
    """The error names the field, the reason and the fix."""

    def send(to: str) -> None:
        """Send."""

    with pytest.raises(ToolDefinitionError, match=text):
        ToolSpec.from_function(send, **policy)


def test_a_sink_without_a_kind_is_refused() -> None:
    """`Sink` alone says nothing."""

    def send(to: Annotated[str, aa.Sink]) -> None:
        """Send."""

    with pytest.raises(ToolDefinitionError, match="needs a kind"):
        ToolSpec.from_function(send)
    with pytest.raises(ToolDefinitionError, match="the kind of a sink is a name"):
        aa.Sink("")
