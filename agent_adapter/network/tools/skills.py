"""Skill pages: Markdown with a head of `key: value` lines between two lines of `---`."""

from __future__ import annotations

from typing import Any, cast

from agent_adapter.network.identity import Passport, Resume

_FENCE = "---"
_NO_SUMMARY = "Network-registered agent."


class ParsedSkill(dict[str, Any]):
    """A skill page in two parts, `{"frontmatter", "body"}`, also readable as attributes."""

    @property
    def frontmatter(self) -> dict[str, Any]:
        """The values of the head by key."""
        return cast("dict[str, Any]", self["frontmatter"])

    @property
    def body(self) -> str:
        """The text after the head."""
        return cast(str, self["body"])


def parse_skill_frontmatter(md: str) -> ParsedSkill:
    """The parts of a skill page; a page without a complete head is body as a whole.

    Only lines of the form `key: value` are read; blank lines and comments (`#`) are skipped.
    """
    head, found, body = md.removeprefix(_FENCE).removeprefix("\n").partition(f"\n{_FENCE}")
    if not md.startswith(_FENCE) or not found:
        return ParsedSkill(frontmatter={}, body=md)
    pairs = (line.strip().partition(":") for line in head.splitlines())
    values = {key.strip(): value.strip() for key, colon, value in pairs if colon and key[:1] != "#"}
    return ParsedSkill(frontmatter=values, body=body.removeprefix("\n"))


def render_fallback_skill(passport: Passport, resume: Resume) -> str:
    """A skill page made of passport and résumé, for a participant that publishes none."""
    parts = [
        f"{_FENCE}\nname: {passport.name}\ndescription: {resume.summary or _NO_SUMMARY}\n{_FENCE}",
        _section("Capabilities", resume.claimed_capabilities),
        _section("Domains", resume.domains),
        _section("Track record", [_record(name, resume) for name in sorted(resume.observed)]),
        _section(
            "Examples",
            [f"{item.title} — {item.outcome or 'no outcome'}" for item in resume.examples],
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, lines: list[str]) -> str:
    return "\n".join([f"## {title}", *(f"- {line}" for line in lines)]) if lines else ""


def _record(capability: str, resume: Resume) -> str:
    seen = resume.observed[capability]
    return (
        f"{capability}: {seen.completed} completed / {seen.failed} failed / "
        f"{seen.expired} expired (n={seen.n})"
    )
