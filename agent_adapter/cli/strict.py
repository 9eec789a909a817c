"""A command that refuses an option which is given twice: neither value may win silently."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand


class StrictCommand(TyperCommand):
    """Refuses options that are repeated, unless they are declared as repeatable."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; `BadParameter` names an option that is given twice."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            for param in order:
                if order.count(param) > 1 and _takes_one(param):
                    said, hint = "given more than once: give it once", f"'{param.opts[0]}'"
                    raise typer.BadParameter(said, ctx=ctx, param_hint=hint)
        return super().parse_args(ctx, args)


def _takes_one(param: Any) -> bool:
    """Whether a second mention could contradict the first; a plain flag says the same again."""
    if param.param_type_name != "option" or param.multiple:
        return False
    return not param.is_flag or bool(param.secondary_opts)


def make_strict(app: typer.Typer) -> typer.Typer:
    """Let every command of `app` refuse repeated options."""
    for command in app.registered_commands:
        if command.cls is None or command.cls is TyperCommand:
            command.cls = StrictCommand
    return app
