"""`python -m agent_adapter.cli` runs `agent-adapter`."""

import sys

from agent_adapter.cli import main

if __name__ == "__main__":
    sys.exit(main())
