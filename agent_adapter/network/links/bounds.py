"""The bounds of what a request may hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from agent_adapter.network.channels.metadata import ChannelState

PAGE = 1000
"""How many items one answer over a connection has at most."""

Id = Annotated[str, Field(max_length=1000)]
Ids = Annotated[Sequence[Id], Field(max_length=10_000)]
Text = Annotated[str, Field(max_length=100_000)]
Count = Annotated[int, Field(ge=0)]
Limit = Annotated[int, Field(ge=0), AfterValidator(lambda limit: min(limit, PAGE))]
# One more than a page: a view asks for one more than it shows.
Window = Annotated[int, Field(ge=0), AfterValidator(lambda limit: min(limit, PAGE + 1))]
Seconds = Annotated[float, Field(ge=0, le=20)]
State = Annotated[ChannelState | str, AfterValidator(ChannelState)]
