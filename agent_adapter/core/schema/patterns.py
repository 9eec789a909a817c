r"""Foreign regular expressions, matched in linear time: a pattern cannot hold up the event loop.

The engine is pydantic-core's (Rust's `regex`), which never backtracks. Syntax that it lacks is
rewritten or refused: look-aheads at the start become separate patterns. It unrolls counted
repetitions, so what is too large is refused before it is compiled, and `^[\w-]{1,255}$` is
compiled as `^[\w-]*$` with the lengths of the text.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

from agent_adapter.core.schema.pattern_size import MOST, size_of

_LONGEST = 10_000
_BRACED = re.compile(r"\\[pPxu]\{[^}]*\}")
_NEEDLESS = frozenset("/\"'`@%,:;=<>!_ ")
_QUANTIFIER = re.compile(r"\{\d+(,\d*)?\}")
# One character of a text: an escape, a class, or itself.
_CHARACTER = (
    r"(?:\\[pP]\{[^}]*\}|\\[wWdDsS]|\\[^a-zA-Z0-9]|\[(?:\\.|[^\]\\])*\]|[^\\\[\](){}|*+?^$])"
)
_COUNTED = re.compile(
    rf"\^({_CHARACTER}*)({_CHARACTER})\{{(\d{{1,9}})(?:(,)(\d{{0,9}}))?\}}({_CHARACTER}*)\$"
)

Lengths = tuple[int, float]
"""The least and the most characters of a text."""


class Pattern:
    """A compiled pattern: `found` parts must occur in a text and `barred` parts must not."""

    __slots__ = ("_barred", "_found", "_least", "_most", "size")

    def __init__(
        self,
        found: list[SchemaValidator],
        barred: list[SchemaValidator],
        lengths: Lengths,
        size: float,
    ) -> None:
        self._found = [each.isinstance_python for each in found]
        self._barred = [each.isinstance_python for each in barred]
        self._least, self._most = lengths
        self.size = size

    def matches(self, text: str) -> bool:
        """Whether the pattern occurs in `text`, as JSON Schema's `pattern` asks."""
        return (
            self._least <= len(text) <= self._most
            and all(found(text) for found in self._found)
            and not any(barred(text) for barred in self._barred)
        )


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Pattern:
    """`pattern`, an ECMA-262 expression, compiled.

    Raises `ValueError` for a look-around that is not at its start, a back-reference, anything else
    that cannot be matched in linear time, and what would take too long to compile.
    """
    if len(pattern) > _LONGEST:
        raise ValueError(f"the pattern has {len(pattern)} characters; {_LONGEST} are the most")
    required, barred, rest = _leading(pattern)
    begins = "^" if required or barred else ""
    rest, lengths = _uncounted(begins + rest)
    size = sum(map(size_of, (*required, *barred, rest)))
    if size > MOST:
        raise ValueError(
            f"the pattern {pattern[:80]!r} takes too long to compile; repeat less, or classes with "
            "fewer characters, such as [a-z0-9_] for \\w"
        )
    found = [_engine(f"^(?:{part})", pattern) for part in required]
    found.append(_engine(rest, pattern))
    return Pattern(found, [_engine(f"^(?:{part})", pattern) for part in barred], lengths, size)


def _uncounted(pattern: str) -> tuple[str, Lengths]:
    """A whole text's pattern of single characters without its one counted repetition."""
    counted = _COUNTED.fullmatch(pattern)
    if counted is None:
        return pattern, (0, math.inf)
    before, repeated, least, comma, most, after = counted.groups()
    others = sum(1 for _ in re.finditer(_CHARACTER, before + after))
    highest = int(most) if most else math.inf if comma else int(least)
    if highest < int(least):
        return pattern, (0, math.inf)  # the engine says why
    return f"^{before}{repeated}*{after}$", (others + int(least), others + highest)


def _engine(part: str, whole: str) -> SchemaValidator:
    try:
        return SchemaValidator(core_schema.str_schema(pattern=_translated(part), strict=True))
    except SchemaError as exc:
        lines = str(exc).rstrip().splitlines()
        reason = lines[-1].rpartition("error: ")[2].strip()
        raise ValueError(
            f"the pattern {whole[:80]!r} cannot be checked in bounded time ({reason}); rewrite it "
            "without look-around and back-references"
        ) from None


def _leading(pattern: str) -> tuple[list[str], list[str], str]:
    """The look-aheads after `^` (positive, negative), and the rest of the pattern."""
    required: list[str] = []
    barred: list[str] = []
    if not pattern.startswith(("^(?=", "^(?!")) or _splits(pattern):
        return required, barred, pattern
    rest = pattern[1:]
    while rest.startswith(("(?=", "(?!")):
        end = _closing(rest)
        if end < 0:
            return [], [], pattern
        (required if rest[2] == "=" else barred).append(rest[3:end])
        rest = rest[end + 1 :]
        if rest[:1] in ("*", "+", "?", "{"):
            return [], [], pattern
    return required, barred, rest


def _splits(pattern: str) -> bool:
    """Whether the pattern has a `|` outside of all groups."""
    return any(char == "|" and depth == 0 for _, char, depth in _characters(pattern))


def _closing(pattern: str) -> int:
    """Where the group that begins the pattern ends."""
    for place, char, depth in _characters(pattern):
        if char == ")" and depth == 0:
            return place
    return -1


def _characters(pattern: str) -> list[tuple[int, str, int]]:
    """The unescaped characters outside of classes, with their places and group depths."""
    found, depth, inside, place = [], 0, False, 0
    while place < len(pattern):
        char = pattern[place]
        if char == "\\":
            place += 2
            continue
        if inside:
            inside = char != "]"
        elif char == "[":
            inside = True
        else:
            depth -= char == ")"
            found.append((place, char, depth))
            depth += char == "("
        place += 1
    return found


def _translated(pattern: str) -> str:
    """ECMA-262 spelling as Rust's: classes hold literal `[`, and a lone `{` is a character."""
    written: list[str] = []
    inside, place = False, 0
    while place < len(pattern):
        char = pattern[place]
        if char == "\\":
            long = _BRACED.match(pattern, place)
            written.append(long[0] if long else _escape(pattern[place : place + 2]))
            place += len(long[0]) if long else 2
            continue
        if inside:
            inside = char != "]"
            written.append("\\" + char if char in "[&~" else char)
        elif pattern.startswith(("[]", "[^]"), place):
            empty = pattern.startswith("[]", place)
            written.append(r"[^\s\S]" if empty else r"[\s\S]")
            place += 2 if empty else 3
            continue
        elif char == "[":
            inside = True
            written.append(char)
        elif char == "{" and not _QUANTIFIER.match(pattern, place):
            written.append(r"\{")
        else:
            written.append(char)
        place += 1
    return "".join(written)


def _escape(pair: str) -> str:
    """An escape that Rust supports: a needless one becomes the character itself."""
    return pair[1:] if pair[1:] in _NEEDLESS else pair
