"""The names of `ag2.network.hub.expectations`."""

from agent_adapter.network import (
    AcksWithinEvaluator as AcksWithinEvaluator,
)
from agent_adapter.network import (
    AuditHandler as AuditHandler,
)
from agent_adapter.network import (
    AutoCloseHandler as AutoCloseHandler,
)
from agent_adapter.network import (
    ExpectationContext as ExpectationContext,
)
from agent_adapter.network import (
    ExpectationEvaluator as ExpectationEvaluator,
)
from agent_adapter.network import (
    MaxSilenceEvaluator as MaxSilenceEvaluator,
)
from agent_adapter.network import (
    NotifyChannelHandler as NotifyChannelHandler,
)
from agent_adapter.network import (
    ReplyWithinEvaluator as ReplyWithinEvaluator,
)
from agent_adapter.network import (
    Violation as Violation,
)
from agent_adapter.network import (
    ViolationHandler as ViolationHandler,
)
from agent_adapter.network import (
    default_evaluators as default_evaluators,
)
from agent_adapter.network import (
    default_handlers as default_handlers,
)
