"""Results survive being recorded, and every result has text for a model."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import uuid
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from agent_adapter.core.results import ResultCodec, plain_result
from agent_adapter.core.routing import Finish, Handoff


class Receipt(BaseModel):
    """A result with what JSON lacks."""

    id: uuid.UUID
    amount: Decimal
    raw: bytes = b""


@dataclasses.dataclass
class Point:
    """A result that is a dataclass."""

    x: float
    y: float


class Aliased(BaseModel):
    """A result that JSON knows under another name."""

    order: int = Field(alias="orderId")
    raw: bytes


RECEIPT = Receipt(id=uuid.UUID(int=1), amount=Decimal("1.50"), raw=b"\xff")
VALUES: list[tuple[Any, Any]] = [
    (None, 1),
    (None, 1.0),
    (None, True),
    (None, None),
    (None, "é\n"),
    (None, 2**70),
    (None, -0.0),
    (None, {"$secret": "no secret", "a": [1, 2.5, {"b": None}]}),
    (None, [math.inf, -math.inf]),
    (None, b"\xff\x00"),
    (None, Decimal("1.10")),
    (None, dt.datetime(2020, 1, 2, tzinfo=dt.UTC)),
    (None, uuid.UUID(int=3)),
    (None, {1, 2}),
    (None, {1: "a", (1, 2): "b"}),
    (int, 3),
    (bytes, b"\xff"),
    (float, math.inf),
    (Receipt, RECEIPT),
    (list[Receipt], [RECEIPT]),
    (Point, Point(1.0, math.inf)),
    (Aliased, Aliased(orderId=3, raw=b"\xff")),
    (tuple[int, str], (1, "a")),
    (dict[str, dt.date], {"a": dt.date(2020, 1, 1)}),
    (dt.datetime, dt.datetime(2020, 1, 2)),
    (int, "the annotation is wrong"),
    (dict[str, Any], {"a": Decimal("1")}),
    (Any, Handoff("billing", "refund")),
    (Handoff | str, Handoff("billing")),
    (None, Finish("done", "all paid")),
]


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=lambda item: str(item)[:40])
def test_result_comes_back_the_same(annotation: Any, value: Any) -> None:
    """What is decoded equals what was encoded, in value and type."""
    codec = ResultCodec(annotation)
    tag, data = codec.encode(value)
    back = ResultCodec(annotation).decode(tag, data)
    assert (type(back), back) == (type(value), value)
    assert repr(back) == repr(value) or isinstance(value, (set, dict))


def test_nan_comes_back() -> None:
    """NaN is kept, with and without an annotation."""
    for annotation in (None, float):
        codec = ResultCodec(annotation)
        assert math.isnan(codec.decode(*codec.encode(math.nan)))


class Socket:
    """Something that cannot be written down."""


def _cycle() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


@pytest.mark.parametrize(
    ("value", "name"),
    [(Socket(), "Socket"), (SecretStr("s"), "SecretStr"), (_cycle(), "list"), ("\ud800", "str")],
    ids=["object", "secret", "cycle", "surrogate"],
)
def test_what_cannot_be_written_is_opaque(value: Any, name: str) -> None:
    """The record says that something was returned, and of which class."""
    tag, data = ResultCodec(None).encode(value)
    assert (tag, json.loads(data)) == ("opaque", name)


def test_secret_in_a_result_is_not_written() -> None:
    """A recorded result holds neither the secret nor asterisks in its place."""

    class Login(BaseModel):
        password: SecretStr

    tag, data = ResultCodec(Login).encode(Login(password=SecretStr("hunter2")))
    assert tag == "opaque"
    assert b"hunter2" not in data


@dataclasses.dataclass
class Broken:
    """Has a field that JSON cannot say."""

    what: Any


class Failing:
    """Fails when looked at."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


TEXTS: list[tuple[Any, Any]] = [
    ("a", "a"),
    (["a", "b"], ["a", "b"]),
    (None, None),
    (RECEIPT, {"id": str(uuid.UUID(int=1)), "amount": "1.50", "raw": "_w=="}),
    (Point(1, math.nan), {"x": 1, "y": "NaN"}),
    (dt.datetime(2020, 1, 2), "2020-01-02T00:00:00"),
    (Decimal("1.0"), "1.0"),
    (Socket(), "Socket"),
    ({"s": Socket()}, {"s": "Socket"}),
    (Broken(SecretStr("hunter2")), {"what": "**********"}),
    ("x" * 1_000_000, "x" * 1_000_000),
    ("a\ud800", "a?"),
]


@pytest.mark.parametrize(("value", "shown"), TEXTS, ids=lambda item: str(item)[:40])
def test_result_is_json_text_for_a_model(value: Any, shown: Any) -> None:
    """U11: models, dates, bytes, dataclasses and NaN become valid JSON."""
    assert json.loads(plain_result(value)) == shown


def test_text_for_a_model_never_fails() -> None:
    """A cycle and an object that raises are named or cut, never raised."""
    assert json.loads(plain_result(_cycle()))
    assert json.loads(plain_result([Failing()]))
