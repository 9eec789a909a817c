"""The table of operations in docs/network/protocol.md: `python -m tests.network._protocol_page`."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

from agent_adapter.network.links.operation import HubOperation
from agent_adapter.network.links.operations import OPERATIONS

PAGE = Path(__file__).parents[2] / "docs" / "network" / "protocol.md"

HEAD = "| operation | parameters | result | who may | what it does |\n|---|---|---|---|---|\n"


def row(operation: HubOperation) -> str:
    """One line of the table."""
    signature = inspect.signature(operation.method)
    _, *parameters = signature.parameters.values()
    shown = ", ".join(
        f"{item.name}: {item.annotation}"
        + ("" if item.default is item.empty else f" = {_json(item.default)}")
        for item in parameters
    )
    cells = (
        f"`{operation.name}`",
        f"`{shown}`" if shown else "",
        f"`{signature.return_annotation}`",
        ", and ".join(access.text for access in operation.access),
        operation.summary,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def missing(page: str) -> list[str]:
    """The operations whose line the page lacks, or has otherwise."""
    lines = set(page.splitlines())
    return [name for name, item in OPERATIONS.items() if row(item) not in lines]


def unknown(page: str) -> list[str]:
    """The operations that the page lists and the table does not have."""
    listed = re.findall(r"^\| `(\w+)` \|.*\|.*\|.*\|.*\|$", _table(page), re.MULTILINE)
    return [name for name in listed if name not in OPERATIONS]


def written(page: str) -> str:
    """The page with the table of operations as it is now."""
    table = HEAD + "".join(f"{row(item)}\n" for item in OPERATIONS.values())
    return page.replace(_table(page), table)


def _table(page: str) -> str:
    start = page.index(HEAD.splitlines()[0])
    end = page.find("\n\n", start)
    return page[start : end + 1 if end >= 0 else len(page)]


def _json(value: object) -> str:
    return "[]" if value == () else json.dumps(value)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
