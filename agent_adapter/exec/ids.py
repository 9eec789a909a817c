"""New ids, cheap enough for every call."""

from __future__ import annotations

import itertools
import os
import secrets

_prefix = secrets.token_hex(8)
_counter = itertools.count(1)


def new_id(kind: str) -> str:
    """`kind_…`, unique over processes and forks; not a secret."""
    return f"{kind}_{_prefix}{next(_counter):x}"


def new_secret_id(kind: str) -> str:
    """`kind_…`, unguessable: 128 random bits."""
    return f"{kind}_{secrets.token_hex(16)}"


def _forked() -> None:
    global _prefix
    _prefix = secrets.token_hex(8)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
