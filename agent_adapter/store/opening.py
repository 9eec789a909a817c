"""Opening a store by its URL."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from agent_adapter.core.errors import StoreError
from agent_adapter.core.ports import Clock
from agent_adapter.store.base import Store
from agent_adapter.store.memory import open_memory

__all__ = ["open_store"]

_VARIABLE = "AGENT_ADAPTER_STORE"
_SCHEMES = "memory://, sqlite:///path/to/state.db (or a plain path)"


def open_store(
    url: str | os.PathLike[str] | None = None,
    *,
    clock: Clock = time.time,
    key: bytes | None = None,
) -> Store:
    """The store of a URL or a path: `memory://`, `sqlite:///relative.db`, `sqlite:////absolute.db`.

    Without a URL it is that of the environment variable `AGENT_ADAPTER_STORE`, or else
    `.agent_adapter/state.db` under the working directory. `key` (32 bytes) takes the place of the
    key file beside the database. `StoreError` names the place, the reason and the fix.
    """
    if url is None:
        url = os.environ.get(_VARIABLE) or _default_path()
    written = os.fspath(url)
    scheme = _scheme(written)
    if scheme == "memory":
        return open_memory(written, clock=clock, key=key)
    if scheme in ("", "sqlite"):
        from agent_adapter.store.sqlite import SqliteStore

        return SqliteStore(written, clock=clock, key=key)
    if scheme.split("+")[0] in ("postgresql", "postgres"):
        raise StoreError(
            f"{without_password(written)}: this version has no PostgreSQL store; use {_SCHEMES}"
        )
    raise StoreError(f"{without_password(written)}: no store has that scheme; use {_SCHEMES}")


def _scheme(written: str) -> str:
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", written)
    if found is None:
        return ""
    # `C:` is a drive and a colon may stand in a file's name; a scheme is followed by slashes.
    followed = written[found.end() :].startswith("//") or found[1].lower() in ("sqlite", "memory")
    return found[1].lower() if followed else ""


def without_password(url: str) -> str:
    """The URL with `***` where its password was."""
    return re.sub(r"(://[^/@:]*):.*@", r"\1:***@", url)


def _default_path() -> str:
    folder = Path.cwd() / ".agent_adapter"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"cannot make {folder}: {error.strerror};"
            f" set {_VARIABLE} or pass the URL of a store: {_SCHEMES}"
        ) from error
    return str(folder / "state.db")
