"""What the workload found, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from workloads.agentdojo.attacks import Measured
from workloads.agentdojo.policy_report import problems_of, show_policies
from workloads.agentdojo.replay import TaskResult

__all__ = ["HELD", "RECORDED", "FrameworkReport", "Report", "show"]

HELD = ("ag2", "agno", "langgraph")
"""The frameworks that hold a payment for a person."""

RECORDED = "recorded result: "
"""How the answer to a second try begins when it came from the ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkReport:
    """One framework's run over every task; `ledger` is what its store holds afterwards."""

    framework: str
    version: str
    tasks: Sequence[TaskResult]
    ledger: Mapping[str, Any]

    @property
    def passed(self) -> int:
        """How many tasks the suites' own checkers accepted."""
        return sum(task.passed for task in self.tasks)

    @property
    def expected(self) -> int:
        """How many calls the tasks' ground truth has."""
        return sum(task.expected for task in self.tasks)

    @property
    def calls(self) -> int:
        """How many calls the framework made."""
        return sum(task.calls for task in self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The whole workload: `tools` is per suite, `held` is `None` if left out.

    `differences` are tools that are no longer what their authors wrote.
    """

    tools: Mapping[str, int]
    functions: int
    differences: Sequence[str]
    frameworks: Sequence[FrameworkReport]
    held: Mapping[str, Any] | None
    measured: Sequence[Measured]
    scenarios: Mapping[str, Mapping[str, int]]
    seconds: float

    @property
    def problems(self) -> list[str]:
        """Everything that is not as it must be, one line each."""
        found = list(self.differences)
        for framework in self.frameworks:
            found += _problems_of(framework)
        if self.held is not None:
            found += _held_problems(self.held)
        return found + problems_of(self.measured, self.scenarios)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "version": 1,
            "tools": dict(self.tools),
            "registry": sum(self.tools.values()),
            "functions": self.functions,
            "differences": list(self.differences),
            "frameworks": {
                f.framework: {
                    "version": f.version,
                    "passed": f.passed,
                    "expected_calls": f.expected,
                    "calls": f.calls,
                    "ledger": dict(f.ledger),
                    "tasks": [asdict(task) for task in f.tasks],
                }
                for f in self.frameworks
            },
            "held": self.held,
            "policies": [one.to_json() for one in self.measured],
            "scenarios": dict(self.scenarios),
            "seconds": self.seconds,
            "problems": self.problems,
        }


def _problems_of(framework: FrameworkReport) -> list[str]:
    name, ledger, expected = framework.framework, framework.ledger, framework.expected
    found = [
        f"{name}: {task.suite}/{task.task}: {task.problem}"
        for task in framework.tasks
        if not task.passed
    ]
    if framework.calls != expected:
        found.append(f"{name}: {framework.calls} calls were made, the ground truth has {expected}")
    if ledger["calls_ok"] != framework.calls or ledger["calls"] != framework.calls:
        found.append(
            f"{name}: the ledger has {ledger['calls']} calls, {ledger['calls_ok']} of them ok, "
            f"but the framework made {framework.calls}"
        )
    found += [f"{name}: ledger: {problem}" for problem in ledger["problems"]]
    return found


def _held_problems(held: Mapping[str, Any]) -> list[str]:
    found = []
    asked, resumed = held["ask"], held["resume"]["resumed"]
    for name in HELD:
        if not asked[name]:
            found.append(f"held call: {name} left no record in the inbox")
        if asked[f"{name}_paid"]:
            found.append(f"held call: {name} paid before anybody approved")
    if (len(resumed), len(held["approve"]["approved"])) != (len(HELD), len(HELD)):
        found.append(
            f"held call: {len(resumed)} payments were approved and resumed, not {len(HELD)}"
        )
    for call in resumed:
        if (call["paid"], call["paid_after_second_try"]) != (1, 1):
            found.append(f"held call: {call['id']} was paid {call['paid_after_second_try']} times")
        if not call["second_try"].startswith(RECORDED):
            found.append(f"held call: {call['id']}: a second try gave {call['second_try']}")
        if not call["checker"]:
            found.append(f"held call: {call['id']}: the suite's checker refused the account")
    return found + [f"held call: ledger: {problem}" for problem in held["ledger"]["problems"]]


def show(console: Console, report: Report) -> None:
    """Print the table, the ledgers, the held call and what went wrong."""
    console.print(_table(report))
    for framework in report.frameworks:
        ledger = framework.ledger
        console.print(
            f"{framework.framework} {framework.version}: {ledger['calls']} calls in the ledger "
            f"over {ledger['runs']} runs, {ledger['calls_ok']} ok, in "
            f"{sum(task.seconds for task in framework.tasks):.1f} s; verify: "
            f"{'passed' if not ledger['problems'] else 'FAILED'}"
        )
    if report.held is not None:
        _show_held(console, report.held)
    show_policies(console, report.measured, report.scenarios)
    for problem in report.problems:
        console.print(problem, style="red", markup=False, highlight=False)
    state = "failed" if report.problems else "all as it must be"
    console.print(f"{report.seconds:.1f} s; {state}")


def _table(report: Report) -> Table:
    table = Table(
        title=f"AgentDojo: {sum(report.tools.values())} tools "
        f"({report.functions} distinct functions) in one registry"
    )
    for title in ("suite", "tools", "tasks", "truth"):
        table.add_column(title, justify="left" if title == "suite" else "right")
    for framework in report.frameworks:
        table.add_column(framework.framework, justify="right")
    for suite in report.tools:
        table.add_row(suite, *_cells(report, [suite]))
    table.add_section()
    table.add_row("all", *_cells(report, list(report.tools)))
    return table


def _cells(report: Report, suites: Sequence[str]) -> list[str]:
    cells: list[str] = []
    for framework in report.frameworks:
        tasks = [task for task in framework.tasks if task.suite in suites]
        if not cells:
            tools = sum(report.tools[suite] for suite in suites)
            calls = sum(task.expected for task in tasks)
            cells += [str(tools), str(len(tasks)), str(calls)]
        passed = sum(task.passed for task in tasks)
        style = "green" if passed == len(tasks) else "red"
        cells.append(f"[{style}]{passed}/{len(tasks)}[/]")
    return cells


def _show_held(console: Console, held: Mapping[str, Any]) -> None:
    console.print("One payment per framework held for a person, over three processes:")
    for name in HELD:
        records = ", ".join(held["ask"][name]) or "nothing"
        console.print(f"  process 1, {name}: held {records}; paid {held['ask'][f'{name}_paid']}")
    console.print(f"  process 2: approved {', '.join(held['approve']['approved'])}")
    for call in held["resume"]["resumed"]:
        console.print(
            f"  process 3: {call['id']} paid {call['paid']} time(s), checker "
            f"{'passed' if call['checker'] else 'refused'}; second try: {call['second_try']}",
            markup=False,
        )
