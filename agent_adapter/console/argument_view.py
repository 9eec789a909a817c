"""What will run as lines for a person: each argument whole, or its start and its size.

Made from the arguments that the record binds. Nothing is left out silently: what is not in a line
is in its `rest`, which has to be opened before the call can be approved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent_adapter.core.inert import short, visible
from agent_adapter.exec.approval.inbox import ApprovalRecord
from agent_adapter.exec.masking import is_mask

Kind = Literal["value", "big", "lines", "json", "secret"]

_LINES = 14
"""The lines that all values together may take, so that they fit a phone's first screen."""

_COLUMNS = 38
_MOST_ROWS = 5
_DEEPEST = 3
_ABSENT = object()
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_BIG = re.compile(
    r"amount|price|total|sum|cost|fee|cents|budget|quantity|iban|account|recipient|payee|email"
    r"|(^|_)(to|cc|bcc|id|ids|number|host|url|path|address|phone)$",
    re.IGNORECASE,
)
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An inert text: its start, and the rest that does not fit; `size` says how long it is."""

    start: str
    rest: str = ""
    size: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One argument that will run; with an edit, also what was asked before it.

    `value` is `None` for one that the edit leaves out, `before` for one that is not changed.
    """

    name: str
    kind: Kind
    value: Value | None
    before: Value | None = None
    changed: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The lines of a call; `more` are those that do not fit, to be opened."""

    lines: tuple[Line, ...]
    more: tuple[Line, ...] = ()

    @property
    def has_rest(self) -> bool:
        """Whether something has to be opened before all was seen."""
        values = [v for line in self.lines for v in (line.value, line.before) if v is not None]
        return bool(self.more) or any(value.rest for value in values)

    @property
    def names_of_more(self) -> str:
        """The names of the lines that do not fit."""
        names = ", ".join(short(line.name) for line in self.more)
        return names if len(names) <= 120 else names[:120] + "…"


def view_of(record: ApprovalRecord) -> View:
    """What will run on this record, line by line."""
    lines = whole_lines(record)
    shown = lines if len(lines) <= _MOST_ROWS else lines[: _MOST_ROWS - 1]
    each = max(1, (_LINES - 2) // max(1, len(shown)))
    fitted = tuple(_fitted(line, each) for line in shown)
    return View(lines=fitted, more=tuple(lines[len(shown) :]))


def whole_lines(record: ApprovalRecord) -> list[Line]:
    """The same with nothing folded, what an edit changes first."""
    after, before = dict(_leaves(record.will_run)), dict(_leaves(record.arguments))
    edited = record.edited is not None
    names = [*after, *(name for name in before if edited and name not in after)]
    lines = [
        _line(name, after.get(name, _ABSENT), before.get(name, _ABSENT) if edited else None, edited)
        for name in names
    ]
    # What an edit changed comes first: it is what a second reviewer must see.
    return sorted(lines, key=lambda line: not line.changed)


def summary_of(record: ApprovalRecord, width: int = 120) -> str:
    """The arguments on one line, as far as they fit."""
    parts = [
        f"{line.name} {' '.join((line.value or Value(start='left out')).start.split())}"
        for line in view_of(record).lines
    ]
    text = " · ".join(parts)
    return text if len(text) <= width else text[: width - 1] + "…"


def _leaves(value: Mapping[str, Any], at: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """Each argument under its path; a mapping whose names could be misread stays whole."""
    for name, item in value.items():
        path = f"{at}{name}"
        nested = isinstance(item, Mapping) and not is_mask(item) and 0 < len(item) <= _MOST_ROWS
        if nested and depth < _DEEPEST and all(_NAME.fullmatch(key) for key in item):
            yield from _leaves(item, f"{path}.", depth + 1)
        else:
            yield path, item


def _line(name: str, after: Any, before: Any, edited: bool) -> Line:
    changed = edited and _differs(after, before)
    kinds = [_kind(name, value) for value in (after, before) if value not in (_ABSENT, None)]
    kind = next((each for each in kinds if each in ("lines", "json")), [*kinds, "value"][0])
    return Line(
        name=visible(name),
        kind=kind,
        value=None if after is _ABSENT else Value(start=_text(after)),
        before=Value(start=_text(before)) if changed and before is not _ABSENT else None,
        changed=changed,
        note=_grouped(after),
    )


def _differs(one: Any, other: Any) -> bool:
    if one is _ABSENT or other is _ABSENT:
        return one is not other
    return json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)


def _kind(name: str, value: Any) -> Kind:
    if is_mask(value):
        return "secret"
    if isinstance(value, (Mapping, list)):
        return "json"
    if isinstance(value, str) and ("\n" in value or len(value) > 2 * _COLUMNS):
        return "lines"
    last = _WORDS.sub("_", name.rpartition(".")[2])
    return "big" if _BIG.search(last) and not isinstance(value, bool) else "value"


def _text(value: Any) -> str:
    if is_mask(value):
        return "secret, not shown"
    if not isinstance(value, str):
        flat = json.dumps(value, ensure_ascii=False)
        small = len(flat) <= 2 * _COLUMNS or not isinstance(value, (Mapping, list))
        return visible(flat if small else json.dumps(value, ensure_ascii=False, indent=2))
    short_one = len(value) <= 2 * _COLUMNS and "\n" not in value
    if short_one and (value.strip() != value or value == "" or _reads_as_json(value)):
        return visible(json.dumps(value, ensure_ascii=False))
    return visible(value)


def _reads_as_json(text: str) -> bool:
    """Whether a text could be taken for a number, a truth value, or a quoted text."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _grouped(value: Any) -> str:
    """A large number with its digits in groups; empty for any other value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) < 10_000:
        return ""
    return f"{value:,}" if isinstance(value, int) or abs(value) < 1e15 else ""


def _fitted(line: Line, lines: int) -> Line:
    if line.before is not None:
        lines = max(1, lines // 2)
    return replace(
        line,
        value=None if line.value is None else _cut(line.value.start, lines),
        before=None if line.before is None else _cut(line.before.start, lines),
    )


def _cut(text: str, lines: int) -> Value:
    """As much of `text` as fits into `lines`, the rest apart."""
    at, left = 0, lines
    while left > 0 and at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end + 1
        needed = max(1, -(-(end - at) // _COLUMNS))
        at = end if needed <= left else at + left * _COLUMNS
        left -= needed
    if at >= len(text):
        return Value(start=text)
    return Value(start=text[:at], rest=text[at:], size=_size(text))


def _size(text: str) -> str:
    size = len(text.encode("utf-8", "replace"))
    said = f"{size:,} bytes" if size < 10_000 else f"{size / 1000:,.0f} kB"
    count = text.count("\n") + 1
    return f"{said}, {count:,} lines" if count > 1 else said
