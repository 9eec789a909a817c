"""`python -m agent_adapter.cli` is `agent-adapter`."""

import sys

from agent_adapter.cli import main

sys.exit(main())
