r"""Estimates what compiling a pattern costs, before it is compiled.

The engine unrolls counted repetitions, and a Unicode class is thousands of ranges: `\w{200}` takes
as long as two hundred times `\w`.
"""

from __future__ import annotations

import re

MOST = 6_500
"""The most kilobytes of compiled patterns per schema; they take some 50 ms of CPU time."""

# Kilobytes of the compiled form, as measured, rounded up.
_ESCAPES = {"w": 50.0, "W": 50.0, "p": 54.0, "P": 54.0, "d": 5.2, "D": 13.0, "s": 0.7, "S": 2.0}
_ANY = 1.0
_ASCII, _OTHER = 0.08, 0.16
_WITHOUT_CASE = 4.0

_PART = re.compile(r"\\[pP]\{[^}]*\}|\\.|\[\^?|\{\d+(?:,\d*)?\}|.", re.DOTALL)
_IGNORES_CASE = re.compile(r"\(\?[a-zA-Z]*i")


def size_of(pattern: str) -> float:
    """Kilobytes that `pattern` has when it is compiled, within a factor of two."""
    factor = _WITHOUT_CASE if _IGNORES_CASE.search(pattern) else 1.0
    groups: list[list[float]] = [[]]
    inside: list[float] | None = None
    for part in _PART.findall(pattern):
        if inside is not None:
            if part == "]":
                groups[-1].append(sum(inside))
                inside = None
            else:
                inside.append(_one(part, factor))
        elif part[0] == "[":
            inside = [_ANY if part == "[^" else _ASCII]
        elif part == "(":
            groups.append([])
        elif part == ")" and len(groups) > 1:
            whole = sum(groups.pop())
            groups[-1].append(whole)
        elif part[0] == "{" and len(part) > 1 and groups[-1]:
            groups[-1][-1] *= _times(part)
        else:
            groups[-1].append(_one(part, factor))
    return sum(map(sum, groups)) + sum(inside or ())


def _one(part: str, factor: float) -> float:
    if part[0] == "\\" and len(part) > 1:
        return _ESCAPES.get(part[1], _ASCII * factor)
    if part == ".":
        return _ANY
    return (_ASCII if part.isascii() else _OTHER) * factor


def _times(quantifier: str) -> int:
    """How often the engine writes what `{m,n}` repeats."""
    counts = [int(text[:9]) for text in re.findall(r"\d+", quantifier)]
    return max(1, *counts)
