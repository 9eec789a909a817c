"""Conditions: when a transition fires."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from agent_adapter.core.errors import WorkflowGraphError
from agent_adapter.flow.envelope import EV_PACKET, EV_TEXT, Envelope
from agent_adapter.flow.expression_cost import checked_work, measured
from agent_adapter.flow.expressions import compiled_expression
from agent_adapter.flow.state import WorkflowState
from agent_adapter.flow.targets import checked_text
from agent_adapter.flow.wire import json_copy

_checked: ContextVar[frozenset[str]] = ContextVar("checked_expressions", default=frozenset())


class TransitionCondition(Protocol):
    """Decides whether a transition fires, from the state and the accepted envelope alone.

    A custom condition is a dataclass with a class-level `name`, registered with
    `register_condition`; its fields, JSON values, are its `args` in the graph's wire form. Fields
    that hold conditions are named in a class-level tuple `nested`.
    """

    name: ClassVar[str]

    def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
        """Whether it fires; `state` already counts `envelope` and its context changes."""
        ...


@dataclass(slots=True)
class Always:
    """Fires on every turn."""

    name: ClassVar[str] = "always"

    def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
        """True."""
        return True


@dataclass(slots=True)
class FromSpeaker:
    """Fires when the participant of this id took the turn."""

    agent_id: str
    name: ClassVar[str] = "from_speaker"

    def __post_init__(self) -> None:
        checked_text(self.agent_id, "FromSpeaker.agent_id", "a participant's id")

    def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
        """Whether the sender is the named participant."""
        return envelope.sender_id == self.agent_id


@dataclass(slots=True)
class ToolCalled:
    """Fires when the turn's one routing call was of this tool."""

    tool_name: str
    name: ClassVar[str] = "tool_called"

    def __post_init__(self) -> None:
        checked_text(self.tool_name, "ToolCalled.tool_name", "a tool's name")

    def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
        """Whether the packet's routing names the tool; a text never does."""
        return routing_tool(envelope) == self.tool_name


@dataclass(slots=True)
class ContextEquals:
    """Fires while the channel's variable `key` equals `value`; a missing key equals `None`.

    It stays true on every later turn until the variable changes.
    """

    key: str
    value: Any
    name: ClassVar[str] = "context_equals"

    def __post_init__(self) -> None:
        checked_text(self.key, "ContextEquals.key", "a variable's name")
        self.value = json_copy(self.value, f"ContextEquals({self.key!r}).value")

    def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
        """Whether the variable has the value now."""
        return bool(state.context_vars.get(self.key) == self.value)


@dataclass(slots=True)
class ContextMatches:
    """Fires while a CEL expression is true.

    It may name `context` (the variables), `turn_count`, `speaker`, `tool`, `event_type` and `body`.
    An expression that cannot be evaluated on the present values does not fire; one that would take
    too long on them is refused (`WorkflowGraphError`), and so is the message.
    """

    expression: str
    name: ClassVar[str] = "context_matches"

    def __post_init__(self) -> None:
        checked_text(self.expression, "ContextMatches.expression", "a CEL expression")
        compiled_expression(self.expression)

    def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
        """Whether the expression is true now."""
        compiled = compiled_expression(self.expression)
        values = {name: _READ[name](state, envelope) for name in compiled.names}
        return compiled.matches(values, checked=self.expression in _checked.get())


@dataclass(slots=True)
class TurnCountAtLeast:
    """Fires from the `turns`-th turn on."""

    turns: int
    name: ClassVar[str] = "turn_count_at_least"

    def __post_init__(self) -> None:
        if type(self.turns) is not int or self.turns < 1:
            raise WorkflowGraphError(
                f"TurnCountAtLeast.turns is a whole number from 1, not {self.turns!r}"
            )

    def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
        """Whether that many turns were taken, this one included."""
        return state.turn_count >= self.turns


@dataclass(slots=True)
class _Several:
    conditions: list[TransitionCondition]
    nested: ClassVar[tuple[str, ...]] = ("conditions",)

    def __post_init__(self) -> None:
        self.conditions = _checked_list(self.conditions, type(self).__name__)


@dataclass(slots=True)
class AllOf(_Several):
    """Fires when every one of `conditions` does."""

    name: ClassVar[str] = "all_of"

    def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
        """Whether all fire."""
        return all(condition.evaluate(state, envelope) for condition in self.conditions)


@dataclass(slots=True)
class AnyOf(_Several):
    """Fires when at least one of `conditions` does."""

    name: ClassVar[str] = "any_of"

    def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
        """Whether one fires."""
        return any(condition.evaluate(state, envelope) for condition in self.conditions)


@dataclass(slots=True)
class Not:
    """Fires when `condition` does not."""

    condition: TransitionCondition
    name: ClassVar[str] = "not"
    nested: ClassVar[tuple[str, ...]] = ("condition",)

    def __post_init__(self) -> None:
        if not _is_condition(self.condition):
            raise WorkflowGraphError(f"Not takes one condition, not {self.condition!r:.80}")

    def evaluate(self, state: WorkflowState, envelope: Envelope) -> bool:
        """Whether the condition does not fire."""
        return not self.condition.evaluate(state, envelope)


BUILTIN_CONDITIONS: tuple[type[TransitionCondition], ...] = (
    Always,
    FromSpeaker,
    ToolCalled,
    ContextEquals,
    ContextMatches,
    TurnCountAtLeast,
    AllOf,
    AnyOf,
    Not,
)
"""The conditions that every registry knows."""


def atoms(condition: TransitionCondition) -> Iterator[TransitionCondition]:
    """The elementary conditions of `condition`; itself if it has no nested ones."""
    nested: tuple[str, ...] = getattr(condition, "nested", ())
    if not nested:
        yield condition
    for field in nested:
        held = getattr(condition, field)
        for inner in held if isinstance(held, (list, tuple)) else (held,):
            yield from atoms(inner)


@contextmanager
def checked_expressions(
    texts: Collection[str], state: WorkflowState, envelope: Envelope
) -> Iterator[None]:
    """Evaluate these expressions of one graph without a check of each: together they are cheap.

    `WorkflowGraphError` if they are not.
    """
    compiled = [compiled_expression(text) for text in texts]
    names = {name for each in compiled for name in each.names}
    measure = measured({name: _READ[name](state, envelope) for name in names})
    work = sum(each.work(measure) for each in compiled)
    try:
        checked_work(work)
    except ValueError as exc:
        raise WorkflowGraphError(f"the expressions of the graph together: {exc}") from None
    token = _checked.set(frozenset(texts))
    try:
        yield
    finally:
        _checked.reset(token)


def routing_tool(envelope: Envelope) -> str | None:
    """The tool of a packet's routing call; `None` if no call routed the turn."""
    if envelope.event_type != EV_PACKET:
        return None
    routing = envelope.event_data.get("routing")
    tool = routing.get("tool") if isinstance(routing, dict) else None
    return tool if isinstance(tool, str) else None


def _body(envelope: Envelope) -> str:
    name = "text" if envelope.event_type == EV_TEXT else "body"
    body = envelope.event_data.get(name)
    return body if isinstance(body, str) else ""


_READ: dict[str, Callable[[WorkflowState, Envelope], Any]] = {
    "context": lambda state, envelope: state.context_vars,
    "turn_count": lambda state, envelope: state.turn_count,
    "speaker": lambda state, envelope: envelope.sender_id,
    "tool": lambda state, envelope: routing_tool(envelope) or "",
    "event_type": lambda state, envelope: envelope.event_type,
    "body": lambda state, envelope: _body(envelope),
}


def _is_condition(value: Any) -> bool:
    return callable(getattr(value, "evaluate", None)) and not isinstance(value, type)


def _checked_list(value: Any, where: str) -> list[TransitionCondition]:
    if isinstance(value, (list, tuple)) and value and all(map(_is_condition, value)):
        return list(value)
    raise WorkflowGraphError(
        f"{where} takes a list of at least one condition, as in {where}([FromSpeaker(…), …]), "
        f"not {value!r:.80}"
    )
