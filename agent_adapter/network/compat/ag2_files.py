"""What a `DiskKnowledgeStore` of AG2's network holds; read and checked as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from agent_adapter.core.errors import AgentAdapterError, StoreError
from agent_adapter.flow.envelope import Envelope
from agent_adapter.network.channels.metadata import ChannelMetadata
from agent_adapter.network.identity import Passport, Resume
from agent_adapter.network.rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Ag2Agent:
    """A registered participant, and the page it published."""

    passport: Passport
    resume: Resume
    rule: Rule
    skill: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ag2Channel:
    """A channel with its whole log; `file` is where its metadata is."""

    metadata: ChannelMetadata
    log: tuple[Envelope, ...]
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Ag2Store:
    """Everything that is taken over, and how many tasks are not."""

    agents: tuple[Ag2Agent, ...] = ()
    channels: tuple[Ag2Channel, ...] = ()
    audit: tuple[Mapping[str, Any], ...] = field(default_factory=tuple)
    tasks: int = 0


def read_ag2_store(folder: Path) -> Ag2Store:
    """The store in `folder`; `StoreError` names the file that is missing or cannot be read."""
    if not folder.is_dir():
        raise StoreError(f"{folder}: there is no such folder; pass that of the DiskKnowledgeStore")
    if not any((folder / name).is_dir() for name in ("agents", "channels")):
        raise StoreError(
            f"{folder} is no store of AG2's network: it has neither agents/ nor channels/"
        )
    agents = tuple(_agent(item) for item in _folders(folder / "agents"))
    names = {item.passport.agent_id or "": item.passport.name for item in agents}
    return Ag2Store(
        agents=agents,
        channels=tuple(_channel(item, names) for item in _folders(folder / "channels")),
        audit=tuple(_lines(folder / "audit" / "audit.jsonl")),
        tasks=len(_folders(folder / "tasks")),
    )


def seconds(at: str | None, file: Path) -> float | None:
    """ISO 8601 as seconds since the epoch."""
    if not at:
        return None
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        raise StoreError(f"{file}: {at!r:.80} is no time in ISO 8601") from None


def _agent(folder: Path) -> Ag2Agent:
    passport = _record(folder / "passport.json", Passport)
    if passport.agent_id != folder.name:
        raise StoreError(
            f"{folder / 'passport.json'}: it is of {passport.agent_id!r}, and its folder of another"
        )
    resume, rule = folder / "resume.json", folder / "rule.json"
    skill = folder / "SKILL.md"
    return Ag2Agent(
        passport=passport,
        resume=_record(resume, Resume) if resume.exists() else Resume(),
        rule=_record(rule, Rule) if rule.exists() else Rule(),
        skill=_text(skill) if skill.exists() else None,
    )


def _channel(folder: Path, names: Mapping[str, str]) -> Ag2Channel:
    file = folder / "metadata.json"
    metadata = _record(file, ChannelMetadata)
    if metadata.channel_id != folder.name:
        raise StoreError(f"{file}: it is of {metadata.channel_id!r}, and its folder of another")
    participants = [
        replace(item, name=names.get(item.agent_id, "")) for item in metadata.participants
    ]
    log = [_envelope(data, folder / "wal.jsonl") for data in _lines(folder / "wal.jsonl")]
    for place, envelope in enumerate(log, 1):
        if envelope.channel_id != metadata.channel_id or not envelope.envelope_id:
            raise StoreError(f"{folder / 'wal.jsonl'}: line {place} is no entry of this channel")
    return Ag2Channel(
        metadata=replace(metadata, participants=participants), log=tuple(log), file=file
    )


def _envelope(data: Mapping[str, Any], file: Path) -> Envelope:
    try:
        return Envelope.from_dict(data)
    except AgentAdapterError as exc:
        raise StoreError(f"{file}: {exc}") from None


def _record(file: Path, kind: type[Any]) -> Any:
    try:
        return kind.from_dict(json.loads(_text(file)))
    except (ValueError, RecursionError) as exc:
        raise StoreError(f"{file}: not JSON: {exc}") from None
    except AgentAdapterError as exc:
        raise StoreError(f"{file}: {exc}") from None


def _lines(file: Path) -> Iterator[Mapping[str, Any]]:
    if not file.exists():
        return
    for number, line in enumerate(_text(file).splitlines(), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as exc:
            raise StoreError(f"{file}: line {number} is not JSON: {exc}") from None
        if not isinstance(data, dict):
            raise StoreError(f"{file}: line {number} is not a JSON object")
        yield data


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise StoreError(f"{file} cannot be read: {exc}") from None


def _folders(parent: Path) -> list[Path]:
    return sorted(item for item in parent.iterdir() if item.is_dir()) if parent.is_dir() else []
