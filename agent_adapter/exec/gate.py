"""`Gate`: a framework's own approval hook, asking our port about the call that will run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_adapter.core.context import ToolContext
from agent_adapter.core.ports import ApprovalPort, ToolRunner
from agent_adapter.core.tool import ToolSpec
from agent_adapter.core.types import Grant

__all__ = ["Gate", "Grant"]


class Gate:
    """Asks `port` about calls that `runner` will run.

    Raises `TypeError` for a runner that cannot say what it will run: the person would be shown
    other arguments than those that its hooks let through.
    """

    def __init__(self, runner: ToolRunner, port: ApprovalPort) -> None:
        given: object = runner
        if not isinstance(given, ToolRunner):
            raise TypeError(
                f"an approval gate needs a runner with run_spec, prepare and issue, and "
                f"{type(given).__name__} lacks one of them: forward all three to the Executor, "
                "or give the Executor the approval port and leave `approval` out here"
            )
        self.runner = runner
        self.port = port

    async def ask(
        self,
        spec: ToolSpec,
        args: Mapping[str, Any],
        ctx: ToolContext,
        *,
        edits_allowed: bool = False,
    ) -> Grant:
        """A grant for this one call; the arguments are validated and guarded here, once.

        Raises `ToolArgsInvalid`, `GuardrailBlocked`, `ApprovalDenied` (also for edits where
        `edits_allowed` is false) and `ApprovalPending`.
        """
        prepared = await self.runner.prepare(spec, args, ctx)
        return await self.runner.issue(prepared, self.port, edits_allowed=edits_allowed)
