"""Which definitions of a server's tools a person has accepted, in a file beside the program."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_adapter.core.canonical import digest
from agent_adapter.core.errors import IntegrationError

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a server says of one tool; `hash` is over all of it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    title: str | None = None

    @property
    def hash(self) -> str:
        """SHA-256 in hexadecimal over name, title, description and schema."""
        try:
            return digest([self.name, self.title, self.description, dict(self.schema)])
        except (TypeError, ValueError, RecursionError) as exc:
            raise IntegrationError(
                f"the MCP tool {self.name!r} has a schema that is not JSON ({exc}); "
                "leave it out with only=[…]"
            ) from None

    def as_json(self) -> dict[str, Any]:
        """The definition and its hash, as the file holds them."""
        return {
            "hash": self.hash,
            "title": self.title,
            "description": self.description,
            "schema": dict(self.schema),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One tool in the file: the accepted definition, and one that waits for a person."""

    server: str
    tool: str
    accepted: Mapping[str, Any] | None
    offered: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What became of a server's tools: names accepted before or now, and names that wait."""

    accepted: tuple[str, ...]
    pinned: tuple[str, ...]
    waiting: tuple[str, ...]


class ToolPins:
    """The accepted tools of MCP servers, in a JSON file that belongs under version control.

    The tools of a server that is new to the file are pinned as they are first seen. Afterwards a
    changed tool, or a further one, waits until `accept` is called for it: by a person, never by the
    program that imports.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def review(self, server: str, offered: Iterable[Definition]) -> Review:
        """Pin a new server's tools; note what changed of a known one, and accept none of it."""
        held = self._read()
        before = json.dumps(held, sort_keys=True)
        first = server not in held
        tools = held.setdefault(server, {})
        accepted, pinned, waiting = [], [], []
        for definition in offered:
            entry = tools.setdefault(definition.name, {"accepted": None, "offered": None})
            said = definition.as_json()
            if first:
                entry["accepted"] = said
                pinned.append(definition.name)
            if entry["accepted"] is not None and entry["accepted"]["hash"] == said["hash"]:
                entry["offered"] = None
                accepted.append(definition.name)
            else:
                entry["offered"] = said
                waiting.append(definition.name)
        if json.dumps(held, sort_keys=True) != before:
            self._write(held)
        return Review(accepted=tuple(accepted), pinned=tuple(pinned), waiting=tuple(waiting))

    def offer(self, server: str, definition: Definition) -> None:
        """Note a definition that differs from the accepted one, for a person to look at."""
        held = self._read()
        entry = held.setdefault(server, {}).setdefault(
            definition.name, {"accepted": None, "offered": None}
        )
        entry["offered"] = definition.as_json()
        self._write(held)

    def waiting(self, server: str | None = None) -> list[Pin]:
        """Everything that waits for a person, of one server or of all."""
        return [pin for pin in self.pins(server) if pin.offered is not None]

    def pins(self, server: str | None = None) -> list[Pin]:
        """Every tool of one server or of all, in the order of the file."""
        return [
            Pin(server=name, tool=tool, accepted=entry["accepted"], offered=entry["offered"])
            for name, tools in self._read().items()
            if server is None or name == server
            for tool, entry in tools.items()
        ]

    def accept(self, server: str, tool: str, expected: str) -> None:
        """Accept the waiting definition whose hash is `expected`: the one a person looked at."""
        held = self._read()
        entry = held.get(server, {}).get(tool)
        offered = entry["offered"] if entry is not None else None
        if entry is None or offered is None:
            raise IntegrationError(f"no change of {server}/{tool} waits in {self.path}")
        if offered["hash"] != expected:
            raise IntegrationError(
                f"{server}/{tool} changed again while it was looked at; look at it once more"
            )
        entry["accepted"], entry["offered"] = offered, None
        self._write(held)

    def _read(self) -> dict[str, Any]:
        try:
            held = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as exc:
            raise IntegrationError(f"{self.path} cannot be read as pins: {exc}") from exc
        problem = _flaw(held)
        if problem:
            raise IntegrationError(
                f"{self.path} holds no pins ({problem}); restore it, or remove it and import again"
            )
        servers: dict[str, Any] = held["servers"]
        for tools in servers.values():
            for name, entry in tools.items():
                _check_hashes(self.path, name, entry)
        return servers

    def _write(self, servers: Mapping[str, Any]) -> None:
        """Replace the file whole: a torn one would forget what was accepted."""
        text = json.dumps({"version": _VERSION, "servers": servers}, indent=2, sort_keys=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _flaw(held: Any) -> str:
    if not isinstance(held, dict) or held.get("version") != _VERSION:
        return f"it is not of version {_VERSION}"
    servers = held.get("servers")
    if not isinstance(servers, dict) or not all(isinstance(t, dict) for t in servers.values()):
        return "it has no servers"
    entries = [entry for tools in servers.values() for entry in tools.values()]
    if not all(isinstance(e, dict) and {"accepted", "offered"} <= set(e) for e in entries):
        return "a tool lacks `accepted` or `offered`"
    return ""


def _check_hashes(path: Path, name: str, entry: Mapping[str, Any]) -> None:
    """What a person reads in the file must be what the hash stands for."""
    for state in ("accepted", "offered"):
        said = entry[state]
        if said is None:
            continue
        try:
            definition = Definition(
                name=name,
                title=said["title"],
                description=said["description"],
                schema=said["schema"],
            )
            same = definition.hash == said["hash"]
        except (KeyError, TypeError):
            same = False
        if not same:
            raise IntegrationError(
                f"{path}: the {state} definition of {name!r} is not what its hash stands for; "
                "restore the file, or remove the tool from it and accept it anew"
            )
