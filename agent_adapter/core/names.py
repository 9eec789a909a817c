"""Foreign names of tools and parameters as names that every provider accepts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

NAME_PATTERN = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
"""The tool names that every provider accepts."""

_PARAMETER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
"""The parameter names that every provider accepts."""

_LONGEST = 64


def fitting_name(name: str) -> str:
    """`name` with characters that a provider refuses replaced by `_`.

    A name that loses letters (too long, or in another script) ends in a part of its hash.
    """
    if NAME_PATTERN.fullmatch(name):
        return name
    fitting = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    if not re.match(r"[a-zA-Z_]", fitting):
        fitting = f"_{fitting}"
    return _hashed(fitting, name) if _loses(name, fitting) else fitting


def fitting_names(names: Iterable[str]) -> dict[str, str]:
    """An accepted name for each of `names`; names that would collide end in their hash.

    An accepted name is kept. The result does not depend on the order of `names`, so an approval
    finds its tool after a server lists its tools in another order.
    """
    found = {name: fitting_name(name) for name in names}
    shared = [folded_name(fitting) for fitting in found.values()]
    return {
        name: fitting
        if name == fitting or shared.count(folded_name(fitting)) == 1
        else _hashed(fitting, name)
        for name, fitting in found.items()
    }


def aliases(properties: Iterable[str]) -> dict[str, str]:
    """The refused parameter names of one object, each with an accepted alias.

    An alias depends only on the names of the object, so no table is needed to reverse it: `$filter`
    is `filter` if the object has no such name, and `año` is `a_o` and a part of its hash.
    """
    names = tuple(properties)
    if all(map(_PARAMETER.fullmatch, names)):
        return {}
    return dict(_aliases(names))


@lru_cache(maxsize=1024)
def _aliases(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    wanted = {name: _fitting_parameter(name) for name in names if not _PARAMETER.fullmatch(name)}
    taken = [*(name for name in names if name not in wanted), *wanted.values()]
    return tuple(
        (name, _hashed(alias, name) if taken.count(alias) > 1 else alias)
        for name, alias in wanted.items()
    )


def _fitting_parameter(name: str) -> str:
    fitting = re.sub(r"[^a-zA-Z0-9_]", "_", name).strip("_") or "value"
    if fitting[0].isdigit():
        fitting = f"_{fitting}"
    return _hashed(fitting, name) if _loses(name, fitting) else fitting


def _loses(name: str, fitting: str) -> bool:
    """Whether `fitting` has lost letters of `name`: too long, or in another script."""
    foreign = any(char.isalnum() and not char.isascii() for char in name)
    return foreign or len(fitting) > _LONGEST or not any(char.isalnum() for char in name)


def _hashed(fitting: str, name: str) -> str:
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{fitting[: _LONGEST - 9]}_{mark}"


def folded_name(name: str) -> str:
    """The form in which a registry compares names."""
    return name.replace("-", "_").casefold()
