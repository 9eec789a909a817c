"""Expressions in the Common Expression Language, each compiled once.

Measured against pure-Python `cel-python`: 11 µs against 270 µs for one evaluation of three terms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agent_adapter.core.errors import MissingDependency, WorkflowGraphError

NAMES = ("context", "turn_count", "speaker", "tool", "event_type", "body")
"""The names that an expression may use: the variables and parts of the accepted envelope."""

_LONGEST = 4096
_BOUND = re.compile(r"\.(?:all|exists|exists_one|map|filter)\(\s*([A-Za-z_]\w*)\s*,")


class Expression:
    """One compiled expression; `names` are those of `NAMES` that it reads."""

    __slots__ = ("_program", "names")

    def __init__(self, program: Any, names: tuple[str, ...]) -> None:
        self._program = program
        self.names = names

    def matches(self, values: Mapping[str, Any]) -> bool:
        """Whether the expression evaluates to `True` for `values`.

        False if it cannot be evaluated (a missing key, incompatible types) or is not a bool.
        """
        try:
            return self._program.execute(dict(values)) is True
        except Exception:
            # An accepted envelope must fold whatever the variables contain: a rule that cannot be
            # evaluated must not stop the channel.
            return False


@lru_cache(maxsize=1024)
def compiled_expression(text: str) -> Expression:
    """`text` compiled; `WorkflowGraphError` for what does not parse or names something unknown."""
    if len(text) > _LONGEST:
        raise WorkflowGraphError(f"an expression has at most {_LONGEST} characters: {text:.60}…")
    try:
        program = _cel().compile(text)
    except ValueError as exc:
        raise WorkflowGraphError(f"the expression {text!r} does not parse: {exc}") from exc
    bound = set(_BOUND.findall(text))
    names = tuple(name for name in program.variables() if name not in bound)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise WorkflowGraphError(
            f"the expression {text!r} names {', '.join(unknown)}; it may name {', '.join(NAMES)} "
            "(a channel's variable is context.<key>)"
        )
    return Expression(program, names)


def _cel() -> Any:
    try:
        import cel
    except ImportError as exc:
        raise MissingDependency(
            "ContextMatches needs the package common-expression-language: "
            'pip install "agent-adapter[cel]"'
        ) from exc
    return cel
