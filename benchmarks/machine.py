"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["describe"]

PACKAGES = (
    "agent-adapter",
    "pydantic",
    "SQLAlchemy",
    "ag2",
    "agno",
    "ctrlrun",
    "agent-governance-toolkit-core",
)


def describe(folder: Path) -> dict[str, Any]:
    """Machine, versions and the cost of one `fsync` in `folder` (seconds)."""
    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "fsync_seconds": _fsync_seconds(folder),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _fsync_seconds(folder: Path) -> float:
    spent = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(50):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            spent.append(time.perf_counter() - began)
    return median(spent)
