"""A call of every foreign tool through every target, by the framework's own path."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.tool import ToolSpec
from agent_adapter.exec.executor import Executor
from agent_adapter.store import open_store

Case = tuple[str, ToolSpec, dict[str, Any]]
"""Where a tool comes from, the tool, and arguments that fit it."""


@dataclass(slots=True, kw_only=True)
class TargetReport:
    """What one target did with the tools: how many it called, what it could not take and why."""

    target: str
    called: int = 0
    quarantined: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def problems(self) -> int:
        """How many tools were exported and could not be called as they were sent."""
        return len(self.refused) + len(self.changed) + len(self.raw)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON."""
        return asdict(self)


def targets() -> dict[str, Any]:
    """The harness of every target, by name."""
    # The tests are no part of what is type-checked with the workloads.
    found: dict[str, Any] = importlib.import_module("tests.integrations._targets").TARGETS
    return found


async def call_all(target: str, cases: Iterable[Case]) -> TargetReport:
    """Each case exported to `target` and called once."""
    session = importlib.import_module("tests.integrations.kit").harness_session
    report, began = TargetReport(target=target), time.monotonic()
    async with session(targets()[target]) as harness:
        for place, spec, arguments in cases:
            await _call(harness, place, spec, arguments, report)
    report.seconds = round(time.monotonic() - began, 1)
    return report


async def _call(
    harness: Any, place: str, spec: ToolSpec, arguments: dict[str, Any], report: TargetReport
) -> None:
    executor = Executor(store=open_store("memory://"))
    try:
        native = harness.export(spec, executor)
    except AgentAdapterError as exc:
        report.quarantined[place] = str(exc)[:300]
        return
    except Exception as exc:
        report.raw[place] = f"export: {type(exc).__name__}: {exc}"[:300]
        return
    try:
        sent = json.loads(json.dumps(arguments))
        raw = await harness.call(native, sent, call_id="call_corpora")
        refused = harness.is_error(raw)
        value = None if refused else harness.value(raw)
    except Exception as exc:
        report.raw[place] = f"{type(exc).__name__}: {exc}"[:300]
        return
    finally:
        await executor.aclose()
    report.called += 1
    if refused:
        report.refused[place] = str(raw)[:300]
    elif _read(value) != arguments:
        report.changed[place] = f"{arguments!r} came back as {value!r}"[:300]


def _read(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
