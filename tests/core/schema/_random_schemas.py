"""Random JSON Schemas: of every draft, right and wrong, small and hostile."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

NAMES = (
    "a", "b", "city", "type", "default", "properties", "items", "required", "enum", "$ref",
    "$filter", "año", "文", "x y", "", "a.b", "x" * 70, "1st", "_", "definitions", "__proto__",
    "self", "ctx", "for", "a/b~c", "%41", "\U0001f600", "\x00",
)  # fmt: skip
PATTERNS = (
    "^a", r"^\d+$", r"^\p{L}+$", "^(a+)+$", "(a|aa)+$", "[", "(?=a)b", r"(a)\1", "^(?!x)[a-z]*$",
    "(a{1,900}){1,900}", r"\w{1000}{1000}", "a{99999}", "(?:(?:a?){50}){50}", "", "[^]", "{",
    r"^[\w.-]+@[\w-]+\.[a-z]{2,}$", r"\u0041", "(?P<x>a)", r"\Z", "[[:alpha:]]", "[a&&b]", "é",
    r"(\p{L}|\d){1,300}", r"[\p{L}\p{N}\p{S}]{1,100}",
)  # fmt: skip
KINDS = ("string", "integer", "number", "boolean", "object", "array", "null")
REFERENCES = (
    "#", "#/$defs/d", "#/definitions/d", "#/properties/a", "#/nothing", "#anchor", "other.json",
    "https://example.com/schema", "#/$defs/d/properties/a", "#/properties/a~1b~0c", "#/%24defs/d",
)  # fmt: skip
WRONG: tuple[Any, ...] = (
    None,
    "",
    "text",
    0,
    -1,
    1.5,
    True,
    [],
    {},
    [None],
    [[]],
    {"a": 1},
    10**30,
)


class Maker:
    """Schemas and values of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._left = 60
        self._wrong = self._random.random() < 0.15

    def tool_schema(self) -> Any:
        """A schema for a tool's arguments; one in seven has keywords of the wrong type."""
        schema = self.schema(4)
        if isinstance(schema, dict) and self._chance(0.9):
            schema["type"] = "object"
            schema.setdefault("properties", self._properties(3))
        if isinstance(schema, dict) and self._chance(0.9):
            schema["$defs"] = {"d": self.schema(2), "unused": self.schema(1)}
            schema["definitions"] = {"d": self.schema(2)}
        if isinstance(schema, dict) and self._chance(0.3):
            drafts = ("draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12", "none")
            schema["$schema"] = f"http://json-schema.org/{self._one(*drafts)}/schema#"
        return schema

    def schema(self, depth: int) -> Any:
        """Any schema."""
        self._left -= 1
        if depth == 0 or self._left < 0 or self._chance(0.05):
            return self._one({}, True, False, {"type": self._one(*KINDS)}, {"type": "string"})
        schema: dict[str, Any] = {}
        if self._chance(0.8):
            schema["type"] = self._one(*KINDS) if self._chance(0.8) else self._some(KINDS)
        for _ in range(self._random.randrange(4)):
            keyword = self._one(*self._keywords)
            schema[keyword] = self._keywords[keyword](self, depth - 1)
        if schema.get("type") == "object" and self._chance(0.7):
            schema["properties"] = self._properties(depth - 1)
            schema["required"] = self._some([*schema["properties"], "unknown"])
        if self._wrong and self._chance(0.2):
            schema[self._one(*self._keywords)] = self._one(*WRONG)
        return schema

    def value(self, depth: int = 3) -> Any:
        """Any JSON value."""
        kind = self._random.randrange(9 if depth else 6)
        if kind == 6:
            return [self.value(depth - 1) for _ in range(self._random.randrange(4))]
        if kind >= 7:
            return {name: self.value(depth - 1) for name in self._some(NAMES)}
        plain = (None, True, self._random.randrange(-9, 10), 0.5, 5.0, "a" * self._one(0, 3, 40))
        return plain[kind]

    def arguments(self, schema: Any) -> dict[str, Any]:
        """Arguments with names that the schema knows, among others."""
        known = schema.get("properties", {}) if isinstance(schema, dict) else {}
        names = self._some([*(known if isinstance(known, dict) else ()), *NAMES[:6]])
        return {str(name): self.value() for name in names}

    def _properties(self, depth: int) -> dict[str, Any]:
        return {name: self.schema(depth) for name in self._some(NAMES)}

    def _schemas(self, depth: int) -> list[Any]:
        return [self.schema(depth) for _ in range(self._random.randrange(4))]

    def _some(self, choices: Any) -> list[Any]:
        count = self._random.randrange(min(len(choices), 4) + 1)
        return self._random.sample(list(choices), count)

    def _one(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _number(self, depth: int) -> Any:
        return self._one(0, 1, 2, 3, 0.5, 100, -1, 10**12)

    def _size(self, depth: int) -> Any:
        return self._one(0, 1, 2, 3, 10, 10**9)

    _keywords: dict[str, Callable[[Maker, int], Any]] = {  # noqa: RUF012  # never changed
        "properties": lambda self, depth: self._properties(depth),
        "patternProperties": lambda self, depth: {self._one(*PATTERNS): self.schema(depth)},
        "additionalProperties": lambda self, depth: self.schema(depth),
        "propertyNames": lambda self, depth: self.schema(depth),
        "required": lambda self, depth: self._some(NAMES),
        "items": lambda self, depth: self._one(self.schema(depth), self._schemas(depth)),
        "prefixItems": lambda self, depth: self._schemas(depth),
        "contains": lambda self, depth: self.schema(depth),
        "anyOf": lambda self, depth: self._schemas(depth),
        "oneOf": lambda self, depth: self._schemas(depth),
        "allOf": lambda self, depth: self._schemas(depth),
        "not": lambda self, depth: self.schema(depth),
        "if": lambda self, depth: self.schema(depth),
        "then": lambda self, depth: self.schema(depth),
        "else": lambda self, depth: self.schema(depth),
        "dependentSchemas": lambda self, depth: self._properties(depth),
        "dependentRequired": lambda self, depth: {self._one(*NAMES): self._some(NAMES)},
        "dependencies": lambda self, depth: {self._one(*NAMES): self._one([], self.schema(depth))},
        "unevaluatedProperties": lambda self, depth: self.schema(depth),
        "unevaluatedItems": lambda self, depth: self.schema(depth),
        "$ref": lambda self, depth: self._one(*REFERENCES[: self._one(3, 3, 3, len(REFERENCES))]),
        "$dynamicRef": lambda self, depth: self._one(*REFERENCES),
        "$id": lambda self, depth: self._one("urn:x", "https://example.com/a", "#anchor"),
        "$anchor": lambda self, depth: "anchor",
        "discriminator": lambda self, depth: {"propertyName": self._one(*NAMES)},
        "nullable": lambda self, depth: self._chance(0.5),
        "enum": lambda self, depth: [self.value(1) for _ in range(self._random.randrange(4))],
        "const": lambda self, depth: self.value(1),
        "default": lambda self, depth: self.value(1),
        "examples": lambda self, depth: [self.value(1)],
        "pattern": lambda self, depth: self._one("^a", "b$", self._one(*PATTERNS)),
        "format": lambda self, depth: self._one("date-time", "email", "regex", "uri", "x", "ipv4"),
        "minimum": _number,
        "maximum": _number,
        "exclusiveMinimum": lambda self, depth: self._one(True, False, 0, 5),
        "exclusiveMaximum": lambda self, depth: self._one(True, False, 0, 5),
        "multipleOf": lambda self, depth: self._one(1, 2, 0.1, 0.01, 1e-9),
        "minLength": _size,
        "maxLength": _size,
        "minItems": _size,
        "maxItems": _size,
        "minProperties": _size,
        "maxProperties": _size,
        "uniqueItems": lambda self, depth: self._chance(0.8),
        "title": lambda self, depth: "A title",
        "description": lambda self, depth: self._one("A text.", "x" * 3000, ""),
    }
