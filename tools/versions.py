"""Print the README's table of supported frameworks, made from the project's extras.

`python tools/versions.py` prints it; a test compares it with the README.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

TITLES = {
    "ag2": "AG2",
    "agno": "Agno",
    "anthropic": "Anthropic",
    "autogen": "AutoGen",
    "fastmcp": "FastMCP",
    "generic": "Plain loop",
    "google_genai": "Google GenAI",
    "langchain": "LangChain",
    "langgraph": "LangGraph",
    "mcp": "MCP",
    "openai": "OpenAI",
}
"""How each integration is written."""


def table(project: dict[str, Any]) -> str:
    """The table for the project file's content: one row for each integration."""
    extras = project["optional-dependencies"]
    rows = ["| for | extra | works with |", "|---|---|---|"]
    for name in sorted(project["entry-points"]["agent_adapter.integrations"]):
        title = f"[{TITLES.get(name, name)}](docs/integrations/{name}.md)"
        extra = name.replace("_", "-")
        if extra in extras:
            ranges = ", ".join(f"`{requirement}`" for requirement in extras[extra])
            rows.append(f"| {title} | `{extra}` | {ranges} |")
        else:
            rows.append(f"| {title} | none | the client of OpenAI, Anthropic or Google GenAI |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    print(table(content["project"]), end="")
