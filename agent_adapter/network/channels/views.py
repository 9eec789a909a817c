"""Views: what a speaker reads of a channel, computed from the newest messages it may see."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent_adapter.flow.envelope import Envelope, visible_to

Renderer = Callable[[Envelope], str | None]
"""Returns the text of an envelope for a speaker; `None` leaves it out."""

NameResolver = Callable[[str], str]
"""Returns the name of a participant by id; the id itself if the name is unknown."""

_LABEL = re.compile(r"([\W_]*)[^:]{1,256}:")

LONGEST_TRANSCRIPT = 1000
"""The most messages in a transcript without a window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMessage:
    """One message as a participant sees it.

    Attributes:
        text: the text to show; views for several participants prefix the sender's name.
        sender_id: the sender's id; empty for a summary.
        sender_name: the sender's name.
        own: whether the reading participant sent it.
        summary: whether it stands for older messages that are not shown.
        envelope_id: the id of the message; empty for a summary.
    """

    text: str
    sender_id: str = ""
    sender_name: str = ""
    own: bool = False
    summary: bool = False
    envelope_id: str = ""


class ViewPolicy(Protocol):
    """Computes the messages that one participant sees; a pure function of its input."""

    @property
    def name(self) -> str:
        """The name by which manifests refer to it."""
        ...

    @property
    def window(self) -> int:
        """How many of the newest turns it needs: no more of the log is read."""
        ...

    def project(
        self,
        envelopes: Sequence[Envelope],
        *,
        participant_id: str,
        render_envelope: Renderer,
        name_for: NameResolver = str,
        earlier: int = 0,
    ) -> list[ViewMessage]:
        """The messages of `envelopes` (oldest first) as `participant_id` sees them.

        `earlier` is the number of older messages that were not read.
        """
        ...


class _Projection:
    """Base of the built-in views: a window, optional sender names, an optional summary."""

    name = ""
    _labelled = False
    _summarises = False

    def __init__(self, window: int) -> None:
        if window < 1:
            raise ValueError(f"recent_n is a whole number from 1, not {window!r}")
        self._window = window

    @property
    def window(self) -> int:
        """How many of the newest turns it needs."""
        return self._window

    def project(
        self,
        envelopes: Sequence[Envelope],
        *,
        participant_id: str,
        render_envelope: Renderer,
        name_for: NameResolver = str,
        earlier: int = 0,
    ) -> list[ViewMessage]:
        """The messages of `envelopes` as `participant_id` sees them; see `ViewPolicy`."""
        visible = [item for item in envelopes if visible_to(item, participant_id)]
        texts = [render_envelope(item) for item in visible]
        shown = [
            self._message(item, text, participant_id, name_for)
            for item, text in zip(visible, texts, strict=True)
            if text
        ]
        left_out = shown[: -self._window]
        if not self._summarises or not (left_out or earlier):
            return shown[-self._window :]
        speakers = {item.sender_name if self._labelled else item.sender_id for item in left_out}
        return [_summary(earlier + len(left_out), speakers), *shown[-self._window :]]

    def _message(
        self, envelope: Envelope, text: str, participant_id: str, name_for: NameResolver
    ) -> ViewMessage:
        own, name = envelope.sender_id == participant_id, name_for(envelope.sender_id)
        if not own:
            text = f"[{_label(name)}]: {quoted(text)}" if self._labelled else quoted_labels(text)
        return ViewMessage(
            text=text,
            sender_id=envelope.sender_id,
            sender_name=name,
            own=own,
            envelope_id=envelope.envelope_id,
        )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.window == self._window

    def __hash__(self) -> int:
        return hash((self.name, self._window))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._window})"


class FullTranscript(_Projection):
    """Every message in full, up to the newest 1,000."""

    name = "full_transcript"

    def __init__(self) -> None:
        super().__init__(LONGEST_TRANSCRIPT)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NamedTranscript(FullTranscript):
    """Every message with its sender's name, for channels of three or more."""

    name = "named_transcript"
    _labelled = True


class WindowedSummary(_Projection):
    """The newest `recent_n` messages after one line with the number of earlier ones."""

    name = "windowed_summary"
    _summarises = True

    def __init__(self, recent_n: int) -> None:
        super().__init__(recent_n)

    @property
    def recent_n(self) -> int:
        """How many of the newest messages it shows."""
        return self._window


class NamedWindowedSummary(WindowedSummary):
    """`WindowedSummary` with the sender's name on each message of another participant."""

    name = "named_windowed_summary"
    _labelled = True


def quoted(text: str) -> str:
    """`text` with `> ` before each line but the first: none looks like another speaker's."""
    return "\n> ".join(text.splitlines())


def quoted_labels(text: str) -> str:
    """`text` with `> ` before each line that looks like `[name]: …`, in brackets of any kind."""
    lines = text.splitlines()
    looks = [_is_label(line) for line in lines]
    if not any(looks):
        return text
    return "\n".join(f"> {line}" if look else line for line, look in zip(lines, looks, strict=True))


def _is_label(line: str) -> bool:
    found = _LABEL.match(unicodedata.normalize("NFKC", line[:1000]))
    # Signs that cannot be seen, or that mark up, may stand before the bracket.
    return found is not None and any(
        sign not in "({" and unicodedata.category(sign) == "Ps" for sign in found[1]
    )


def _label(name: str) -> str:
    """A name as it stands in brackets."""
    return name.replace("[", "(").replace("]", ")")


def _summary(count: int, speakers: set[str]) -> ViewMessage:
    plural = "" if count == 1 else "s"
    whose = f" from {', '.join(sorted(speakers))}" if speakers else ""
    text = f"Earlier in this channel: {count} message{plural}{whose}."
    return ViewMessage(text=text, summary=True)
