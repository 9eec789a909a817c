"""What a second name for a function takes over from the first: its gate, effects and trust.

A function knows the tools it was made into, so that no other name for it, in whatever registry,
loses the gate by leaving it out. The knowledge lies on the function itself and ends with it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

SPEC_ATTRIBUTE = "__agent_adapter_spec__"
"""The attribute under which a decorated function carries its `ToolSpec`."""

_GATED = "__agent_adapter_gated__"
_INHERITED = ("confirm", "effects", "trust", "sinks")

_methods: WeakKeyDictionary[Any, dict[Any, dict[str, Any]]] = WeakKeyDictionary()
"""Bound methods carry no attributes: what was said of them, by object and function."""


def inherited(fn: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """`given`, with the fields that it leaves out as another name for `fn` has them."""
    return {**_known(fn), **given}


def attach(fn: Any, spec: Any) -> None:
    """Let `fn` carry its spec; another name, or one with a weaker gate, does not take its place."""
    policy = {name: getattr(spec, name) for name in _INHERITED}
    if inspect.ismethod(fn):
        with suppress(TypeError):  # an object that cannot be a key
            _methods.setdefault(fn.__self__, {}).setdefault(fn.__func__, policy)
        return
    own = vars(fn).get(SPEC_ATTRIBUTE) if hasattr(fn, "__dict__") else None
    kept = spec
    if own is not None and own.fn is fn:
        weaker = strictness(spec.confirm) < strictness(own.confirm)
        kept = own if weaker or own.name != spec.name else spec
    with suppress(AttributeError):  # a slotted object: the registry has it
        setattr(fn, SPEC_ATTRIBUTE, kept)
        if spec.confirm is not False:
            setattr(fn, _GATED, gated_names(fn) | {spec.name})


def gated_names(fn: Any) -> frozenset[str]:
    """The names under which a person is asked before this very function runs."""
    found: frozenset[str] = getattr(_plain(fn), _GATED, frozenset())
    return found


def strictness(confirm: Any) -> int:
    """How much a gate asks: never, sometimes, always."""
    return 2 if confirm is True else int(confirm is not False)


def _known(fn: Any) -> dict[str, Any]:
    if inspect.ismethod(fn):
        with suppress(TypeError):
            known = _methods.get(fn.__self__, {}).get(fn.__func__)
            if known is not None:
                return known
    spec = getattr(_plain(fn), SPEC_ATTRIBUTE, None)
    return {} if spec is None else {name: getattr(spec, name) for name in _INHERITED}


def _plain(fn: Any) -> Any:
    while isinstance(fn, functools.partial) and SPEC_ATTRIBUTE not in vars(fn):
        fn = fn.func
    return fn
