"""Every integration's harness by name, so that one test can go through all of them."""

from __future__ import annotations

from typing import Any

from .test_ag2_contract import Ag2Harness
from .test_agno_contract import AgnoHarness
from .test_anthropic_contract import MessagesHarness
from .test_autogen_contract import AutoGenHarness
from .test_fastmcp_contract import FastMcpHarness
from .test_generic_contract import LoopHarness
from .test_google_genai_contract import GeminiHarness
from .test_langchain_contract import LangChainHarness
from .test_langgraph_contract import LangGraphHarness
from .test_mcp_contract import McpHarness
from .test_openai_contract import ChatHarness

__all__ = ["TARGETS"]

TARGETS: dict[str, Any] = {
    harness.name: harness
    for harness in (
        Ag2Harness,
        AgnoHarness,
        MessagesHarness,
        AutoGenHarness,
        FastMcpHarness,
        LoopHarness,
        GeminiHarness,
        LangChainHarness,
        LangGraphHarness,
        McpHarness,
        ChatHarness,
    )
}
