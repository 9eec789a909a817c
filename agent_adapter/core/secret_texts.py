"""Texts of foreign errors without what looks like a secret in them."""

from __future__ import annotations

import os
import re

_MASK = "***"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_SHORTEST = 8
_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',;]{6,}"), rf"\1 {_MASK}"),
    (
        re.compile(
            r"(?i)\b([a-z0-9_-]*(?:api[_ -]?key|token|secret|password|passwd|authorization))"
            r"([\"']?\s*[:=]\s*[\"']?)(?!\*\*\*)[^\s\"',;)}\]]{4,}"
        ),
        rf"\1\2{_MASK}",
    ),
    (re.compile(r"\b(?:sk|pk|rk|ghp|gho|xox[abp]|AKIA|AIza|hf)[-_A-Z0-9][A-Za-z0-9_-]{8,}"), _MASK),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+){1,2}"), _MASK),
    (re.compile(r"(://[^/\s:@]+:)[^/\s@]+@"), rf"\1{_MASK}@"),
)


def without_secrets(text: str, most: int) -> str:
    """`text` with credentials masked, and at most `most` characters of it.

    Masked are the forms that credentials have in error texts, and the values of environment
    variables whose name says that they are secret.
    """
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name):
            text = text.replace(value, _MASK)
    text = text[: 4 * most]  # before the patterns: an error may hold a whole page
    for pattern, mask in _PATTERNS:
        text = pattern.sub(mask, text)
    return text if len(text) <= most else f"{text[: most - 1]}…"
