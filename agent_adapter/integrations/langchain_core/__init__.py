"""What the LangChain and LangGraph integrations share: both build on `langchain-core`."""
