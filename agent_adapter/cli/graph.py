"""`agent-adapter graph`: check and draw transition graphs in files."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_adapter.cli.exit_codes import FAILED, OK, USAGE, CommandError
from agent_adapter.cli.options import AsJson
from agent_adapter.cli.output import plain, print_json, print_list, print_text
from agent_adapter.cli.streams import reserve_stdout

if TYPE_CHECKING:
    from agent_adapter.flow.graph import TransitionGraph

app = typer.Typer(name="graph", help="Check and draw transition graphs.")

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A graph as TransitionGraph.dumps() writes it; - reads standard input.",
        show_default=False,
    ),
]
Modules = Annotated[
    list[str] | None,
    typer.Option(
        "--import", metavar="MODULE", help="A module that registers custom targets and conditions."
    ),
]


@app.command(epilog="Example: agent-adapter graph check support.json --participant user")
def check(
    file: File,
    participant: Annotated[
        list[str] | None,
        typer.Option(
            "--participant", help="A participant's id, in the channel's order; repeatable."
        ),
    ] = None,
    opener: Annotated[
        str | None,
        typer.Option("--opener", help="The id of the participant who opens the channel."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings too.")] = False,
    modules: Modules = None,
    as_json: AsJson = False,
) -> int:
    """Print the mistakes of a graph before it runs; exit code 1 for an error."""
    from agent_adapter.flow.findings import ChannelFacts

    graph = _read(file, modules or ())
    findings = graph.check(ChannelFacts(participants=participant or None, opener=opener))
    failing = ("error", "warning") if strict else ("error",)
    print_list(
        [asdict(item) for item in findings],
        ("severity", "code", "where", "what happens", "fix"),
        ((item.severity, item.code, item.where, item.message, item.fix) for item in findings),
        empty=plain(f"{file}: no problems found"),
        as_json=as_json,
    )
    return FAILED if any(item.severity in failing for item in findings) else OK


@app.command(epilog="Example: agent-adapter graph draw support.json --name agt_1=triage")
def draw(
    file: File,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="ID=NAME", help="The name to show for an id; repeatable."),
    ] = None,
    modules: Modules = None,
    as_json: AsJson = False,
) -> None:
    """Print the graph as a Mermaid flowchart."""
    names = dict(_pair(item) for item in name or ())
    drawing = _read(file, modules or ()).to_mermaid(names)
    if as_json:
        print_json({"mermaid": drawing})
    else:
        print_text(plain(drawing, lines=True))


def _pair(text: str) -> tuple[str, str]:
    id, equals, name = text.partition("=")
    if not equals or not id or not name:
        raise CommandError(f"--name {text}: write it like --name agt_1=triage", code=USAGE)
    return id, name


def _read(file: str, modules: Sequence[str]) -> TransitionGraph:
    """The graph in a file: at the top level, or under `graph` as in a channel's knobs."""
    from agent_adapter.cli.target import import_module
    from agent_adapter.flow.graph import TransitionGraph

    if modules:
        reserve_stdout()
    for module in modules:
        import_module(module)
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        data = json.loads(text)
    except OSError as exc:
        raise CommandError(f"{file} cannot be read: {exc.strerror or exc}", code=USAGE) from None
    except ValueError as exc:
        raise CommandError(f"{file} is not JSON: {exc}; write it with graph.dumps()") from None
    if isinstance(data, dict) and isinstance(data.get("graph"), dict):
        data = data["graph"]
    return TransitionGraph.loads(data)
