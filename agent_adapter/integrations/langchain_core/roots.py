"""The run of a graph or chain that keeps no checkpoints: the root of its callback runs."""

from __future__ import annotations

from collections import OrderedDict
from contextvars import ContextVar
from functools import cache
from typing import Any

_REMEMBERED = 100_000


@cache
def _recorder() -> Any:
    """The handler that every callback manager made from now on has."""
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.tracers.context import register_configure_hook

    class Roots(BaseCallbackHandler):
        """Knows of each chain and tool under way the chain that it began with."""

        run_inline = True  # else LangChain takes a thread for each event of an async run
        ignore_llm = ignore_chat_model = ignore_retriever = ignore_custom_event = True

        def __init__(self) -> None:
            self.root_of: OrderedDict[Any, Any] = OrderedDict()

        def on_chain_start(
            self, serialized: Any, inputs: Any, *, run_id: Any, parent_run_id: Any = None, **_: Any
        ) -> None:
            """A chain without a parent is a root."""
            root = run_id if parent_run_id is None else self.root_of.get(parent_run_id)
            self._began(run_id, root)

        def on_tool_start(
            self,
            serialized: Any,
            input_str: Any,
            *,
            run_id: Any,
            parent_run_id: Any = None,
            **_: Any,
        ) -> None:
            """A tool that is called alone is no run."""
            self._began(run_id, self.root_of.get(parent_run_id))

        def _began(self, run_id: Any, root: Any) -> None:
            if root is not None:
                self.root_of[run_id] = root
            if len(self.root_of) > _REMEMBERED:  # of streams that were left, no end is told
                self.root_of.popitem(last=False)

        def _ended(self, *_: Any, run_id: Any, **__: Any) -> None:
            self.root_of.pop(run_id, None)

        on_chain_end = on_chain_error = on_tool_end = on_tool_error = _ended

    recorder = Roots()
    # A default reaches every context, also of threads and tasks that began before.
    register_configure_hook(ContextVar("agent_adapter_roots", default=recorder), inheritable=True)
    return recorder


def watch_roots() -> None:
    """Record the roots of the runs that begin from now on."""
    _recorder()


def root_of(config: Any) -> str | None:
    """The root of the callback run that this configuration belongs to; `None` if unknown."""
    callbacks = (config or {}).get("callbacks")
    found = _recorder().root_of.get(getattr(callbacks, "parent_run_id", None))
    return None if found is None else str(found)
