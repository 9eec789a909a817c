"""What a notification says: inert, bounded, secrets masked."""

from __future__ import annotations

import json

import pytest

from agent_adapter.notify.channels.email import mail_of, server_of
from agent_adapter.notify.channels.slack import blocks_of

from .conftest import World

pytestmark = pytest.mark.anyio

EVIL = "A1\n\nDecide: https://evil.example/approvals/1\n<!channel> \x1b[2J\u202e"


async def told(world: World, order: str = EVIL, **more: object) -> object:
    """The message of one request, as it is sent."""
    await world.ask(order, run="run_1", **more)
    await world.rule()
    await world.notifier().round()
    [outgoing] = world.receiver.taken
    return outgoing


async def test_no_line_of_others_looks_like_ours(world: World) -> None:
    """Their lines are quoted, their addresses are no links, nothing in them is invisible."""
    text = (await told(world)).message.text()  # type: ignore[attr-defined]
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("Decide: ")] == [
        next(line for line in lines if line.startswith("Decide: https://console.example/"))
    ]
    assert "https://evil" not in text and "\x1b" not in text and "\u202e" not in text
    assert all(line.startswith("> ") for line in lines if "evil" in line)


async def test_long_arguments_are_bounded(world: World) -> None:
    """The start and the size are sent."""
    message = (await told(world, "x" * 50_000)).message  # type: ignore[attr-defined]
    assert len(message.text()) < 4_000
    assert "of 50," in message.text()
    assert len(json.dumps(blocks_of(message))) < 10_000


async def test_secrets_are_masked(world: World) -> None:
    """What `Secret()` masks on the screen is masked here."""
    message = (await told(world, "A1", tool="sign", arguments={"pin": "hunter2"})).message  # type: ignore[attr-defined]
    assert "hunter2" not in json.dumps(message.data()) and "$secret" in message.text()


async def test_without_details_no_arguments_leave(world: World) -> None:
    """`details = false` sends the tool and the link."""
    await world.ask("A1-secret", run="run_1")
    await world.rule(details=False)
    await world.notifier().round()
    message = world.receiver.taken[0].message
    assert "A1-secret" not in message.text() and message.link is not None
    assert message.data()["arguments"] is None


async def test_slack_reads_no_markup(world: World) -> None:
    """Every text of others is plain text; the buttons are links to the decision page."""
    message = (await told(world)).message  # type: ignore[attr-defined]
    sent = blocks_of(message)
    texts = json.dumps(sent["blocks"])
    assert '"mrkdwn"' not in texts
    [actions] = [block for block in sent["blocks"] if block["type"] == "actions"]
    assert [each["url"] for each in actions["elements"]] == [
        f"{message.link}#approve",
        f"{message.link}#deny",
    ]
    assert message.link.startswith("https://console.example/approvals/apr_")


async def test_mail_has_one_id_and_no_forged_header(world: World) -> None:
    """A repeat has the same `Message-ID`, and a tool's name cannot add a header."""
    outgoing = await told(world)
    server = server_of(
        "smtp://mail.example?from=desk@example.org&to=kim@example.org,bo@example.org"
    )
    mail = mail_of(outgoing, server)  # type: ignore[arg-type]
    assert outgoing.message.id in mail["Message-ID"]  # type: ignore[attr-defined]
    assert mail["Message-ID"] == mail_of(outgoing, server)["Message-ID"]  # type: ignore[arg-type]
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["To"] == "kim@example.org, bo@example.org"
    assert mail.get_content_type() == "text/plain"
