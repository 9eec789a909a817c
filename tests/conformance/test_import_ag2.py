"""A store that AG2's own hub wrote on the disk, taken over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ag2 import Agent
from ag2.knowledge import DiskKnowledgeStore
from ag2.network import Hub as Ag2Hub
from ag2.network import HubClient as Ag2Client
from ag2.network import LocalLink as Ag2Link
from ag2.network import Passport as Ag2Passport
from ag2.testing import TestConfig

from agent_adapter.cli.app import run
from agent_adapter.core.errors import StoreError
from agent_adapter.network import EV_TEXT, Hub, HubClient, LocalLink, Passport
from agent_adapter.network.compat.importing import import_ag2

pytestmark = pytest.mark.anyio


async def written(folder: Path) -> tuple[str, str]:
    """Let AG2's hub write a discussion that waits for bob, and one that has ended; their ids."""
    hub = await Ag2Hub.open(DiskKnowledgeStore(str(folder)), ttl_sweep_interval=0)
    people = Ag2Client(Ag2Link(hub), hub=hub)
    alice = await people.register_human(Ag2Passport(name="alice"))
    await hub.register(Agent("bob", config=TestConfig()), skill_md="# bob")
    waits = await alice.open(type="discussion", target="bob")
    ended = await alice.open(type="conversation", target="bob")
    await ended.close("enough")
    await waits.send("What do you think, bob?")
    await people.close()
    await hub.close()
    return waits.channel_id, ended.channel_id


async def test_a_store_is_taken_over_and_goes_on(tmp_path: Path) -> None:
    """Ids, logs and ends stay as they are, and the expected participant gets its turn."""
    waits, ended = await written(tmp_path / "ag2")
    async with await Hub.open(str(tmp_path / "hub.db")) as hub:
        done = await import_ag2(hub, tmp_path / "ag2")
        assert (done.agents, done.channels, done.known) == (2, 2, 0)
    async with await Hub.open(str(tmp_path / "hub.db")) as hub, HubClient(LocalLink(hub)) as client:
        assert (await hub.get_channel(ended)).close_reason == "enough"
        assert await hub.get_skill(hub.find_agent_id("bob") or "") == "# bob"
        alice = await client.register_human(Passport(name="alice"))
        await client.attach(lambda text: f"I heard: {text}", "bob")
        said = await alice.wait_for_channel_event(
            channel_id=waits, predicate=lambda item: item.event_type == EV_TEXT, timeout=30
        )
        assert "What do you think, bob?" in said.event_data["text"]
        assert (await hub.replay(waits)).matches


async def test_a_second_import_changes_nothing(tmp_path: Path) -> None:
    """Everything is known already."""
    await written(tmp_path / "ag2")
    async with await Hub.open("memory://") as hub:
        first = await import_ag2(hub, tmp_path / "ag2")
        again = await import_ag2(hub, tmp_path / "ag2")
        assert (again.agents, again.channels, again.audit_records) == (0, 0, 0)
        assert again.known == first.agents + first.channels + first.audit_records


def _spoilt(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("agents/a1/passport.json", "{", "passport.json: not JSON"),
        ("agents/a1/passport.json", '{"name": "x", "agent_id": "a2"}', "its folder of another"),
        ("agents/a1/passport.json", '{"nom": "x"}', "passport.json: not a Passport"),
        ("channels/c1/metadata.json", "[]", "metadata.json"),
        ("audit/audit.jsonl", "{}\nnope", "line 2 is not JSON"),
    ],
)
async def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    """The error names it, and nothing is written."""
    await written(tmp_path)
    _spoilt(tmp_path / name, text)
    async with await Hub.open("memory://") as hub:
        with pytest.raises(StoreError, match=said):
            await import_ag2(hub, tmp_path)
        assert await hub.list_agents() == []


async def test_another_folder_is_refused(tmp_path: Path) -> None:
    """A folder without participants and channels is no store of AG2."""
    async with await Hub.open("memory://") as hub:
        with pytest.raises(StoreError, match="is no store of AG2"):
            await import_ag2(hub, tmp_path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`import-ag2` says as JSON what was taken over."""
    _spoilt(
        tmp_path / "ag2" / "agents" / "a1" / "passport.json",
        json.dumps({"name": "ann", "agent_id": "a1"}),
    )
    where = ["--store", str(tmp_path / "hub.db"), "--json"]
    assert run(["import-ag2", str(tmp_path / "ag2"), *where]) == 0
    done: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (done["agents"], done["known"]) == (1, 0)
