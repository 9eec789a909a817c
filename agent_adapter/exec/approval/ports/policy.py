"""`PolicyApproval`: rules as data decide what they can and leave the rest to a person."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any, Literal

from agent_adapter.core.canonical import canon
from agent_adapter.core.errors import ToolDefinitionError
from agent_adapter.core.ports import ApprovalPort
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest
from agent_adapter.exec.approval.request import stamped


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRule:
    """`then` for every call that fits all the terms given; a term left out fits everything.

    `tool` and `principal` are shell patterns, `tag` is one of the tool's tags, `tainted` is whether
    the run has read untrusted text, `repeats` is whether it would add to earlier writes that are
    unclear, `arguments` are values that must be equal. A rule that approves fits no call that
    repeats unless it says `repeats=True`.

    A rule that approves never goes by the name alone: it approves a tool only as it was when the
    rule first met it, or as `fingerprints` say (`ToolSpec.policy_fingerprint`, printed by
    `agent-adapter tools show`), which hold over restarts.
    """

    then: Literal["approve", "deny", "ask"]
    tool: str = "*"
    effects: str | None = None
    principal: str | None = None
    tag: str | None = None
    tainted: bool | None = None
    repeats: bool | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    fingerprints: Collection[str] | None = None
    reason: str | None = None

    def fits(self, request: ApprovalRequest) -> bool:
        """Whether every term holds for this call."""
        terms = (
            fnmatchcase(request.tool, self.tool),
            self.effects in (None, request.effects),
            self.principal is None or fnmatchcase(request.principal or "", self.principal),
            self.tag is None or self.tag in request.tags,
            self.tainted in (None, bool(request.taint)),
            self._fits_repeats(bool(request.earlier)),
            self.fingerprints is None or request.policy_fingerprint in self.fingerprints,
            all(
                name in request.arguments and _same(request.arguments[name], value)
                for name, value in self.arguments.items()
            ),
        )
        return all(terms)

    def _fits_repeats(self, repeats: bool) -> bool:
        if self.repeats is None:
            return not (repeats and self.then == "approve")
        return self.repeats == repeats


class PolicyApproval:
    """The first rule that fits decides; `ask`, and calls that no rule fits, go to `otherwise`.

    So do calls of a tool whose schema, description, trust, effects, egress or version has changed
    since a rule first approved a tool of that name.

    Rules may be given as mappings with the fields of `PolicyRule`. Without `otherwise` such calls
    are denied.
    """

    def __init__(
        self,
        rules: Sequence[PolicyRule | Mapping[str, Any]],
        otherwise: ApprovalPort | None = None,
    ) -> None:
        self._rules = tuple(_rule(rule) for rule in rules)
        self._otherwise = otherwise
        self._met: dict[str, str] = {}
        self.store = getattr(otherwise, "store", None)
        self.signers = getattr(otherwise, "signers", None)

    async def request(self, request: ApprovalRequest) -> ApprovalDecision:
        """The decision of the rules, or of the port behind them."""
        rule = next((rule for rule in self._rules if rule.fits(request)), None)
        if rule is not None and rule.then == "approve" and not self._knows(rule, request):
            rule = None
        if rule is not None and rule.then == "approve":
            reason = rule.reason or "a policy rule approves it"
            return stamped(ApprovalDecision.approve(reviewer="policy", reason=reason), request)
        if rule is not None and rule.then == "deny":
            return ApprovalDecision.deny(
                reviewer="policy", reason=rule.reason or "a policy rule denies it"
            )
        if self._otherwise is None:
            return ApprovalDecision.deny(reason="no policy rule approves it")
        return await self._otherwise.request(request)

    def _knows(self, rule: PolicyRule, request: ApprovalRequest) -> bool:
        """Whether the tool is the one that the rule has met under this name."""
        if rule.fingerprints is not None:
            return True
        met = self._met.setdefault(request.tool, request.policy_fingerprint)
        return met == request.policy_fingerprint


def _rule(rule: PolicyRule | Mapping[str, Any]) -> PolicyRule:
    if isinstance(rule, PolicyRule):
        rule = {item.name: getattr(rule, item.name) for item in fields(PolicyRule)}
    known = {item.name for item in fields(PolicyRule)}
    unknown = sorted(set(rule) - known)
    if unknown or rule.get("then") not in ("approve", "deny", "ask"):
        raise ToolDefinitionError(
            f"policy rule {dict(rule)!r}: unknown terms {unknown} or no `then`; "
            f"`then` is approve, deny or ask; terms are {', '.join(sorted(known - {'then'}))}"
        )
    return PolicyRule(**rule)


def _same(found: Any, wanted: Any) -> bool:
    """Equal as canonical JSON: 1, 1.0 and true differ, however deep they lie."""
    try:
        return canon(found) == canon(wanted)
    except (TypeError, ValueError):
        return False
