"""Why an attempt failed, as text, and when the next one begins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.secret_texts import without_secrets

LONGEST_CAUSE = 500
"""The most characters of a cause in an envelope and in the log."""

_LONGEST_TEXT = 2000
_MOST_CAUSES = 10

_OUTAGES = (
    "APIConnectionError",
    "APITimeoutError",
    "InternalServerError",
    "ModelRateLimitError",
    "OverloadedError",
    "RateLimitError",
    "RemoteProtocolError",
    "ResourceExhausted",
    "ServiceUnavailable",
    "ServiceUnavailableError",
    "TransportError",
)
"""Names of classes with which clients of providers say that the provider is away."""

_AWAY = (408, 425, 429)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The seconds before each repetition of a failed attempt; after the last one the channel ends.

    `outage` is for errors that say that a provider is away: no connection, a time-out, too many
    requests, an error of the server's. Deadlines of the turn stand still meanwhile.
    """

    usual: Sequence[float] = (1.0, 10.0, 60.0)
    outage: Sequence[float] = (1.0, 10.0, 60.0, 120.0, 300.0, 600.0, 600.0, 600.0, 600.0, 600.0)

    def __post_init__(self) -> None:
        for name in ("usual", "outage"):
            waits = getattr(self, name)
            if isinstance(waits, str) or not isinstance(waits, Sequence):
                raise ValueError(f"Retries.{name} is a list of seconds, not {waits!r}")
            if not all(_is_wait(each) for each in waits):
                raise ValueError(f"Retries.{name} holds numbers of seconds from 0, not {waits!r}")

    def waits(self, error: BaseException) -> Sequence[float]:
        """The waits that hold for this error."""
        return self.outage if is_outage(error) else self.usual


def cause_of(error: BaseException, most: int = LONGEST_CAUSE) -> str:
    """The class and the text of an error, bounded and without secrets."""
    return f"{class_of(error)}: {text_of(error, most)}".removesuffix(": ")


def class_of(error: BaseException) -> str:
    """The name of the error's class; of one in another process, as its process names it."""
    return str(getattr(error, "remote_class", None) or type(error).__name__)


def text_of(error: BaseException, most: int = _LONGEST_TEXT) -> str:
    """The error's text, bounded and without secrets."""
    try:
        return without_secrets(str(error), most)
    except Exception:  # a foreign error may fail to describe itself
        return ""


def is_outage(error: BaseException) -> bool:
    """Whether the error, or one that caused it, says that a provider is away."""
    return any(_is_outage(each) for each in _chain(error))


def _is_outage(error: BaseException) -> bool:
    if isinstance(error, AgentAdapterError):
        return bool(getattr(error, "outage", False))
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    status = getattr(error, "status_code", None) or getattr(
        getattr(error, "response", None), "status_code", None
    )
    if isinstance(status, int):
        return status >= 500 or status in _AWAY
    return any(kind.__name__ in _OUTAGES for kind in type(error).__mro__)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _is_wait(value: object) -> bool:
    return type(value) in (int, float) and 0 <= float(value) < math.inf  # type: ignore[arg-type]  # checked before
