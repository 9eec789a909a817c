"""Slack's incoming webhooks: blocks of plain text, and links that open the decision page.

Nothing is decided from Slack: the buttons are links, and the console asks who it is.
"""

from __future__ import annotations

import json
from typing import Any

from agent_adapter.notify.channels.sending import Outgoing, post
from agent_adapter.notify.messages import Message

_MOST_TEXT = 2_900
_MOST_FACTS = 10


async def send_slack(outgoing: Outgoing) -> None:
    """POST the message to an incoming webhook."""
    id = outgoing.message.id
    body = json.dumps(blocks_of(outgoing.message)).encode()
    await post(outgoing.to.removeprefix("slack+"), body, {"idempotency-key": id})


def blocks_of(message: Message) -> dict[str, Any]:
    """The message as Slack reads it; no text of others is taken for markup or mentions."""
    blocks: list[dict[str, Any]] = [{"type": "header", "text": _plain(message.title, 150)}]
    facts = [_plain(f"{name}: {value}") for name, value in message.facts[:_MOST_FACTS]]
    if facts:
        blocks.append({"type": "section", "fields": facts})
    if message.quoted is not None:
        quoted = "\n".join(f"> {line}" for line in message.quoted.splitlines())
        head = "What will run, as the agent wrote it"
        if message.size > len(message.quoted):
            head += f" (the first {len(message.quoted):,} of {message.size:,} characters)"
        blocks.append({"type": "section", "text": _plain(f"{head}:\n{quoted}")})
    if message.link is not None:
        blocks.append({"type": "actions", "elements": _buttons(message, message.link)})
    said = _plain(f"Notification {message.id}; a repeat has the same id.")
    blocks.append({"type": "context", "elements": [said]})
    return {"text": _escaped(message.title), "blocks": blocks, "unfurl_links": False}


def _buttons(message: Message, link: str) -> list[dict[str, Any]]:
    if not message.decides:
        return [{"type": "button", "text": _plain("Open"), "url": link, "action_id": "open"}]
    return [
        {"type": "button", "text": _plain(label), "url": f"{link}#{verdict}", "action_id": verdict}
        for verdict, label in (("approve", "Approve…"), ("deny", "Deny…"))
    ]


def _plain(text: str, most: int = _MOST_TEXT) -> dict[str, Any]:
    shown = text if len(text) <= most else f"{text[: most - 1]}…"
    return {"type": "plain_text", "text": shown, "emoji": False}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
