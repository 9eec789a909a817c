"""The Berkeley Function Calling Leaderboard: its functions, and the calls that it expects."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workloads.corpora.sources import ForeignTool, base_python, run

RELEASE = "2026.3.23"
DATA = "bfcl_eval/data/"
EXPECTED = 3526
"""The unique functions of this release."""

# As the benchmark itself reads the types of its functions (`GORILLA_TO_OPENAPI`).
TYPES = {
    "dict": "object", "HashMap": "object", "Hashtable": "object", "object": "object",
    "tuple": "array", "list": "array", "Array": "array", "ArrayList": "array", "Queue": "array",
    "Stack": "array", "Set": "array", "array": "array",
    "float": "number", "double": "number", "number": "number",
    "byte": "integer", "short": "integer", "long": "integer", "Bigint": "integer",
    "integer": "integer",
    "char": "string", "String": "string", "string": "string",
    "bool": "boolean", "Boolean": "boolean", "boolean": "boolean",
}  # fmt: skip
OTHER_LANGUAGES = ("java", "javascript")
"""Corpora whose expected calls are source text of another language."""


def fetched(cache: Path) -> Path:
    """The release's wheel in `cache`, downloaded once and never installed."""
    found = sorted(cache.glob(f"bfcl_eval-{RELEASE}-*.whl"))
    if not found:
        package = f"bfcl-eval=={RELEASE}"
        run([base_python(), "-m", "pip", "download", "--no-deps", "-d", ".", package], cache)
        found = sorted(cache.glob(f"bfcl_eval-{RELEASE}-*.whl"))
    return found[0]


def tools(wheel: Path) -> list[ForeignTool]:
    """Every unique function, with the calls that the benchmark accepts for it."""
    files = _files(wheel)
    answers = {
        Path(name).name: _answers(text)
        for name, text in files.items()
        if "possible_answer/" in name and name.endswith(".json")
    }
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    calls: dict[str, list[Mapping[str, Any]]] = {}
    for name in filter(_holds_functions, files):
        corpus = Path(name).stem.removeprefix("BFCL_v4_")
        for row in _rows(files[name]):
            expected = answers.get(Path(name).name, {}).get(str(row.get("id")), [])
            for function in _functions(row):
                key = json.dumps(function, sort_keys=True)
                found.setdefault(key, (corpus, function))
                if not corpus.endswith(OTHER_LANGUAGES):
                    calls.setdefault(key, []).extend(_accepted(function, expected))
    named: Counter[str] = Counter()
    made = []
    for key, (corpus, function) in found.items():
        place = f"{corpus}/{function['name']}"
        named[place] += 1
        made.append(
            ForeignTool(
                corpus=f"bfcl/{corpus}",
                name=str(function["name"]),
                description=str(function.get("description", "")),
                schema=converted(function.get("parameters", {})),
                number=named[place],
                calls=tuple(calls.get(key, ())),
            )
        )
    return made


def _files(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(name for name in archive.namelist() if name.startswith(DATA))
        return {name.removeprefix(DATA): archive.read(name).decode() for name in names}


def converted(node: Any) -> Any:
    """`node` with the benchmark's names of types as JSON Schema's; an unknown type is any."""
    if not isinstance(node, Mapping):
        return node
    result = {key: value for key, value in node.items() if key != "type"}
    kind = TYPES.get(str(node.get("type")))
    if kind is not None:
        result["type"] = kind
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        result["properties"] = {name: converted(part) for name, part in properties.items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            result[keyword] = converted(node[keyword])
    return result


def _holds_functions(name: str) -> bool:
    parts = Path(name).parts
    return name.endswith(".json") and (
        len(parts) == 1
        or parts[0] == "multi_turn_func_doc"
        or parts[:2] == ("unused_datasets", "question")
    )


def _rows(text: str) -> Iterator[dict[str, Any]]:
    try:
        whole = json.loads(text)
        rows = whole if isinstance(whole, list) else [whole]
    except ValueError:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    yield from (row for row in rows if isinstance(row, dict))


def _functions(row: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    listed = row.get("function", [row] if "parameters" in row else [])
    for each in listed if isinstance(listed, list) else [listed]:
        if isinstance(each, dict) and "name" in each:
            yield each


def _answers(text: str) -> dict[str, list[Any]]:
    return {
        str(row["id"]): row["ground_truth"]
        for row in _rows(text)
        if isinstance(row.get("ground_truth"), list)
    }


def _accepted(function: Mapping[str, Any], expected: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The expected calls of `function`, each with the first value of every argument."""
    for call in expected:
        if isinstance(call, Mapping) and isinstance(call.get(function["name"]), Mapping):
            yield _first_values(call[function["name"]])


def _first_values(choices: Mapping[str, Any]) -> dict[str, Any]:
    """An argument's list holds the accepted values; an empty text among them is "left out"."""
    values = {}
    for name, accepted in choices.items():
        listed = accepted if isinstance(accepted, list) else [accepted]
        given = [value for value in listed if value != ""]
        if given:
            values[name] = _value(given[0])
    return values


def _value(value: Any) -> Any:
    """Objects hold lists of accepted values as well."""
    if isinstance(value, Mapping):
        return _first_values(value)
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value
