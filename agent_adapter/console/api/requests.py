"""What programs send to the JSON API; everything else in a body is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

__all__ = ["Decision", "DecisionOnSeveral", "Fork", "Mark", "Resolution", "Speech"]

_Id = Annotated[str, Field(min_length=1, max_length=200)]
_Reason = Annotated[str | None, Field(max_length=10_000)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Decision(_Body):
    """A word on one approval; `digest` and `version` are those of the record as it was read."""

    digest: _Id
    version: _Id
    reason: _Reason = None
    arguments: Annotated[
        dict[str, JsonValue] | None, Field(description="Other arguments to run with.")
    ] = None


class Mark(_Body):
    """One of several records, as it was read."""

    id: _Id
    digest: _Id
    version: _Id


class DecisionOnSeveral(_Body):
    """One word on several records of the same tool with the same arguments."""

    records: Annotated[list[Mark], Field(min_length=1, max_length=100)]
    verdict: Literal["approved", "denied"]
    reason: _Reason = None


class Resolution(_Body):
    """What the other side shows of a write in doubt, and how that is known."""

    happened: bool
    reason: Annotated[str, Field(min_length=1, max_length=10_000)]
    result: Annotated[Any, Field(description="What the call gave; only if it happened.")] = None


class Speech(_Body):
    """What a person says in a channel; with the same `key` it is said once."""

    sender: _Id
    text: Annotated[str, Field(min_length=1, max_length=100_000)]
    key: Annotated[str, Field(max_length=200)] = ""


class Fork(_Body):
    """The last message of the new channel's log."""

    at: _Id
