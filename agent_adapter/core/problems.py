"""Problems of arguments, one line per field: path, problem, expectation."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core.core_schema import ErrorType

from agent_adapter.core.schema.mending import json_text_at
from agent_adapter.core.schema.references import target_of

Path = tuple[str | int, ...]
"""Where in the arguments a problem is: keys and indexes from the top."""

MAX_PROBLEMS = 50
"""The most problems of one call that are listed."""

JSON_TEXT = "you sent JSON text where an object or array belongs; send the value itself"
"""The problem of arguments that were encoded as JSON twice."""

_WITHOUT_VALUE = frozenset(get_args(ErrorType)) - {"value_error", "assertion_error"}
"""The kinds of Pydantic's own problems, whose texts have no value in them."""

_LONGEST = 80
"""The most characters of an unknown name that are compared and quoted."""


def capped(problems: Sequence[str]) -> list[str]:
    """The first problems, and the number of further ones."""
    more = len(problems) - MAX_PROBLEMS
    return [*problems[:MAX_PROBLEMS], *([f"and {more} more"] if more > 0 else [])]


def unknown_argument(key: Any, known: Iterable[str]) -> str:
    """The problem line of an argument that the tool does not have."""
    names = sorted(known)
    if not isinstance(key, str):
        return f"{type(key).__name__} key: argument names are strings (expected {_listed(names)})"
    near = difflib.get_close_matches(key[:_LONGEST], names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{_printable(key)}: unknown argument{hint} (expected {_listed(names)})"


def field_problems(
    error: ValidationError,
    args: Mapping[str, Any],
    schema: Mapping[str, Any],
    secrets: frozenset[str],
    guarded: frozenset[str] = frozenset(),
) -> list[str]:
    """One line per field of a Pydantic error; a secret's value is never quoted.

    Of the arguments in `guarded`, which hold secrets inside, no text of a validator is quoted.
    """
    found: dict[Path, list[str]] = {}
    for item in error.errors(include_url=False, include_context=False):
        path = _data_path(item["loc"], args, item["type"])
        quoted = item["type"] in _WITHOUT_VALUE or not path or path[0] not in guarded
        secret = bool(path) and (path[0] in secrets or not quoted)
        if item["type"] == "extra_forbidden" and path:
            found.setdefault(path, [])
            continue
        problem = _problem(item["type"], item["msg"], secret)
        if json_text_at(_node_at(schema, path), item["input"], schema) is not None:
            problem = JSON_TEXT
        lines = found.setdefault(path, [])
        if problem not in lines:
            lines.append(problem)
    return [_line(path, problems, schema) for path, problems in found.items()]


def _line(path: Path, problems: list[str], schema: Mapping[str, Any]) -> str:
    if not problems:
        prefix = f"{path_text(path[:-1])}." if len(path) > 1 else ""
        return prefix + unknown_argument(path[-1], fields_at(schema, path[:-1]))
    return f"{path_text(path)}: {' or '.join(problems)} (expected {expected_at(schema, path)})"


def path_text(path: Sequence[str | int]) -> str:
    """`("items", 0, "id")` as `items[0].id`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{_printable(part)}"
    return text.removeprefix(".") or "arguments"


def expected_at(schema: Mapping[str, Any], path: Sequence[str | int]) -> str:
    """What the schema expects at `path`, in a few words."""
    return _described(_node_at(schema, path), schema)


def fields_at(schema: Mapping[str, Any], path: Sequence[str | int]) -> list[str]:
    """The fields of the object at `path`, of every alternative it may have."""
    node = _node_at(schema, path)
    options = [node, *(_followed(option, schema) for option in _options(node))]
    return [name for option in options for name in option.get("properties", {})]


def _node_at(schema: Mapping[str, Any], path: Sequence[str | int]) -> Mapping[str, Any]:
    node: Any = schema
    for part in path:
        node = _child(_followed(node, schema), part, schema)
    return _followed(node, schema)


def _problem(kind: str, message: str, secret: bool) -> str:
    if kind == "missing":
        return "is missing"
    if secret:
        return "is not valid"
    message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return message if message[1:2].isupper() else message[:1].lower() + message[1:]


def _data_path(loc: tuple[int | str, ...], args: Any, kind: str) -> Path:
    """`loc` without the names of union members and validators, which are not in the data."""
    path: list[str | int] = []
    node = args
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        if _is_in(part, node):
            node = node[part]
        elif not (last and kind == "missing"):
            continue
        path.append(part)
    return tuple(path)


def _is_in(part: str | int, node: Any) -> bool:
    if isinstance(node, Mapping):
        return part in node
    return isinstance(part, int) and isinstance(node, (list, tuple)) and part < len(node)


def _child(node: Mapping[str, Any], part: str | int, root: Mapping[str, Any]) -> Any:
    for option in (node, *_options(node)):
        inner = _followed(option, root)
        if isinstance(part, int):
            if "items" in inner:
                return inner["items"]
            prefix = inner.get("prefixItems", [])
            if part < len(prefix):
                return prefix[part]
        elif part in inner.get("properties", {}):
            return inner["properties"][part]
        elif isinstance(inner.get("additionalProperties"), Mapping):
            return inner["additionalProperties"]
    return {}


def _options(node: Mapping[str, Any]) -> list[Any]:
    return [*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())]


def _followed(node: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(node, Mapping):
        return {}
    reference = node.get("$ref")
    return target_of(reference, root) if isinstance(reference, str) else node


def _described(node: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if "enum" in node:
        return "one of " + ", ".join(json.dumps(value) for value in node["enum"])
    if "const" in node:
        return json.dumps(node["const"])
    options = _options(node)
    if options:
        texts = [_described(_followed(option, root), root) for option in options]
        return " or ".join(dict.fromkeys(texts))
    kind = node.get("type")
    if not isinstance(kind, str):
        return "a value that the schema allows"
    if kind == "array" and isinstance(node.get("items"), Mapping):
        return f"array of {_described(_followed(node['items'], root), root)}"
    return f"{kind} ({node['format']})" if "format" in node else kind


def unwritable(failure: Exception) -> str:
    """The problem line of arguments that cannot be checked at all, and why."""
    text = str(failure)
    if "surrogate" in text:
        return "arguments: a text has a lone surrogate (expected Unicode text)"
    if "Circular" in text or "depth" in text or isinstance(failure, RecursionError):
        return "arguments: they contain themselves or nest too deeply (expected JSON values)"
    if "not a number that JSON has" in text:
        return f"arguments: {text} (expected finite numbers)"
    if "serializ" in text.lower():
        return "arguments: a value cannot be written as JSON (expected JSON values)"
    return f"arguments: checking them raised {type(failure).__name__} (expected other values)"


def _printable(key: str) -> str:
    shown = key if len(key) <= _LONGEST else key[:_LONGEST] + "…"
    return shown if shown.isprintable() else ascii(shown)[1:-1]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "no arguments"
