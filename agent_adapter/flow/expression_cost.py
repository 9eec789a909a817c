"""What an expression costs, computed before it runs: its engine has no budget of its own.

An expression is read as tokens. A macro repeats its body for every item of its list, so a token in
nested macros counts the product of their lists' sizes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

MAX_STEPS = 10_000
"""The most iterations of one macro, counted with those of the macros around it."""

MAX_WORK = 400_000
"""The most work of one turn's expressions together; one unit is about 0.1 µs."""

_DEEPEST = 3
_MOST_MACROS = 50
_LONGEST_PATTERN = 200
_MACROS = frozenset({"all", "exists", "exists_one", "map", "filter"})
_BUILDERS = frozenset({"map", "filter"})
_OPERATORS = frozenset({"==", "!=", "in", "<", "<=", ">", ">=", "+"})
_BULKY = frozenset({"[", "{", "contains", "startsWith", "endsWith", "size", "bytes"})
_FREE = frozenset("(),.")
_SCALARS = frozenset({"true", "false", "null"})
_TOKEN = re.compile(
    r"""(?:\s+|//[^\n]*)
    |(?P<text>[bBrR]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[uU]?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>==|!=|<=|>=|&&|\|\||.)""",
    re.VERBOSE | re.DOTALL,
)
_REPEATED = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_CLASS = re.compile(r"\\[wWdDsSpP]|\.|\[")
_HIDDEN = re.compile(r"(?<!\\)(?:\\\\)*\\[xXuU0-7]")

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Token:
    """A part of an expression; `kind` is text, number, name or sign."""

    kind: str
    text: str


_END = Token("sign", "")


@dataclass(frozen=True, slots=True)
class Measure:
    """Values and their size: the `longest` list, how many values, how many characters.

    `flat` is whether no list holds lists or objects.
    """

    values: Mapping[str, Any]
    longest: int
    nodes: int
    characters: int
    flat: bool


@dataclass(frozen=True, slots=True)
class _Macro:
    """A macro; its body lies between two tokens, `around` are the macros that it lies in."""

    name: str
    variable: str
    listed: Path
    begin: int
    end: int
    around: tuple[int, ...]


def measured(values: Mapping[str, Any]) -> Measure:
    """The size of JSON values."""
    longest = nodes = characters = 0
    flat = True
    waiting: list[Any] = [values]
    while waiting:
        item = waiting.pop()
        nodes += 1
        if isinstance(item, str):
            characters += len(item)
        elif isinstance(item, Mapping):
            longest = max(longest, len(item))
            nodes += len(item)
            waiting += item.values()
        elif isinstance(item, (list, tuple)):
            longest = max(longest, len(item))
            flat = flat and not any(isinstance(each, (dict, list, tuple)) for each in item)
            waiting += item
    return Measure(values, longest, nodes, characters, flat)


class ExpressionCost:
    """The cost of one expression; `ValueError` for one that is too expensive for any values.

    Attributes:
        bound: the variables of its macros.
        variables: the channel's variables that it reads, as `context.<key>`; `None` stands for any.
    """

    __slots__ = (
        "_factor",
        "_items",
        "_length",
        "_macros",
        "_patterns",
        "_weights",
        "bound",
        "variables",
    )

    def __init__(self, text: str) -> None:
        tokens = list(_tokens(text))
        self._macros = macros = _macros(tokens)
        self.bound = frozenset(macro.variable for macro in macros)
        # Those that stand for items of the values, not of a list that is made on the way.
        made = {each.variable for each in macros if not each.listed or each.listed[0] in self.bound}
        self._items = self.bound - made
        self.variables = frozenset(_variables(tokens))
        inside = [_around(macros, at) for at in range(len(tokens))]
        self._patterns = [
            (_pattern_size(tokens, at), inside[at])
            for at, token in enumerate(tokens)
            if token.kind == "name" and token.text == "matches"
        ]
        self._weights = [
            (_weight(tokens, at), inside[at])
            for at, token in enumerate(tokens)
            if token.text not in _FREE
        ]
        # Sums in the bodies of macros can double a value at every step; others only add up.
        sums = sum(token.text == "+" for token, at in zip(tokens, inside, strict=True) if at)
        self._factor = 1 << sums
        self._length = len(tokens)

    def work(self, measure: Measure) -> int:
        """The work on these values; `ValueError` for more than `MAX_STEPS` or `MAX_WORK`."""
        longest = (measure.longest + self._length) * self._factor
        sizes = [_size(measure, macro.listed, self.bound, longest) for macro in self._macros]
        work = 2 * measure.nodes + measure.characters // 500
        times: list[int] = []
        for macro, size in zip(self._macros, sizes, strict=True):
            outer = prod(sizes[at] for at in macro.around)
            times.append(outer * size)
            if times[-1] > MAX_STEPS:
                raise ValueError(f"its macros take more than {MAX_STEPS:,} steps")
            if macro.name in _BUILDERS:
                work += outer * size**2 // 3  # the engine copies the list for each added item
        bulk = self._factor * (1 + measure.nodes // 2 + measure.characters // 2000)
        for weight, around in self._weights:
            cost = weight if isinstance(weight, int) else bulk
            if not isinstance(weight, int) and any(self._is_small(measure, p) for p in weight):
                cost = 1 + measure.characters // 2000
            work += cost * (times[around[-1]] if around else 1)
        searched = measure.characters * self._factor // 200
        for size, around in self._patterns:
            work += size * (50 + searched) * (times[around[-1]] if around else 1)
        return checked_work(work)

    def _is_small(self, measure: Measure, path: Path) -> bool:
        """Whether the operand is no list and no object, so that the operation is quick."""
        if path[0] in self._items:
            return measure.flat
        known, value = _found(measure, path, self.bound)
        return known and not isinstance(value, (list, tuple, Mapping))


def checked_work(work: int) -> int:
    """`work`, if it is at most `MAX_WORK`; else `ValueError`."""
    if work > MAX_WORK:
        raise ValueError("it takes too much work on the channel's present variables and message")
    return work


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup is not None:
            yield Token(match.lastgroup, match[0])


def _macros(tokens: Sequence[Token]) -> list[_Macro]:
    """The macros in the order of their bodies."""
    found: list[_Macro] = []
    for at in range(1, len(tokens) - 2):
        before, token, after = tokens[at - 1 : at + 2]
        if before.text != "." or after.text != "(" or token.text not in _MACROS:
            continue
        around = _around(found, at)
        if len(around) >= _DEEPEST:
            raise ValueError(f"it nests macros more than {_DEEPEST} deep")
        if len(found) >= _MOST_MACROS:
            raise ValueError(f"it has more than {_MOST_MACROS} macros")
        listed = _path_before(tokens, at - 1)
        end = _closing(tokens, at + 1)
        found.append(_Macro(token.text, tokens[at + 2].text, listed, at + 1, end, around))
    return found


def _around(macros: Sequence[_Macro], at: int) -> tuple[int, ...]:
    return tuple(n for n, macro in enumerate(macros) if macro.begin < at < macro.end)


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for at in range(opening, len(tokens)):
        if tokens[at].kind == "sign":
            depth += (tokens[at].text in "([{") - (tokens[at].text in ")]}")
        if depth == 0:
            return at
    return len(tokens)


def _variables(tokens: Sequence[Token]) -> Iterator[str | None]:
    for at, token in enumerate(tokens):
        if token.text == "context" and token.kind == "name" and tokens[at - 1].text != ".":
            dot, key, call = [each.text for each in (*tokens[at + 1 : at + 4], *[_END] * 3)][:3]
            yield key if dot == "." and call != "(" else None


def _path_before(tokens: Sequence[Token], end: int) -> Path:
    """The names `a.b.c` that end before the token `end`; empty if anything else stands there."""
    names: list[str] = []
    at = end - 1
    while at >= 0 and tokens[at].kind == "name":
        names.append(tokens[at].text)
        if at == 0 or tokens[at - 1].text != ".":
            return tuple(reversed(names))
        at -= 2
    return ()


def _path_after(tokens: Sequence[Token], begin: int) -> Path:
    """The names `a.b.c` that begin after the token `begin`; empty if more than names follow."""
    names: list[str] = []
    at = begin + 1
    while at < len(tokens) and tokens[at].kind == "name":
        names.append(tokens[at].text)
        following = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if following in ("(", "[", "{"):
            return ()
        if following != ".":
            return tuple(names)
        at += 2
    return ()


def _weight(tokens: Sequence[Token], at: int) -> int | list[Path]:
    """The work of a token: 1, or the operands of which a scalar one makes it 1."""
    token = tokens[at]
    if token.kind == "text":
        return 1
    if token.text in _OPERATORS and (token.kind == "sign" or token.text == "in"):
        near = [tokens[each] for each in (at - 1, at + 1) if 0 <= each < len(tokens)]
        if token.text != "in" and any(_is_literal(each) for each in near):
            return 1
        before = [] if token.text == "in" else [_path_before(tokens, at)]
        return [path for path in (*before, _path_after(tokens, at)) if path]
    return [] if token.text in _BULKY else 1


def _is_literal(token: Token) -> bool:
    return token.kind in ("text", "number") or token.text in _SCALARS


def _found(measure: Measure, path: Path, bound: Collection[str]) -> tuple[bool, Any]:
    """Whether a path leads from a value's name to a value, and which."""
    if not path or path[0] in bound or path[0] not in measure.values:
        return False, None
    value: Any = measure.values
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return True, None
        value = value[name]
    return True, value


def _size(measure: Measure, path: Path, bound: Collection[str], longest: int) -> int:
    known, value = _found(measure, path, bound)
    if not known:
        return max(1, longest)
    return max(1, len(value)) if isinstance(value, (list, tuple, Mapping)) else 1


def _pattern_size(tokens: Sequence[Token], at: int) -> int:
    """The characters of the pattern of `matches`, times its counted repetitions."""
    given = tokens[at + 1 : at + 4]
    if len(given) < 3 or (given[0].text, given[1].kind, given[2].text) != (
        "(",
        "text",
        ")",
    ):  # ( pattern )
        raise ValueError("matches takes one pattern, written as text in the expression")
    pattern = given[1].text
    if pattern[0] not in "rR" and _HIDDEN.search(pattern):
        raise ValueError("a pattern has no numeric escapes: write the characters themselves")
    # A class stands for thousands of characters, and costs more than one.
    plain = len(pattern) + 9 * len(_CLASS.findall(pattern))
    size = plain * prod(max(1, int(most or least)) for least, most in _REPEATED.findall(pattern))
    if size > _LONGEST_PATTERN:
        raise ValueError(
            f"a pattern has at most {_LONGEST_PATTERN} characters; a class counts as ten, and "
            "counted repetitions are multiplied"
        )
    return size
