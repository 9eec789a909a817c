"""The demo plug-in, visible for one test module as if it were installed."""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from agent_adapter.integrations.discovery import GROUP, available_integrations

PLUGIN = Path(__file__).parent.parent / "fixtures" / "demo_integration"


def demo() -> ModuleType:
    """The plug-in's module; it is on the path while `demo_on_path` holds."""
    return importlib.import_module("demo_integration")


@contextmanager
def demo_on_path(metadata: Path) -> Iterator[None]:
    """Puts the plug-in and its metadata, written to the folder `metadata`, on the path."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text("utf-8"))["project"]
    info = metadata / f"demo_integration-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    entries = project["entry-points"][GROUP]
    lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    added = [str(metadata), str(PLUGIN)]
    sys.path[:0] = added
    importlib.invalidate_caches()
    available_integrations(refresh=True)
    try:
        yield
    finally:
        for path in added:
            sys.path.remove(path)
        sys.modules.pop("demo_integration", None)
        importlib.invalidate_caches()
        available_integrations(refresh=True)
