"""Where the key of a database's store is kept: never in the database that it vouches for."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from agent_adapter.core.errors import StoreError

KEY_FILE = "AGENT_ADAPTER_KEY_FILE"
"""The environment variable that names the file of the key."""


def default_key_path(parameters: dict[str, Any], schema: str) -> Path:
    """The file that the environment names, else one in the home directory, by database."""
    named = os.environ.get(KEY_FILE)
    if named:
        return Path(named)
    parts = [parameters.get(name) or "" for name in ("host", "port", "dbname")]
    name = "-".join(re.sub(r"[^A-Za-z0-9_.]+", "_", str(part)) for part in (*parts, schema))
    try:
        folder = Path.home() / ".agent_adapter"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        raise StoreError(
            f"there is no place for the store's key: {error}; name a file with {KEY_FILE},"
            " or pass key="
        ) from error
    return folder / f"{name.strip('-_')}.key"
