"""Which definitions of a server's tools a person has accepted, in a file beside the program."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agent_adapter.core.canonical import digest
from agent_adapter.core.errors import IntegrationError, ToolDefinitionError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]  # its absence is looked for below

PINS_FILE = "mcp.lock.json"
"""Where accepted tools are kept unless another file is named: in the working directory."""

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a server says of one tool; `hash` is over all of it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    title: str | None = None
    annotations: Mapping[str, Any] | None = None

    @property
    def hash(self) -> str:
        """SHA-256 in hexadecimal over name, title, description, schema and annotations."""
        said: list[Any] = [self.name, self.title, self.description, dict(self.schema)]
        if self.annotations:
            said.append(dict(self.annotations))
        try:
            return digest(said)
        except (TypeError, ValueError, RecursionError) as exc:
            raise ToolDefinitionError(
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
            "annotations": dict(self.annotations or {}),
        }

    def is_what(self, accepted: Mapping[str, Any]) -> bool:
        """Whether this is the accepted definition; version 0.1 wrote none with annotations."""
        same = self if "annotations" in accepted else replace(self, annotations=None)
        return bool(accepted["hash"] == same.hash)


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
    program that imports. Several processes may share the file.
    """

    def __init__(self, path: str | os.PathLike[str] = PINS_FILE) -> None:
        self.path = Path(path)

    def review(self, server: str, offered: Iterable[Definition]) -> Review:
        """Pin a new server's tools; note what changed of a known one, and accept none of it."""
        offered = list(offered)
        with self._changing() as held:
            first = server not in held
            tools = held.setdefault(server, {})
            accepted, pinned, waiting = [], [], []
            for definition in offered:
                entry = tools.setdefault(definition.name, {"accepted": None, "offered": None})
                said = definition.as_json()
                if first:
                    pinned.append(definition.name)
                if first or (entry["accepted"] and definition.is_what(entry["accepted"])):
                    entry["accepted"], entry["offered"] = said, None
                    accepted.append(definition.name)
                else:
                    entry["offered"] = said
                    waiting.append(definition.name)
        return Review(accepted=tuple(accepted), pinned=tuple(pinned), waiting=tuple(waiting))

    def offer(self, server: str, definition: Definition) -> None:
        """Note a definition that differs from the accepted one, for a person to look at."""
        with self._changing() as held:
            entry = held.setdefault(server, {}).setdefault(
                definition.name, {"accepted": None, "offered": None}
            )
            entry["offered"] = definition.as_json()

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
        with self._changing() as held:
            entry = held.get(server, {}).get(tool)
            offered = entry["offered"] if entry is not None else None
            if entry is None or offered is None:
                raise IntegrationError(f"no change of {server}/{tool} waits in {self.path}")
            if offered["hash"] != expected:
                raise IntegrationError(
                    f"{server}/{tool} changed again while it was looked at; look at it once more"
                )
            entry["accepted"], entry["offered"] = offered, None

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """What the file holds, written back if it was changed; one process at a time."""
        with _locked(self.path.parent):
            held = self._read()
            before = json.dumps(held, sort_keys=True)
            yield held
            if json.dumps(held, sort_keys=True) != before:
                self._write(held)

    def _read(self) -> dict[str, Any]:
        try:
            held = json.loads(self.path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
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
        try:
            self._replace(text)
        except OSError as exc:
            raise IntegrationError(
                f"{self.path} cannot be written, so the tools cannot be pinned: {exc.strerror}; "
                "bring the file along from where it can be (commit it), or name another with pins="
            ) from exc

    def _replace(self, text: str) -> None:
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


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one process at a time changes a file in this folder; the others wait."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # no such folder, or a file system without locks
            if fcntl is not None:
                lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
                held.callback(os.close, lock)
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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
                annotations=said.get("annotations"),
            )
            same = definition.hash == said["hash"]
        except (KeyError, TypeError, ToolDefinitionError):
            same = False
        if not same:
            raise IntegrationError(
                f"{path}: the {state} definition of {name!r} is not what its hash stands for; "
                "restore the file, or remove the tool from it and accept it anew"
            )
