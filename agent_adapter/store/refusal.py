"""Why an operation did nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a record was not filed, decided or taken; `state` is the record's, if there is one.

    `stale` means that the record has changed since the reviewer saw it.
    """

    reason: str
    state: str = ""
    stale: bool = False
