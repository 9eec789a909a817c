"""`agent-adapter tools`: list, show, call and check the tools of a registry."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_adapter.cli.acting import Actor, Tenant, with_actor
from agent_adapter.cli.completing import complete_tools, completing
from agent_adapter.cli.exit_codes import DOUBT, FAILED, OK, USAGE, CommandError
from agent_adapter.cli.options import AsJson, StoreUrl, parse_object
from agent_adapter.cli.output import (
    paged,
    plain,
    print_fields,
    print_json,
    print_line,
    print_list,
    print_rows,
    print_text,
    print_whole,
)
from agent_adapter.cli.prefixes import whole_id
from agent_adapter.cli.streams import reserve_stdout
from agent_adapter.cli.target import Factory, Target, load_registry
from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.events import CallFinished

if TYPE_CHECKING:
    from agent_adapter.core.registry import ToolRegistry
    from agent_adapter.core.tool import ToolSpec
    from agent_adapter.exec.executor import Executor
    from agent_adapter.store.base import Store

app = typer.Typer(name="tools", help="List, show, call and check the tools of a registry.")

_NAMED = ("name", "description")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The tool.", show_default=False, autocompletion=complete_tools
    ),
]


@app.command("list", epilog="Example: agent-adapter tools list shop.py")
def list_(target: Target, factory: Factory = False, as_json: AsJson = False) -> None:
    """List the tools of a registry."""
    specs = list(_loaded(target, factory))
    print_list(
        [_facts(spec) for spec in specs],
        ("tool", "effects", "confirm", "trust", "targets", "description"),
        (
            (spec.name, spec.effects, _confirm(spec), spec.trust, _targets(spec), _first(spec))
            for spec in specs
        ),
        empty="no tools",
        as_json=as_json,
    )


@app.command(epilog="Example: agent-adapter tools show shop:registry refund")
def show(target: Target, name: Name, factory: Factory = False, as_json: AsJson = False) -> None:
    """Show one tool and the schema that a model sees."""
    spec = _loaded(target, factory).get(name)
    if as_json:
        print_json(_facts(spec) | {"schema": spec.json_schema()})
        return
    facts = {key: value for key, value in _facts(spec).items() if value not in (None, [], "")}
    with paged() as screen:
        screen.print(plain(spec.name), style="bold", soft_wrap=True)
        print_whole(screen, plain(spec.description, lines=True))
        print_fields(screen, (each for each in facts.items() if each[0] not in _NAMED))
        print_whole(screen, json.dumps(spec.json_schema(), indent=2))


@app.command(epilog="Example: agent-adapter tools call shop.py refund order_id=A1 amount=5")
def call(
    target: Target,
    name: Name,
    pairs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Arguments; a value is JSON if it parses as JSON, else text.",
            show_default=False,
        ),
    ] = None,
    args: Annotated[
        str | None, typer.Option("--args", help="All arguments as one JSON object.")
    ] = None,
    run: Annotated[str | None, typer.Option("--run", help="The run of the call.")] = None,
    factory: Factory = False,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Call a tool through the executor; a call that needs approval waits in the inbox."""
    from agent_adapter.core.context import ToolContext

    registry = _loaded(target, factory)
    spec = registry.get(name)
    arguments = _arguments(pairs or [], args)

    async def _work(executor: Executor, actor: Actor) -> Any:
        ctx = ToolContext(run_id=run, principal=actor.reviewer, tenant=actor.tenant)
        return await executor.run_spec(spec, arguments, ctx)

    value = _with_executor(store, tenant, registry, _work, new=True)
    _print_result(value, as_json)


@app.command(epilog="Example: agent-adapter tools resume shop.py apr_0123")
def resume(
    target: Target,
    record: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The approval, apr_…, or its beginning.",
            autocompletion=completing("approval"),
        ),
    ],
    factory: Factory = False,
    tenant: Tenant = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Run an approved call once, exactly as it was approved."""
    registry = _loaded(target, factory)

    async def _work(executor: Executor, actor: Actor) -> Any:
        id = await whole_id(executor.store, "approval", record, actor.tenant)
        return await executor.resume(id, tenant=actor.tenant)

    value = _with_executor(store, tenant, registry, _work)
    _print_result(value, as_json)


@app.command(epilog="Example: agent-adapter tools check shop.py --target anthropic")
def check(
    target: Target,
    only: Annotated[
        list[str] | None,
        typer.Option("--target", help="Check this integration only; may be repeated."),
    ] = None,
    factory: Factory = False,
    as_json: AsJson = False,
) -> int:
    """Check every tool: schema, a dry round trip of an example, and what each target loses."""
    from agent_adapter.cli.registry_check import check_registry
    from agent_adapter.integrations.discovery import available_integrations

    registry = _loaded(target, factory)
    unknown = sorted(set(only or ()) - set(available_integrations()))
    if unknown:
        raise CommandError(f"no integration has the name {', '.join(unknown)}", code=USAGE)
    findings = check_registry(registry, only)
    errors = sum(finding.severity == "error" for finding in findings)
    if findings and not as_json:
        rows = [(each.tool, each.severity, each.problem, each.fix) for each in findings]
        with paged() as screen:
            print_rows(screen, ("tool", "severity", "problem", "fix"), rows)
    listed = [asdict(finding) for finding in findings]
    said = f"{len(registry)} tools, {errors} errors, {len(findings) - errors} notes"
    print_line({"tools": len(registry), "findings": listed}, said, as_json)
    return FAILED if errors else OK


def _loaded(target: str, factory: bool) -> ToolRegistry:
    """The registry of a target; stdout stays with the command, whatever the target prints."""
    reserve_stdout()
    return load_registry(target, factory=factory)


def _with_executor(
    url: str | None,
    tenant: str | None,
    registry: ToolRegistry,
    work: Callable[[Executor, Actor], Awaitable[Any]],
    *,
    new: bool = False,
) -> Any:
    """Run `work` with an executor whose approvals wait in the store, then close the store."""
    from agent_adapter.exec.approval.ports.deferred import DeferredApproval
    from agent_adapter.exec.executor import Executor

    async def _work(store: Store, actor: Actor) -> Any:
        executor = Executor(registry, approval=DeferredApproval(store), store=store)
        unclear: list[str] = []
        executor.subscribe(partial(_note_unclear, unclear))
        try:
            return await work(executor, actor)
        except BaseException as exc:
            if unclear:
                raise _in_doubt(exc, unclear[-1]) from exc
            if isinstance(exc, SystemExit):
                raise CommandError(f"the tool ended the program (SystemExit {exc.code})") from exc
            raise

    return with_actor(url, tenant, _work, role="approver", new=new)


def _note_unclear(unclear: list[str], event: Any) -> None:
    if isinstance(event, CallFinished) and event.ending == "unknown" and event.call_key:
        unclear.append(event.call_key)


def _in_doubt(exc: BaseException, call_key: str) -> CommandError:
    """The error of a write whose outcome nobody knows: its reason, and what to do."""
    said = str(exc) if isinstance(exc, AgentAdapterError) else type(exc).__name__
    kind = exc.kind if isinstance(exc, AgentAdapterError) else "tool-in-doubt"
    return CommandError(
        f"{said}; the outcome of the write is unknown ({call_key}): look it up, then"
        f" `agent-adapter ledger resolve {call_key} --happened` or `--not-happened`",
        code=DOUBT,
        kind=kind,
    )


def _facts(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "effects": spec.effects,
        "confirm": _confirm(spec),
        "trust": spec.trust,
        "targets": None if spec.targets is None else sorted(spec.targets),
        "timeout": spec.timeout,
        "cost": spec.cost if isinstance(spec.cost, (int, float)) else None,
        "tags": list(spec.tags),
        "version": spec.version,
        "fingerprint": spec.fingerprint,
        "policy_fingerprint": spec.policy_fingerprint,
    }


def _confirm(spec: ToolSpec) -> str:
    rules = {True: "always", False: "never"}
    if isinstance(spec.confirm, bool):
        return rules[spec.confirm]
    if isinstance(spec.confirm, str):
        return f"when {spec.confirm}" if spec.confirm == "tainted" else "by provenance"
    return "by a function"


def _targets(spec: ToolSpec) -> str:
    return "all" if spec.targets is None else ", ".join(sorted(spec.targets))


def _first(spec: ToolSpec) -> str:
    return spec.description.strip().splitlines()[0]


def _arguments(pairs: list[str], whole: str | None) -> dict[str, Any]:
    from agent_adapter.core.json_values import json_or_text

    arguments = {} if whole is None else parse_object(whole, "--args")
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign or not key:
            raise CommandError(
                f"the argument {pair!r} is not KEY=VALUE: write {pair}=…", code=USAGE
            )
        if key in arguments:
            raise CommandError(f"the argument {key!r} is given twice: omit one", code=USAGE)
        arguments[key] = json_or_text(text)
    return arguments


def _print_result(value: Any, as_json: bool) -> None:
    from agent_adapter.core.results import plain_result

    if as_json:
        print_json({"result": json.loads(plain_result(value))})
    else:
        print_text(plain(value if isinstance(value, str) else plain_result(value), lines=True))
