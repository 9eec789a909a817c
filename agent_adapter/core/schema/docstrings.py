"""What a docstring says about a tool and its parameters, in Google, NumPy or Sphinx style."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field

import docstring_parser


@dataclass(frozen=True, slots=True, kw_only=True)
class DocText:
    """The description of a tool, and of each of its parameters by name."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> DocText:
    """The summary, the long description and the parameter texts of a docstring."""
    cleaned = inspect.cleandoc(text) if text else ""
    if not cleaned:
        return DocText()
    try:
        parsed = docstring_parser.parse(cleaned)
    except docstring_parser.ParseError:
        return DocText(description=cleaned)
    parts = (parsed.short_description, parsed.long_description)
    parameters = {
        param.arg_name.lstrip("*"): " ".join(param.description.split())
        for param in parsed.params
        if param.description
    }
    described = "\n\n".join(part.strip() for part in parts if part and part.strip())
    return DocText(description=described, parameters=parameters)
