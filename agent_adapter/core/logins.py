"""Names of people in the one form in which they are compared.

A log-in is written `source:name` (`os:kim`, `token:kim`), or as a bare name.
"""

from __future__ import annotations

import unicodedata

# Letters and marks that draw nothing: fillers, joiners and a blank pattern.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_HIDDEN = ("Cc", "Cf", "Cn", "Co", "Cs")


def folded(text: str) -> str:
    """`text` for comparison: NFKC, without case, invisible characters and space around it.

    It is empty for a text in which nothing can be seen.
    """
    spaced = "".join(" " if char.isspace() else char for char in text)
    seen = "".join(filter(_draws, unicodedata.normalize("NFKC", spaced)))
    seen = unicodedata.normalize("NFKC", seen.casefold())
    return " ".join("".join(filter(_draws, seen)).split())


def bare(login: str | None) -> str:
    """The name in a log-in, for comparison: what follows the last colon."""
    whole = folded(login or "")
    parts = [part for each in whole.split(":") if (part := each.strip())]
    return parts[-1] if parts else whole


def _draws(char: str) -> bool:
    if char in _BLANK or unicodedata.category(char) in _HIDDEN:
        return False
    return not ("\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef")
