"""Classifies the types of a tool's parameters."""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from agent_adapter.core.inject import Secret, Sink

_SCALARS = (str, int, bool, float, type(None))


def is_plain(annotation: Any) -> bool:
    """Whether the type consists of JSON types only, without custom code."""
    origin = get_origin(annotation)
    if origin is Annotated:
        base, *metadata = get_args(annotation)
        return is_plain(base) and all(_is_inert(item) for item in metadata)
    if annotation in _SCALARS or annotation in (list, dict):
        return True
    if origin is Literal:
        return all(type(value) in _SCALARS for value in get_args(annotation))
    if origin in (Union, types.UnionType, list):
        return all(is_plain(member) for member in get_args(annotation))
    if origin is dict:
        key, value = get_args(annotation)
        return key is str and is_plain(value)
    return False


def is_closed(annotation: Any) -> bool:
    """Whether a plain type fully describes its values: it contains no bare list or dict."""
    if annotation in (list, dict):
        return False
    return all(is_closed(member) for member in get_args(annotation) if not _is_metadata(member))


def _is_metadata(member: Any) -> bool:
    return isinstance(member, (FieldInfo, Secret, Sink, annotated_types.BaseMetadata, str, int))


def _is_inert(item: Any) -> bool:
    if isinstance(item, FieldInfo):
        return item.default_factory is None and all(_is_inert(part) for part in item.metadata)
    if isinstance(item, annotated_types.Predicate):
        return False
    return isinstance(item, (Secret, Sink, annotated_types.BaseMetadata, str)) or (
        type(item).__module__.startswith("pydantic.")
        and type(item).__name__ == "PydanticGeneralMetadata"
    )
