"""`Hub`: the face of one store's network over its collaborators.

The hub caches attached participants and channel snapshots; all other state is in the store. Every
change is one store operation of `channels.log`, `channels.lifecycle`, `channels.forking` or
`turns.turn_queue`.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from typing import Any, Self

from agent_adapter.core.errors import AgentAdapterError
from agent_adapter.core.ports import ApprovalPort, Clock
from agent_adapter.exec.executor import Executor
from agent_adapter.exec.ids import new_id
from agent_adapter.network.adapters import AdapterRegistry
from agent_adapter.network.adapters.base import ChannelAdapter
from agent_adapter.network.auth import AuthRegistry
from agent_adapter.network.channels import downtime
from agent_adapter.network.channels.transaction import HubContext
from agent_adapter.network.clients.connection import HubConnection
from agent_adapter.network.hub import leases
from agent_adapter.network.hub.admission import Admission, Registration
from agent_adapter.network.hub.arbiters import HubArbiter
from agent_adapter.network.hub.audit import AuditLog
from agent_adapter.network.hub.channel_service import ChannelService
from agent_adapter.network.hub.channels import Channels
from agent_adapter.network.hub.endpoints import Endpoints
from agent_adapter.network.hub.health import Health, numbers_in_memory, stored_numbers
from agent_adapter.network.hub.identities import Identities, load_all
from agent_adapter.network.hub.observers import Observers
from agent_adapter.network.hub.own_expectations import OwnExpectations
from agent_adapter.network.hub.probes import HubProbes
from agent_adapter.network.hub.scheduler import Scheduler
from agent_adapter.network.hub.stores import IsoClock, hub_store, seconds_of
from agent_adapter.network.hub.tasks import Tasks
from agent_adapter.network.hub.turns import Turns
from agent_adapter.network.turns import turn_queue
from agent_adapter.network.turns.causes import Retries
from agent_adapter.network.turns.turn_spans import TurnSpans
from agent_adapter.store.base import Transaction
from agent_adapter.store.positions import newest

_log = logging.getLogger("agent_adapter.network")


class Hub(HubProbes):
    """The one hub of a store: `await Hub.open(store)`, `await hub.close()`, or `async with`.

    `Hub(store)` followed by `hydrate()` and `start()` is the same as `Hub.open(store)`.

    Its methods are those of its collaborators: `Identities` (who is registered), `Channels` (what
    is accepted), `Turns` (whose turn it is), `Tasks` and `Scheduler` (deadlines and sweeps).

    Attributes:
        store: the store of all durable state.
        executor: runs the tool calls of participants in this process.
        adapters: the channel types it knows.
        driver_for: returns the driver of an agent; `None` leaves the choice to the clients.
        audit_log: the records of participants and channels.
    """

    def __init__(
        self,
        store: Any = None,
        *,
        clock: Clock | IsoClock | None = None,
        ttl_sweep_interval: float = 30.0,
        expectation_sweep_interval: float = 10.0,
        invite_ack_timeout: float = 30.0,
        executor: Executor | None = None,
        approval: ApprovalPort | None = None,
        driver_for: Callable[[Any], Any] | None = None,
        arbiter: HubArbiter | None = None,
        auth: AuthRegistry | None = None,
        tracer_provider: Any = None,
        retries: Retries | None = None,
    ) -> None:
        clock = seconds_of(clock)
        self.store, self._owns_store = hub_store(store, clock)
        self.executor = executor = executor or Executor(approval=approval, store=self.store)
        self.driver_for = driver_for
        self.adapters = AdapterRegistry()
        self._intervals = ttl_sweep_interval, expectation_sweep_interval
        self._holder = new_id("hub")
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._registered: list[HubConnection] = []
        # Rounds and sweeps must not inherit the context of the call that happens to start them.
        context = contextvars.copy_context()
        self._service = service = ChannelService(
            self.store, holder=self._holder, adapters=self.adapters, clock=clock, context=context
        )
        self._admission = admission = Admission(arbiter)
        self._identities = identities = Identities(service, admission, auth)
        self._hub_context = hub_context = HubContext(
            self.adapters, identities.is_person, identities.is_privileged, retries or Retries()
        )
        self._turns = turns = Turns(
            service, hub_context, identities, context, TurnSpans(tracer_provider)
        )
        self._channels = channels = Channels(
            service, hub_context, identities, admission, turns, ack_timeout=invite_ack_timeout
        )
        tasks = Tasks(service, identities)
        self._own_expectations = own = OwnExpectations(
            self, service, hub_context, channels, self.adapters
        )
        self._scheduler = Scheduler(
            service,
            hub_context,
            turns,
            channels=channels,
            identities=identities,
            executor=executor,
            holder=self._holder,
            tasks=tasks,
            own_expectations=own,
            context=context,
        )
        self._observe(Observers(service, context))
        self._bind(tasks)

    def _observe(self, observers: Observers) -> None:
        """Let observers hear of what no row tells of, and have the audit log."""
        self._observers, service = observers, self._service
        service.when_undelivered = observers.undelivered
        self._channels.when_rejected = observers.rejected
        self.audit_log = self._audit_log = AuditLog(self.store)
        self.audit_log.bind(service.write, observers)
        if type(self) is not Hub:  # a subclass may observe itself
            observers.register_listener(self)

    def _bind(self, tasks: Tasks) -> None:
        """Make the collaborators' methods the hub's own, without a call in between."""
        self._bind_work(self._turns, tasks, self._scheduler)
        self._bind_endpoints()
        identities, channels = self._identities, self._channels
        self.register_identity = identities.register_identity
        self.unregister = identities.unregister
        self.is_connected = identities.is_connected
        self.authenticate = identities.authenticate
        self.name_for = identities.name_for
        self.find_agent_id = identities.find_agent_id
        self.name_to_id_map = identities.name_to_id_map
        self.get_agent = identities.get_agent
        self.list_agents = identities.list_agents
        self.get_resume = identities.get_resume
        self.set_resume = identities.set_resume
        self.get_rule = identities.get_rule
        self.set_rule = identities.set_rule
        self.get_skill = identities.get_skill
        self.set_skill = identities.set_skill

        self.create_channel = channels.create_channel
        self.post_envelope = channels.post_envelope
        self.close_channel = channels.close_channel
        self.reopen = channels.reopen
        self.get_channel = channels.get_channel
        self.list_channels = channels.list_channels
        self.read_wal = channels.read_wal
        self.window = channels.window
        self.adapter_state = channels.adapter_state
        self.adapter_for = channels.adapter_for
        self.folded_state = channels.folded_state
        self.find_envelope_by_causation = channels.find_envelope_by_causation
        self.fork = channels.fork
        self.resume_channel = channels.resume_channel
        self.writes_after = channels.writes_after
        self.replay = channels.replay

    def _bind_endpoints(self) -> None:
        self._endpoints = endpoints = Endpoints(self, self._service, self._identities.passport_of)
        self._identities.when_registered = endpoints.attach_remote
        self.attach_endpoint = endpoints.attach_endpoint
        self.bind_endpoint = endpoints.bind_endpoint
        self.inbox_cursor = endpoints.inbox_cursor
        self.register_remote_proxy = endpoints.register_remote_proxy
        self.unregister_remote_proxy = endpoints.unregister_remote_proxy
        self.remote_proxy_for = endpoints.remote_proxy_for

    def _bind_work(self, turns: Turns, tasks: Tasks, scheduler: Scheduler) -> None:
        self.attach = turns.attach
        self.detach = turns.detach
        self.pending_turns_for = turns.pending_turns_for
        self.start_turn = turns.start_turn
        self.run_turn = turns.run_turn
        self.check_turn = turns.check_turn
        self.has_ended = turns.has_ended
        self.stage = turns.stage
        self.end_silent_turn = turns.end_silent_turn
        self.park_turn = turns.park_turn
        self.resume_turns = turns.resume_turns
        self.wake_turn = turns.wake_turn
        self.fail_turn = turns.fail_turn
        self.release_turn = turns.release_turn
        self.run_due = turns.run_due
        self.receiver_of = self._service.receiver

        self.start_task = tasks.start_task
        self.observe_task = tasks.observe_task
        self.update_task = tasks.update_task
        self.read_task = self.get_task = tasks.get_task
        self.list_tasks = tasks.list_tasks
        self.checkpoint_task = tasks.checkpoint_task
        self.read_task_checkpoint = tasks.read_task_checkpoint
        self.record_observation = tasks.record_observation
        self.fire_task_event = tasks.fire_task_event

        self.feed = self._service.feed
        self.subscribe = self.feed.subscribe
        self.register_listener = self._observers.register_listener
        self.unregister_listener = self._observers.unregister_listener

        self.register_expectation_evaluator = self._own_expectations.register_evaluator
        self.register_violation_handler = self._own_expectations.register_handler
        self.announce_violation = self._own_expectations.announce
        self.register_sweeper = scheduler.register_sweeper
        self.unregister_sweeper = scheduler.unregister_sweeper
        self.expire_due = scheduler.expire_due
        self.run_expectations = scheduler.run_expectations
        self.run_commands = scheduler.run_commands
        self.count_uses = scheduler.count_uses
        self.poll = scheduler.poll
        self.idle = scheduler.idle

    @classmethod
    async def open(
        cls,
        store: Any = None,
        *,
        clock: Clock | IsoClock | None = None,
        ttl_sweep_interval: float = 30.0,
        expectation_sweep_interval: float = 10.0,
        invite_ack_timeout: float = 30.0,
        executor: Executor | None = None,
        approval: ApprovalPort | None = None,
        driver_for: Callable[[Any], Any] | None = None,
        arbiter: HubArbiter | None = None,
        auth: AuthRegistry | None = None,
        retries: Retries | None = None,
        register_default_adapters: bool = True,
        tracer_provider: Any = None,
    ) -> Self:
        """Open the hub of `store`, with everything that the store already holds.

        `store` is one of ours, a path or URL, `None` for the default file, or one of
        AG2's: `MemoryKnowledgeStore`, or `DiskKnowledgeStore`, whose folder gets the hub's file.
        `clock` gives seconds since the epoch, or ISO 8601 text, in place of
        the store's. The sweepers run every so many seconds and look for expired channels and passed
        deadlines; 0 turns one off. `executor` runs tool calls; without it, one over the hub's store
        that asks `approval`. `arbiter` decides what is admitted, `auth` checks who registers.
        `retries` says when a failed round is repeated.
        `tracer_provider` gets a span for each attempt of a turn; without it the program's own does.
        Without `register_default_adapters` the hub knows only types of `register_adapter`.

        Raises:
            NetworkError: another hub serves the store; the message names it.
            TypeError: `store` is not a store.
        """
        found, owned = await asyncio.to_thread(hub_store, store, seconds_of(clock))
        try:
            hub = cls(
                found,
                clock=clock,
                ttl_sweep_interval=ttl_sweep_interval,
                expectation_sweep_interval=expectation_sweep_interval,
                invite_ack_timeout=invite_ack_timeout,
                executor=executor,
                approval=approval,
                driver_for=driver_for,
                arbiter=arbiter,
                auth=auth,
                tracer_provider=tracer_provider,
                retries=retries,
            )
            if not register_default_adapters:
                hub.adapters.clear()
            await hub.hydrate()
        except BaseException:
            if owned:
                await found.aclose()
            raise
        hub._owns_store = owned
        await hub.start()
        return hub

    async def start(self) -> None:
        """Start the sweepers; `hydrate` comes first."""
        self._scheduler.start(*self._intervals)

    async def hydrate(self) -> None:
        """Take over the store: its identities, and the turns that an earlier hub was running.

        The cost depends on what is open, not on the length of the logs.
        """

        def op(tx: Transaction) -> tuple[int, int, list[tuple[Registration, str | None]]]:
            down = leases.take(tx, self._holder, self, where=self.store.url)
            if down is not None:
                downtime.pass_over(tx, down)
                turn_queue.lose_running(tx)
            open_now = sum(
                tx.count("channels", {"state": state}) for state in ("active", "pending")
            )
            return newest(tx), open_now, load_all(tx)

        service = self._service
        service.feed.newest, service.active_channels, found = await service.write(op)
        self._identities.replace_all(found)
        for identity, _ in found:
            self._endpoints.attach_remote(identity.passport)

    async def close(self) -> None:
        """Stop; running turns are released, and the next hub continues them."""
        if self._closed:
            return
        self._closed = True
        for connection in tuple(self._registered):
            await connection.close()
        await self._endpoints.close()
        self._service.feed.close()
        # Sweepers first, so that none starts a turn again that the dispatcher has just released;
        # the lease last, since releasing turns still writes under it.
        await self._scheduler.close()
        await self._observers.listeners.close()
        await self._turns.dispatcher.close()
        await self._service.close()
        try:
            await self._service.write(lambda tx: leases.release(tx, self._holder))
        except AgentAdapterError as exc:
            _log.warning("the lease of %s was not released: %s", self.store.url, exc)
        if self._owns_store:
            await self.store.aclose()

    async def __aenter__(self) -> Hub:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def late_refusals(self) -> int:
        """How many operations refused after they had written; each one is a bug of the hub."""
        return self._service.late_refusals

    @property
    def is_abandoned(self) -> bool:
        """Whether the hub is closed or its event loop is gone."""
        return self._closed or self._loop.is_closed()

    def replace_audit_log(self, audit_log: AuditLog) -> None:
        """Make `audit_log` the hub's, and tell it what happens, as a listener.

        The hub goes on to write its own records with what they describe.
        """
        self._observers.unregister_listener(self.audit_log)
        audit_log.bind(self._service.write, self._observers)
        self.audit_log = self._audit_log = audit_log
        self._observers.register_listener(audit_log)

    def health(self) -> Health:
        """Numbers in memory at once; `await hub.health()` has those of the store as well."""
        service = self._service
        known = numbers_in_memory(service) | {
            "registered_agents": len(self._identities.name_to_id_map()),
            "running_turns": self._turns.dispatcher.running,
            "registered_listeners": len(self._observers.listeners) + 1,  # the audit log
            "adapters_loaded": len(self.adapters),
            "sweepers": self._scheduler.sweepers,
            "audit_log_bytes": self.audit_log.bytes_written,
        }

        def read() -> Any:
            attached = service.attached()
            return service.read(lambda tx: stored_numbers(tx, attached))

        return Health(known, read)

    @property
    def arbiter(self) -> HubArbiter:
        """Decides what is admitted."""
        return self._admission.arbiter

    def register_arbiter(self, arbiter: HubArbiter) -> None:
        """Let `arbiter` alone decide what is admitted; `TypeError` if it lacks a method."""
        self._admission.replace_arbiter(arbiter)

    def register_adapter(self, adapter: ChannelAdapter) -> None:
        """Add a channel type, or replace one for channels that are opened later."""
        self.adapters.register(adapter)
