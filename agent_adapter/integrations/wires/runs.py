"""The run and the conversation of a response, found once and kept with the response.

A run begins with a message of the user. It is named after that message, what came before it, and
the first calls that the model made for it, whose ids no other conversation has. Later responses
find it again by the calls in between, so a history that is cut or summarised keeps its run.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_adapter.core.identity import Position
from agent_adapter.exec.defaults import runner_for
from agent_adapter.exec.scope import current_scope
from agent_adapter.integrations.wires.calls import Place, ProviderCall, ResponseIds, member
from agent_adapter.integrations.wires.history import (
    Named,
    Said,
    digest_of,
    named,
    said_in,
    user_texts,
)

if TYPE_CHECKING:
    from agent_adapter.core.ports import ToolRunner

_KEPT = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The run and the conversation of a response."""

    run: str
    conversation: str


@dataclass(slots=True)
class Runs:
    """What was found so far for one runner; the oldest entries are forgotten."""

    _kept: OrderedDict[Hashable, Found | None] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(
        self,
        target: str,
        response: Position | None,
        calls: tuple[Named, ...],
        messages: Any,
        *,
        thread_id: str | None,
        previous: str | None = None,
    ) -> Found | None:
        """The run of the response with these `calls`; `None` where no message is a user's.

        `previous` is the id of the response that this one goes on from, where the provider keeps
        the conversation.
        """
        with self._lock:
            known = self._kept.get(("response", thread_id, response, calls)) if response else None
            before = self._kept.get(("id", thread_id, previous)) if previous else None
            if known is None:
                said = _before(said_in(messages), calls)
                known = self._found(target, calls, said, thread_id, before)
            if known is not None:
                self._note(known, response, calls, thread_id)
            return known

    def _found(
        self,
        target: str,
        calls: tuple[Named, ...],
        said: Sequence[Said],
        thread_id: str | None,
        before: Found | None,
    ) -> Found | None:
        users = [place for place, each in enumerate(said) if each.user is not None]
        if not users:  # cut off, with the run under way
            return self._asked_before(said, thread_id) or before
        asked = [each.calls for each in said[users[-1] :] if each.calls]
        begun = [entry for each in said[: users[-1] + 1] if (entry := _entry(each))]
        run = f"{target}:{digest_of('run', thread_id, begun, [asked[0] if asked else calls])}"
        exact = self._kept.get(("run", run))
        if exact is not None:
            return exact
        again = self._asked_before(said[users[-1] :], thread_id)
        if again is not None:
            return again
        conversation = thread_id or self._conversation(target, calls, said, before)
        return Found(run=run, conversation=conversation)

    def _conversation(
        self, target: str, calls: tuple[Named, ...], said: Sequence[Said], before: Found | None
    ) -> str:
        if before is not None:
            return before.conversation
        again = self._asked_before(said, None)
        if again is not None:
            return again.conversation
        asked = [each.calls for each in said if each.calls]
        opening = next(each.user for each in said if each.user is not None)
        return f"{target}:{digest_of('conversation', opening, asked[0] if asked else calls)}"

    def _asked_before(self, said: Sequence[Said], thread_id: str | None) -> Found | None:
        """What was found for the latest of these calls that is known."""
        asked = (each.calls for each in reversed(said) if each.calls)
        known = (self._kept.get(("calls", thread_id, calls)) for calls in asked)
        return next((found for found in known if found is not None), None)

    def _note(
        self,
        found: Found,
        response: Position | None,
        calls: tuple[Named, ...],
        thread_id: str | None,
    ) -> None:
        self._keep(("run", found.run), found)
        if response:
            self._keep(("response", thread_id, response, calls), found)
            self._keep(("id", thread_id, response[0]), found)
        key = ("calls", thread_id, calls)
        other = self._kept.get(key, found)
        # Ids that two conversations use tell nothing.
        alone = other is not None and other.conversation == found.conversation
        self._keep(key, found if alone and calls else None)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def _keep(self, key: Hashable, found: Found | None) -> None:
        self._kept[key] = found
        self._kept.move_to_end(key)


_RUNS: WeakKeyDictionary[Any, Runs] = WeakKeyDictionary()
_OTHERS = Runs()


def runs_of(runner: Any) -> Runs:
    """What was found so far for the calls that `runner` runs."""
    try:
        return _RUNS.setdefault(runner, Runs())
    except TypeError:  # a runner of one's own that no weak reference can point to
        return _OTHERS


def _before(said: list[Said], calls: tuple[Named, ...]) -> list[Said]:
    """What was said before the response with these calls, which may be in the list already."""
    for place in range(len(said) - 1, -1, -1):
        if said[place].results:
            break  # whatever stands before a result has been answered
        if said[place].calls == calls:
            return said[:place]
    return said


def times(messages: Any, calls: tuple[Named, ...]) -> int:
    """How many responses with these calls stand in the conversation before this one."""
    return sum(each.calls == calls for each in _before(said_in(messages), calls))


def _entry(said: Said) -> Any:
    return said.user or [list(call) for call in said.calls]


def place_in(
    ids: ResponseIds,
    response: Any,
    calls: Sequence[ProviderCall],
    *,
    executor: ToolRunner | None,
    run_id: str | None,
    thread_id: str | None,
    messages: Any,
) -> tuple[Place, Position | None]:
    """What is known of a response's calls, and the response's own place.

    The run is the one that is named, or that surrounds the call, or that `messages` tell. Else it
    is unknown, and the response only tells its calls from those of others.
    """
    place = ids.of(response)
    said = None if messages is None else partial(user_texts, messages)
    if run_id is not None or current_scope.get() is not None:
        return Place(run_id=run_id, thread_id=thread_id, said=said), place
    anchor = None if place is None else f"{ids.target}:{place[0]}"
    own = named(calls)
    found = None
    if messages is not None and calls:
        found = runs_of(runner_for(executor)).find(
            ids.target,
            place,
            own,
            messages,
            thread_id=thread_id,
            previous=member(response, "previous_response_id"),
        )
    if found is not None:
        if place is None:  # the calls stand for it, and how many like them were answered
            place = (digest_of(own), times(messages, own))
        known = Place(
            run_id=found.run,
            thread_id=thread_id,
            conversation=found.conversation,
            anchor=anchor,
            said=said,
        )
        return known, place
    return Place(run_id=anchor, thread_id=thread_id, run_is_known=False), place
