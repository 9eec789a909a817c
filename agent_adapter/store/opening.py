"""Opening a store by its URL; its scheme names the back end."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from agent_adapter.core.errors import StoreError
from agent_adapter.core.ports import Clock
from agent_adapter.store.backends import backend_of, schemes
from agent_adapter.store.base import Store
from agent_adapter.store.retention import Retention, set_policies

STORE_VARIABLE = "AGENT_ADAPTER_STORE"
"""The environment variable with the URL of the store."""

_DEFAULT_NAME = "state.db"
_FORMS = (
    "memory://, sqlite:///path/to/state.db (or a plain path),"
    " postgresql://user:password@host/database"
)


def open_store(
    url: str | os.PathLike[str] | None = None,
    *,
    clock: Clock = time.time,
    key: bytes | None = None,
    retention: Mapping[str, Retention] | Retention | None = None,
) -> Store:
    """The store of a URL or a path.

    `memory://`, `sqlite:///relative.db`, `sqlite:////absolute.db`, or
    `postgresql://user:password@host:5432/database`.

    Without a URL it is that of the environment variable `AGENT_ADAPTER_STORE`, or else
    `.agent_adapter/state.db` under the working directory. `key` (32 bytes) takes the place of the
    key file. Other schemes come from plug-ins.

    `retention` sets how long records are kept: one policy for calls and channels without a tenant,
    or one per tenant. It stays set; hubs of the store and `agent-adapter db prune` carry it out.

    Raises:
        StoreError: the place, the reason and the fix.
        MissingDependency: the back end needs packages that are not installed; the pip command.
    """
    if url is None:
        url = os.environ.get(STORE_VARIABLE) or _default_path()
    written = os.fspath(url)
    scheme = _scheme(written) or "sqlite"
    backend = backend_of(scheme)
    if backend is not None:
        opened = backend(written, clock=clock, key=key)
        if retention is not None:
            wanted = {"": retention} if isinstance(retention, Retention) else dict(retention)
            opened.post(partial(set_policies, wanted=wanted, by="open_store"))
        return opened
    given = without_password(written)
    raise StoreError(
        f"{given}: no store has the scheme {scheme!r}, only {', '.join(schemes())}; use {_FORMS}"
    )


def missing_store(url: str | os.PathLike[str] | None = None) -> str | None:
    """The place that a URL names, if no store is there; `None` if one is, or nobody can tell.

    Nothing is created or opened. Back ends of plug-ins are asked through their function `exists`,
    if they have one.
    """
    default = str(_default_folder() / _DEFAULT_NAME)
    written = os.fspath(url or os.environ.get(STORE_VARIABLE) or default)
    scheme = _scheme(written) or "sqlite"
    if scheme == "memory":
        return f"{written} ends with its process, and this one has just begun"
    backend = backend_of(scheme)
    exists = None if backend is None else getattr(backend, "exists", None)
    return None if exists is None or exists(written) else without_password(written)


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


def _default_folder() -> Path:
    return Path.cwd() / ".agent_adapter"


def _default_path() -> str:
    folder = _default_folder()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        ignore = folder / ".gitignore"
        with contextlib.suppress(FileExistsError):
            made = os.open(ignore, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(made, "w", encoding="utf-8") as file:
                file.write("*\n")
    except OSError as error:
        raise StoreError(
            f"cannot make {folder}: {error.strerror};"
            f" set {STORE_VARIABLE} or pass the URL of a store: {_FORMS}"
        ) from error
    return str(folder / _DEFAULT_NAME)
