"""Views: what a speaker reads of a channel, computed from the newest messages it may see."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent_adapter.core.errors import ProtocolError
from agent_adapter.flow.envelope import Envelope, visible_to
from agent_adapter.network.channels.metadata import ChannelMetadata

Renderer = Callable[[Envelope], Any]
"""Returns the text of an envelope for a speaker, or its parts; `None` leaves it out."""

NameResolver = Callable[[str], str]
"""Returns the name of a participant by id; the id itself if the name is unknown."""

_LABEL = re.compile(r"([\W_]*)[^:]{1,256}:")

LONGEST_TRANSCRIPT = 1000
"""The most messages in a transcript without a window."""

VIEW_KNOB = "view"
"""The knob of every channel type that chooses the view of its participants."""


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


class SeenMessages(list[ViewMessage]):
    """The messages of a view.

    A program for AG2 awaits them. It gets AG2's events if its renderer gave parts, else this list.
    """

    def __init__(
        self,
        messages: Iterable[ViewMessage],
        parts: Mapping[str, Any] | None = None,
        count: int = 0,
    ) -> None:
        super().__init__(messages)
        self._parts, self._count = parts, count

    def __await__(self) -> Generator[Any, None, list[Any]]:
        yield from ()  # a generator, so that it can be awaited; it never waits
        if self._parts is None:
            return self
        from agent_adapter.network.compat.view_events import view_events

        return view_events(self, self._parts, self._count)


class ViewPolicy(Protocol):
    """Computes the messages that one participant sees; a pure function of its input.

    A view of AG2 works in its place: one without `window`, whose `project` is async, takes
    `channel`, and returns AG2's events. It gets the newest 1,000 entries of the log.
    """

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
        channel: ChannelMetadata | None = None,
    ) -> list[ViewMessage]:
        """The messages of `envelopes` (oldest first) as `participant_id` sees them.

        `earlier` is the number of older messages that were not read. `earlier` and `channel` are
        passed to a view that takes them.
        """
        ...


class _Projection:
    """Base of the built-in views: a window, optional sender names, an optional summary.

    With `pin` the channel's opening message stays in view when it is older than the window.
    """

    name = ""
    _labelled = False
    _summarises = False

    def __init__(self, window: int, *, pin: bool = True) -> None:
        if type(window) is not int or window < 1:
            raise ValueError(f"recent_n is a whole number from 1, not {window!r}")
        self._window = window
        self.pins = pin

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
        channel: ChannelMetadata | None = None,
    ) -> SeenMessages:
        """The messages of `envelopes` as `participant_id` sees them; see `ViewPolicy`."""
        visible = [item for item in envelopes if visible_to(item, participant_id)]
        rendered = [render_envelope(item) for item in visible]
        texts = [item if isinstance(item, str) else text_of_parts(item) for item in rendered]
        shown = [
            self._message(item, text, participant_id, name_for)
            for item, text in zip(visible, texts, strict=True)
            if text
        ]
        parts = None
        if any(not isinstance(item, str) for item in rendered if item is not None):
            parts = {item.envelope_id: part for item, part in zip(visible, rendered, strict=True)}
        left_out, kept = shown[: -self._window], shown[-self._window :]
        if not self._summarises or not (left_out or earlier):
            return SeenMessages(kept, parts)
        speakers = {item.sender_name if self._labelled else item.sender_id for item in left_out}
        count = earlier + len(left_out)
        return SeenMessages([_summary(count, speakers), *kept], parts, count)

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
        return type(other) is type(self) and (other.window, other.pins) == (
            self._window,
            self.pins,
        )

    def __hash__(self) -> int:
        return hash((self.name, self._window, self.pins))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._window})"


class FullTranscript(_Projection):
    """Every message in full, up to the newest 1,000."""

    name = "full_transcript"

    def __init__(self, *, pin: bool = True) -> None:
        super().__init__(LONGEST_TRANSCRIPT, pin=pin)

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

    def __init__(self, recent_n: int, *, pin: bool = True) -> None:
        super().__init__(recent_n, pin=pin)

    @property
    def recent_n(self) -> int:
        """How many of the newest messages it shows."""
        return self._window


class NamedWindowedSummary(WindowedSummary):
    """`WindowedSummary` with the sender's name on each message of another participant."""

    name = "named_windowed_summary"
    _labelled = True


_BUILT_IN: dict[str, tuple[Callable[..., ViewPolicy], bool]] = {
    FullTranscript.name: (FullTranscript, False),
    NamedTranscript.name: (NamedTranscript, False),
    WindowedSummary.name: (WindowedSummary, True),
    NamedWindowedSummary.name: (NamedWindowedSummary, True),
}


BUILT_IN_VIEWS = frozenset(kind for kind, _ in _BUILT_IN.values())
"""The classes of the views that have a name."""


def view_of(knob: Any) -> ViewPolicy:
    """The view that `knobs["view"]` names: a name, or `{"name", "recent_n", "pin"}`.

    Raises `ProtocolError` for anything else, with the names there are.
    """
    asked = {"name": knob} if isinstance(knob, str) else knob
    if not isinstance(asked, Mapping):
        raise ProtocolError(f"knobs['view'] is a view's name or an object, not {knob!r:.80}")
    named = str(asked.get("name"))
    found = _BUILT_IN.get(named)
    if found is None:
        close = difflib.get_close_matches(named, _BUILT_IN, n=1)
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        raise ProtocolError(
            f"knobs['view'] names {named!r:.80}{meant}; the views are {', '.join(_BUILT_IN)}; a "
            "view of your own is set at the participant: client.view = MyView()"
        )
    kind, windowed = found
    takes = {"name", "pin", "recent_n"} if windowed else {"name", "pin"}
    lacks = windowed and "recent_n" not in asked
    if lacks or set(asked) - takes or type(asked.get("pin", True)) is not bool:
        form = {"name": named} | ({"recent_n": 20} if windowed else {}) | {"pin": True}
        raise ProtocolError(f"knobs['view'] is written as {form}, not {dict(asked)!r:.200}")
    given = {name: value for name, value in asked.items() if name != "name"}
    try:
        return kind(**given)
    except ValueError as exc:
        raise ProtocolError(f"knobs['view']: {exc}") from exc


def text_of_parts(rendered: Any) -> str | None:
    """The text of what a renderer returned: a text, one part, or several."""
    if rendered is None or isinstance(rendered, str):
        return rendered
    parts = rendered if isinstance(rendered, (list, tuple)) else (rendered,)
    texts = [item if isinstance(item, str) else getattr(item, "content", None) for item in parts]
    return "\n".join(item for item in texts if isinstance(item, str)) or None


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
