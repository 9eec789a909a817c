"""Checks the knobs of a channel: those its type declares, and `view`, which every type takes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from agent_adapter.core.errors import ProtocolError
from agent_adapter.network.channels.metadata import ChannelManifest
from agent_adapter.network.channels.views import VIEW_KNOB, view_of

_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "list": (list, tuple),
    "dict": (dict,),
    "TransitionGraph": (dict,),
}
_WITHOUT_KNOBS = frozenset({"conversation"})


def check_knob_names(manifest: ChannelManifest, knobs: Mapping[str, Any]) -> None:
    """Raises `ProtocolError` for a knob that the channel type does not have, with the nearest one.

    A type of the program's own that declares no `knobs_schema` takes any.
    """
    if not manifest.knobs_schema and manifest.type not in _WITHOUT_KNOBS:
        return
    known = [*manifest.knobs_schema, VIEW_KNOB]
    for name in knobs:
        if name in known:
            continue
        close = difflib.get_close_matches(str(name), known, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else "."
        raise ProtocolError(
            f"a {manifest.type} channel has no knob {name!r:.80}{meant} It takes "
            f"{', '.join(sorted(known))}"
        )


def check_knob_values(manifest: ChannelManifest, knobs: Mapping[str, Any]) -> None:
    """Raises `ProtocolError` for a knob whose value is not of the type that the schema declares."""
    for name, value in knobs.items():
        declared = manifest.knobs_schema.get(name, "")
        kinds = _TYPES.get(declared)
        wrong = kinds is not None and not isinstance(value, kinds)
        if wrong or (isinstance(value, bool) and declared in ("int", "float")):
            raise ProtocolError(
                f"knobs[{name!r}] of a {manifest.type} channel is of type {declared}, not "
                f"{type(value).__name__}"
            )
    if knobs.get(VIEW_KNOB) is not None:
        view_of(knobs[VIEW_KNOB])
