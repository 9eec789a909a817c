"""One question to an approval port, which several equal calls may wait for."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from concurrent.futures import Future

from agent_adapter.core.ports import ApprovalPort
from agent_adapter.core.types import ApprovalDecision, ApprovalRequest

_LOOK_SECONDS = 0.5


class Question:
    """A question that is being asked, by calls of whatever event loop.

    Its approval lets one call run, however many wait for it.
    """

    __slots__ = ("_asking", "_loop", "_said", "_uses")

    def __init__(self, port: ApprovalPort, request: ApprovalRequest) -> None:
        self._loop = asyncio.get_running_loop()
        self._said: Future[ApprovalDecision] = Future()
        self._uses = itertools.count()
        self._asking = self._loop.create_task(_answer_of(port, request))
        self._asking.add_done_callback(self._tell)

    async def answer(self) -> ApprovalDecision | None:
        """The decision; `None` where the event loop that asked has ended first."""
        if asyncio.get_running_loop() is self._loop:
            return await asyncio.shield(self._asking)
        answer = asyncio.wrap_future(self._said)
        while not self.gone:
            # Not awaited itself: who leaves must not take the answer from the others.
            await asyncio.wait({answer}, timeout=_LOOK_SECONDS)
            if answer.done():
                return None if answer.cancelled() else answer.result()
        return None

    @property
    def gone(self) -> bool:
        """Whether nobody will answer it: its event loop was closed."""
        return self._loop.is_closed() and not self._said.done()

    def use(self) -> bool:
        """Whether this is the first call to use the answer."""
        return next(self._uses) == 0

    def when_answered(self, then: Callable[[], object]) -> None:
        """Call `then` when the port has answered, in whatever thread."""
        self._said.add_done_callback(lambda _: then())

    def _tell(self, asking: asyncio.Task[ApprovalDecision]) -> None:
        if asking.cancelled():
            self._said.cancel()
        elif (error := asking.exception()) is not None:
            self._said.set_exception(error)
        else:
            self._said.set_result(asking.result())


async def _answer_of(port: ApprovalPort, request: ApprovalRequest) -> ApprovalDecision:
    """The port's decision; an exception and anything but a decision deny."""
    try:
        decision: object = await port.request(request)
    except Exception as exc:
        return ApprovalDecision.unanswered(f"the approval port failed ({type(exc).__name__})")
    if not isinstance(decision, ApprovalDecision):
        kind = type(decision).__name__
        return ApprovalDecision.unanswered(f"the approval port gave {kind}, not a decision")
    return decision
