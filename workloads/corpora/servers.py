"""Public MCP servers of npm and PyPI, asked over stdio for their tools and for nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import venv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mcp import StdioServerParameters

from agent_adapter.integrations.mcp import look_at
from workloads.corpora.sources import ForeignTool, run

ANSWER_SECONDS = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server's package and version, its program, and what it insists on before it answers."""

    package: str
    version: str
    program: str
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    npm: bool = True

    @property
    def name(self) -> str:
        """A short name for a report."""
        return self.program.removeprefix("mcp-server-").removesuffix("-server")


_OFFICIAL = "@modelcontextprotocol/server"
_RELEASE = "2026.8.31"
# The credentials open nothing: a list of tools is all that is asked for.
SERVERS = (
    Server(package=f"{_OFFICIAL}-everything", version=_RELEASE, program="mcp-server-everything"),
    Server(
        package=f"{_OFFICIAL}-filesystem",
        version=_RELEASE,
        program="mcp-server-filesystem",
        arguments=(".",),
    ),
    Server(package=f"{_OFFICIAL}-memory", version=_RELEASE, program="mcp-server-memory"),
    Server(
        package=f"{_OFFICIAL}-sequential-thinking",
        version=_RELEASE,
        program="mcp-server-sequential-thinking",
    ),
    Server(
        package="@notionhq/notion-mcp-server",
        version="2.5.2",
        program="notion-mcp-server",
        env={"NOTION_TOKEN": "ntn_none"},
    ),
    Server(package="@playwright/mcp", version="0.0.83", program="playwright-mcp"),
    Server(
        package="@zereight/mcp-gitlab",
        version="2.1.64",
        program="mcp-gitlab",
        env={"GITLAB_PERSONAL_ACCESS_TOKEN": "glpat-none", "GITLAB_TOOLSETS": "all"},
    ),
    Server(
        package="airtable-mcp-server",
        version="1.14.0",
        program="airtable-mcp-server",
        env={"AIRTABLE_API_KEY": "pat.none"},
    ),
    Server(
        package="firecrawl-mcp",
        version="3.22.2",
        program="firecrawl-mcp",
        env={"FIRECRAWL_API_KEY": "fc-none"},
    ),
    Server(
        package="mongodb-mcp-server",
        version="3.0.4",
        program="mongodb-mcp-server",
        env={"MDB_MCP_CONNECTION_STRING": "mongodb://127.0.0.1:1", "MDB_MCP_TELEMETRY": "disabled"},
    ),
    Server(
        package="tavily-mcp",
        version="0.2.22",
        program="tavily-mcp",
        env={"TAVILY_API_KEY": "tvly-none"},
    ),
    Server(package="mcp-server-fetch", version="2026.10.24", program="mcp-server-fetch", npm=False),
    Server(package="mcp-server-git", version="2026.10.19", program="mcp-server-git", npm=False),
    Server(
        package="mcp-server-time",
        version="2026.10.19",
        program="mcp-server-time",
        arguments=("--local-timezone", "UTC"),
        npm=False,
    ),
)


def tools(cache: Path) -> tuple[list[ForeignTool], dict[str, str]]:
    """The tools of every server, from `cache` after the first time; the servers that failed."""
    found: list[ForeignTool] = []
    failed: dict[str, str] = {}
    missing = [server for server in SERVERS if not _list_of(server, cache).exists()]
    for server in missing:
        try:
            _install(server, cache)
            asyncio.run(_ask(server, cache))
        except Exception as exc:
            failed[server.name] = f"{type(exc).__name__}: {exc}"[:500]
    for server in SERVERS:
        listed = _list_of(server, cache)
        if listed.exists():
            found += [
                ForeignTool(corpus=f"mcp/{server.name}", **tool)
                for tool in json.loads(listed.read_text())
            ]
    return found, failed


def _list_of(server: Server, cache: Path) -> Path:
    return cache / f"tools-{server.name}-{server.version}.json"


def _install(server: Server, cache: Path) -> None:
    if server.npm:
        folder = cache / "npm"
        folder.mkdir(exist_ok=True)
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        run(
            ["npm", "install", *quiet, "--prefix", ".", f"{server.package}@{server.version}"],
            folder,
        )
        return
    folder = cache / "python"
    if not (folder / "bin" / "pip").exists():
        venv.create(folder, with_pip=True)
    program = str(folder / "bin" / "python")
    run([program, "-m", "pip", "install", "-q", f"{server.package}=={server.version}"], cache)


async def _ask(server: Server, cache: Path) -> None:
    """Write the server's list of tools; it starts in a folder of its own."""
    programs = cache / ("npm/node_modules/.bin" if server.npm else "python/bin")
    work = cache / "work"
    work.mkdir(exist_ok=True)
    parameters = StdioServerParameters(
        command=str(programs / server.program),
        args=list(server.arguments),
        env={"PATH": os.environ.get("PATH", ""), "HOME": str(work), **server.env},
        cwd=str(work),
    )
    async with asyncio.timeout(ANSWER_SECONDS):
        found = await look_at(parameters, name=server.name)
    rows = [
        {"name": each.name, "description": each.description, "schema": each.schema}
        for each in found
    ]
    _list_of(server, cache).write_text(json.dumps(rows, ensure_ascii=False, indent=1))
