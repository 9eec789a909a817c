"""`python -m agent_adapter.cli` runs `agent-adapter`."""

import sys

from agent_adapter.cli import main

sys.exit(main())
