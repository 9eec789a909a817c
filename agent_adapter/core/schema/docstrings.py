"""Reads the docstring of a tool, in Google, NumPy or Sphinx style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import docstring_parser

_TITLES = r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters)"
_GOOGLE = re.compile(rf"{_TITLES}:\s*")
_NUMPY = re.compile(_TITLES)
_UNDERLINE = re.compile(r"-{3,}\s*")
_SPHINX = re.compile(r":(?:param|parameter|arg|argument|key|keyword|type)\b[^:]*:")
_SPHINX_TITLES = (
    (re.compile(r"^:returns?:\s*", re.MULTILINE), "Returns: "),
    (re.compile(r"^:raises?\s+([^:]+):\s*", re.MULTILINE), r"Raises \1: "),
    (re.compile(r"^:rtype:.*\n?", re.MULTILINE), ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocText:
    """The description of a tool, and of each of its parameters by name."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> DocText:
    """The texts of the parameters, and the rest of the docstring.

    Sections such as `Returns`, `Notes` and `Warning` belong to the description: a model needs them
    to choose the tool.
    """
    cleaned = inspect.cleandoc(text) if text else ""
    if not cleaned:
        return DocText()
    kept, sections = _without_parameters(cleaned.splitlines())
    described = "\n".join(kept)
    for pattern, title in _SPHINX_TITLES:
        described = pattern.sub(title, described)
    described = re.sub(r"\n\s*\n\s*(?:\n\s*)*", "\n\n", described).strip()
    return DocText(description=described, parameters=_parameters("\n".join(sections)))


def _without_parameters(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines outside of the sections about parameters, and those sections."""
    kept: list[str] = []
    sections: list[str] = []
    place = 0
    while place < len(lines):
        end = _section_end(lines, place)
        (sections if end > place else kept).extend(lines[place : max(end, place + 1)])
        place = max(end, place + 1)
    return kept, sections


def _section_end(lines: list[str], start: int) -> int:
    """Where the section about parameters that begins at `start` ends; `start` if none does."""
    line = lines[start]
    if _GOOGLE.fullmatch(line) or _SPHINX.match(line):
        end = start + 1
        while end < len(lines) and _goes_on(lines, end):
            end += 1
        return end
    if _NUMPY.fullmatch(line.strip()) and _underlined(lines, start):
        end = start + 2
        while end < len(lines) and not _underlined(lines, end):
            end += 1
        return end
    return start


def _goes_on(lines: list[str], place: int) -> bool:
    """Whether the line continues a section: blank, indented, or the next line of a Sphinx field."""
    line, before = lines[place], lines[place - 1]
    if not line.strip() or line[:1].isspace():
        return True
    in_field = not _GOOGLE.fullmatch(before) and bool(before.strip()) and not before[:1].isspace()
    return in_field and not line.startswith(":")


def _underlined(lines: list[str], place: int) -> bool:
    return place + 1 < len(lines) and bool(_UNDERLINE.fullmatch(lines[place + 1]))


def _parameters(sections: str) -> dict[str, str]:
    if not sections:
        return {}
    try:
        parsed = docstring_parser.parse(f"Parameters.\n\n{sections}")
    except docstring_parser.ParseError:
        return {}
    return {
        param.arg_name.lstrip("*"): " ".join(param.description.split())
        for param in parsed.params
        if param.description
    }
