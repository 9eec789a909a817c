"""Where in an Agno run the model asked for a call, and which making of the run that is."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_adapter.core.identity import Identity, Reentry
from agent_adapter.integrations.agno.calls import rewritten, text_of

if TYPE_CHECKING:
    from agno.models.message import Message
    from agno.tools.function import FunctionCall

_KEPT_RUNS = 10_000
_ENTRY = "_agent_adapter_entry"

Place = tuple[str, int]
"""The id of the model's message and the index of the call in it."""


def identity_of(call: FunctionCall) -> Identity:
    """Which call this is; nothing is known of one outside of a run."""
    run = getattr(call.function, "_run_context", None)
    if run is None:
        return Identity()
    entry: _Entry | None = vars(run).get(_ENTRY)
    if entry is None:
        # It lives as long as Agno's own object for this entry into the run.
        entry = vars(run)[_ENTRY] = _Entry()
    messages = run.messages or ()
    attempt = entry.attempt(run.run_id, messages)
    return identity(run.run_id, run.session_id, entry.place(call, messages), attempt)


def identity(run: str | None, session: str | None, place: Place | None, attempt: int) -> Identity:
    """The identity of a call at `place`."""
    return Identity(
        run=run,
        conversation=session,
        position=place,
        reentry=Reentry.REPLAYED if attempt > 1 else Reentry.NEW,
        attempt=attempt,
    )


class Places:
    """The places of calls that are found one after the other: equal calls get one each."""

    def __init__(self) -> None:
        self._given: set[Place] = set()

    def find(
        self,
        messages: Sequence[Message],
        call_id: str | None,
        tool: str,
        arguments: Mapping[str, Any],
    ) -> Place | None:
        """The latest place in the run where the model asked for such a call."""
        for message in reversed(messages):
            if not message.tool_calls or message.from_history:
                continue
            places = [
                (message.id, i) for i in _indexes(message.tool_calls, call_id, tool, arguments)
            ]
            if places:
                # All given: a hook of Agno's calls the function twice, or a pause is used again.
                place = next((at for at in places if at not in self._given), places[0])
                self._given.add(place)
                return place
        return None


@dataclass(slots=True, eq=False)
class _Entry:
    """One entry into a run: a fresh one after each pause, one for all tries of `retries`."""

    places: Places = field(default_factory=Places)
    calls: dict[int, tuple[Any, Place | None]] = field(default_factory=dict)
    messages: Any = None
    number: int = 0

    def attempt(self, run: str, messages: Sequence[Message]) -> int:
        """Which making of the run this is.

        A retried agent writes its list of messages anew, without what the model had said. A list
        that is merely a copy, as hooks of Agno get it, still holds that.
        """
        if messages is not self.messages and not self._knows(messages):
            anew = self.messages is not None
            self.number = ATTEMPTS.of(run, root_of(messages), anew=anew)
            self.messages = messages
        return self.number

    def place(self, call: FunctionCall, messages: Sequence[Message]) -> Place | None:
        """The place of a call: the same again for the same object."""
        found = self.calls.get(id(call))
        if found is None:
            name, arguments = call.function.name, call.arguments or {}
            place = self.places.find(messages, call.call_id, name, arguments)
            found = self.calls[id(call)] = (call, place)  # kept, so that no other gets its id
        return found[1]

    def _knows(self, messages: Sequence[Message]) -> bool:
        asked = [place[0] for _, place in self.calls.values() if place is not None]
        if self.messages is None or not asked:
            return self.messages is not None and root_of(messages) == root_of(self.messages)
        return any(message.id == asked[-1] for message in messages)


class Attempts:
    """How often each run was made; the oldest of `size` runs are forgotten."""

    def __init__(self, size: int = _KEPT_RUNS) -> None:
        self._size = size
        self._runs: OrderedDict[str, tuple[tuple[str, ...], int]] = OrderedDict()

    def of(self, run: str, root: tuple[str, ...], *, anew: bool = False) -> int:
        """The making of `run` that begins with the messages `root`; `anew` says it is another."""
        before, number = self._runs.get(run, (root, 1))
        if anew or before != root:
            number += 1
        self._runs[run] = (root, number)
        self._runs.move_to_end(run)
        if len(self._runs) > self._size:
            self._runs.popitem(last=False)
        return number


ATTEMPTS = Attempts()
"""The makings of the runs of this process."""


def root_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """The ids of what a run begins with: the messages before the model's first answer."""
    return tuple(_beginning(messages))


def _beginning(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        if message.from_history or message.role in ("system", "developer"):
            continue  # Agno writes the system message anew when it continues a stored run
        if message.role in ("assistant", "model", "tool"):
            return
        yield message.id


def _indexes(
    calls: Sequence[Mapping[str, Any]],
    call_id: str | None,
    tool: str,
    arguments: Mapping[str, Any],
) -> list[int]:
    """Where in one message the call may stand: by id and tool, and by arguments among several."""
    named = [
        index
        for index, call in enumerate(calls)
        if (call.get("id") or call_id) == call_id
        and (call.get("function") or {}).get("name") == tool
    ]
    if len(named) < 2:
        return named
    text = text_of(arguments)
    return [index for index in named if _text_of_call(calls[index]) == text] or named


def _text_of_call(call: Mapping[str, Any]) -> str | None:
    try:
        raw = json.loads((call.get("function") or {}).get("arguments") or "{}")
    except (ValueError, TypeError, RecursionError):
        return None
    return text_of(rewritten(raw)) if isinstance(raw, dict) else None
