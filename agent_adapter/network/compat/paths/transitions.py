"""The names of `ag2.network.transitions`."""

from agent_adapter.network import (
    AgentTarget as AgentTarget,
)
from agent_adapter.network import (
    Always as Always,
)
from agent_adapter.network import (
    ContextEquals as ContextEquals,
)
from agent_adapter.network import (
    FromSpeaker as FromSpeaker,
)
from agent_adapter.network import (
    RevertToInitiatorTarget as RevertToInitiatorTarget,
)
from agent_adapter.network import (
    RoundRobinTarget as RoundRobinTarget,
)
from agent_adapter.network import (
    StayTarget as StayTarget,
)
from agent_adapter.network import (
    TerminateTarget as TerminateTarget,
)
from agent_adapter.network import (
    ToolCalled as ToolCalled,
)
from agent_adapter.network import (
    Transition as Transition,
)
from agent_adapter.network import (
    TransitionCondition as TransitionCondition,
)
from agent_adapter.network import (
    TransitionDecision as TransitionDecision,
)
from agent_adapter.network import (
    TransitionGraph as TransitionGraph,
)
from agent_adapter.network import (
    TransitionRegistry as TransitionRegistry,
)
from agent_adapter.network import (
    TransitionTarget as TransitionTarget,
)
from agent_adapter.network import (
    WorkflowGraphError as WorkflowGraphError,
)
from agent_adapter.network import (
    register_condition as register_condition,
)
from agent_adapter.network import (
    register_target as register_target,
)
