"""E-mail over SMTP: `smtp://user:password@host:port?from=…&to=…`, or `smtps://` for TLS at once."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import parse_qs, unquote, urlsplit

from agent_adapter.core.hosts import is_loopback
from agent_adapter.notify.channels.sending import SECONDS, Outgoing, SendFailed

_MODES = ("auto", "require", "never")


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """Where and how mail is handed over."""

    host: str
    port: int
    tls: bool
    starttls: str
    user: str | None
    password: str | None
    sender: str
    receivers: tuple[str, ...]


async def send_email(outgoing: Outgoing) -> None:
    """Hand the message to the mail server; a repeat has the same `Message-ID`."""
    server = server_of(outgoing.to)
    mail = mail_of(outgoing, server)
    try:
        await asyncio.to_thread(_deliver, server, mail)
    except (OSError, smtplib.SMTPException, ValueError) as exc:
        code = getattr(exc, "smtp_code", None)
        raise SendFailed(
            f"the mail server refused it ({type(exc).__name__}{'' if code is None else f' {code}'})"
        ) from exc


def server_of(url: str) -> MailServer:
    """The parts of an address; `SendFailed` names what is missing or wrong."""
    parts = urlsplit(url)
    options = parse_qs(parts.query, keep_blank_values=True)
    unknown = sorted(options.keys() - {"from", "to", "starttls"})
    sender = _one(options, "from")
    receivers = tuple(each for value in options.get("to", ()) for each in value.split(",") if each)
    mode = _one(options, "starttls") or "auto"
    if unknown or not parts.hostname or not sender or not receivers or mode not in _MODES:
        raise SendFailed(
            "the address is not smtp://host?from=ADDRESS&to=ADDRESS"
            " with starttls=auto, require or never"
        )
    tls = parts.scheme == "smtps"
    try:
        port = parts.port or (465 if tls else 587 if parts.username else 25)
        for each in (sender, *receivers):
            Address(addr_spec=each.strip())
    except Exception as exc:
        raise SendFailed(f"the address has a bad port or mailbox ({type(exc).__name__})") from exc
    return MailServer(
        host=parts.hostname,
        port=port,
        tls=tls,
        starttls=mode,
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        sender=sender.strip(),
        receivers=tuple(each.strip() for each in receivers),
    )


def mail_of(outgoing: Outgoing, server: MailServer) -> EmailMessage:
    """The mail: text alone, so that nothing in it is markup."""
    message, mail = outgoing.message, EmailMessage()
    mail["From"] = Address("agent-adapter", addr_spec=server.sender)
    mail["To"] = ", ".join(server.receivers)
    mail["Subject"] = f"[agent-adapter] {message.title}"
    mail["Date"] = format_datetime(datetime.fromtimestamp(message.at, UTC))
    mail["Message-ID"] = f"<{message.id}@agent-adapter.invalid>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Agent-Adapter-Notification"] = message.id
    mail.set_content(message.text(), cte="quoted-printable")
    return mail


def _deliver(server: MailServer, mail: EmailMessage) -> None:
    context = ssl.create_default_context()
    if server.tls:
        opened: smtplib.SMTP = smtplib.SMTP_SSL(
            server.host, server.port, timeout=SECONDS, context=context
        )
    else:
        opened = smtplib.SMTP(server.host, server.port, timeout=SECONDS)
    with opened as client:
        client.ehlo()
        secure = server.tls
        if not secure and server.starttls != "never" and client.has_extn("starttls"):
            client.starttls(context=context)
            client.ehlo()
            secure = True
        if not secure and server.starttls == "require":
            raise ValueError("the server offers no STARTTLS")
        if server.user is not None:
            if not secure and not is_loopback(server.host):
                raise ValueError("a password is not sent without TLS")
            client.login(server.user, server.password or "")
        client.send_message(mail, server.sender, list(server.receivers))


def _one(options: dict[str, list[str]], name: str) -> str | None:
    values = options.get(name, [])
    return values[0] if len(values) == 1 else None
