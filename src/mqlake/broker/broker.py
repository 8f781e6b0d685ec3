"""A broker: one store, the request families, two ports, registration with name servers.

Upstream: `BrokerController`. Everything runs on one event loop; what waits for the disk does so in
the store's own threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol, Self

import msgspec

from mqlake.broker.acting import returning
from mqlake.broker.acting.family import ActingMaster
from mqlake.broker.admin.families import ADMIN
from mqlake.broker.after_dispatch import after_dispatch
from mqlake.broker.clients import ClientRequests
from mqlake.broker.controller.requests import ControllerRequests
from mqlake.broker.lite import LiteTopics
from mqlake.broker.locks import LockRequests
from mqlake.broker.offsets import OffsetRequests
from mqlake.broker.pop.family import PopConsumption
from mqlake.broker.pull.requests import PullRequests
from mqlake.broker.query import QueryRequests
from mqlake.broker.recall import Recalls
from mqlake.broker.reply import Replies
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.send import SendMessages
from mqlake.broker.send_back import SendBack
from mqlake.broker.settings import FAST_PORT_DISTANCE, BrokerSettings
from mqlake.broker.slave.family import SlaveTables
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.topics import queues_for, without_topic
from mqlake.broker.static_topics.clean_up import StaticTopicCleaning
from mqlake.broker.static_topics.requests import StaticTopicAdmin
from mqlake.broker.transactions.end import EndTransactions
from mqlake.broker.transactions.resume import ResumeChecks
from mqlake.errors import StoreError
from mqlake.remoting.connection import Peer
from mqlake.remoting.limits import Limits
from mqlake.remoting.route import Route
from mqlake.remoting.server import RemotingServer
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store import MessageStore
from mqlake.store.config.properties_file import PropertiesFile
from mqlake.store.live_settings import LiveSettings
from mqlake.store.port import Store, cut_log
from mqlake.store.settings import BrokerRole
from mqlake.tls.settings import server_tls

_log = logging.getLogger(__name__)


class Family(Protocol):
    """The handlers of one family of requests; it is created with the broker's state and runtime."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime, /) -> None: ...

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        ...


FAMILIES: tuple[type[Family], ...] = (
    SendMessages,
    SendBack,
    ClientRequests,
    LockRequests,
    OffsetRequests,
    PullRequests,
    QueryRequests,
    EndTransactions,
    ResumeChecks,
    Recalls,
    Replies,
    PopConsumption,
    LiteTopics,
    StaticTopicAdmin,
    StaticTopicCleaning,
    SlaveTables,
    ControllerRequests,
    ActingMaster,
    *ADMIN,
)
"""All families of a broker, in the order in which they are created."""


class Broker:
    """A broker on one store directory. `async with Broker(settings) as broker:` runs it.

    Args:
        config: the file of the settings. Settings that are changed while the broker runs are
            written to it; by default, to `config/broker.properties` of the store.
        directory: the directory of the store; by default, `storePathRootDir`.
        clock: stamps messages and schedules services; by default, this machine's clock.
        client_time: returns the time (ms since 1970) as clients state it in their requests; by
            default, the time of the clock.

    Attributes:
        state: what the request families read and change; set while the broker runs.
        runtime: settings, long work, periodic functions, hooks; set while the broker runs.
        routes: the handlers by request code; set while the broker runs.
    """

    state: BrokerState
    runtime: BrokerRuntime
    routes: tuple[Route, ...]

    def __init__(
        self,
        settings: BrokerSettings,
        config: Path | None = None,
        *,
        directory: OwnedDirectory | None = None,
        clock: Clock | None = None,
        client_time: Callable[[], int] | None = None,
    ) -> None:
        self._live, self._config = LiveSettings(_of_start(settings)), config
        self._directory, self._clock, self._client_time = directory, clock, client_time
        self._cutting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.stop()

    @property
    def settings(self) -> BrokerSettings:
        """The current settings."""
        return self._live.now

    @property
    def peers(self) -> frozenset[Peer]:
        """The open connections."""
        return self._server.peers

    @property
    def served(self) -> Mapping[int, int]:
        """How many requests were served, without refused ones, by code."""
        return self._server.counts

    @property
    def failed(self) -> asyncio.Future[StoreError]:
        """Done once the store's service task has ended: the broker must be stopped."""
        return self._failed

    async def start(self) -> None:
        """Open the store, listen, and register.

        Raises:
            MqlakeError: the store cannot be opened, or the broker cannot listen on a port.
        """
        self._failed = asyncio.get_running_loop().create_future()
        await self._open()

    async def _open(self) -> None:
        settings = self.settings
        returns = returning.returns(settings)
        async with AsyncExitStack() as undo:
            delays = await returning.delay_offsets_of_slaves(settings) if returns else []
            store = MessageStore.open(
                settings.store_path, self._live, directory=self._directory, clock=self._clock
            )
            await undo.enter_async_context(store)
            store.failed.add_done_callback(self._store_failed)
            own_log = returning.own_log(store) if returns else None
            if own_log is not None and delays:
                # Before anything is delivered.
                returning.adopt_delay_offsets(delays, store.config.delay_offsets, own_log)
                store.continue_delays()
            self.runtime = runtime = BrokerRuntime(self._live, self._settings_file(store))
            self.state = state = BrokerState(store, runtime, self._client_time)
            if (group := state.replication.group) is not None:
                group.cut = self._cut_soon
            _restore_topics_of_master(state, runtime)
            self._live.on_change(lambda: _restore_topics_of_master(state, runtime), "broker_role")
            undo.callback(runtime.slices.stop)
            undo.callback(runtime.repeating.stop)
            families = [family(state, runtime) for family in FAMILIES]
            served = (route for family in families for route in family.routes())
            served = state.access.routes(served)
            self.routes = tuple(after_dispatch(route, store) for route in served)
            if own_log is not None:
                await _adopt_consumer_offsets(state, runtime, own_log)
            checks = (*state.access.checks, state.refusals.check)
            limits = Limits(memory=settings.max_connection_memory, share=settings.max_address_share)
            self._server = RemotingServer(self.routes, limits, checks, server_tls(settings))
            undo.push_async_callback(self._server.stop)
            self._live.on_change(
                lambda: self._server.set_memory(self.settings.max_connection_memory),
                "max_connection_memory",
            )
            self._live.on_change(
                lambda: self._server.set_share(self.settings.max_address_share),
                "max_address_share",
            )
            for port in (settings.listen_port, settings.listen_port - FAST_PORT_DISTANCE):
                await self._server.start(settings.listen_address, port)
            undo.push_async_callback(state.replication.stop)
            state.replication.budget = self._server.budget
            await state.replication.start()
            if state.replication.group is None:
                await state.names.start()  # else once the controller has said who the master is
            for function in runtime.on_start:
                await function()
            self._undo = undo.pop_all()

    def _store_failed(self, failed: asyncio.Future[StoreError]) -> None:
        if not failed.cancelled() and not self._failed.done():
            self._failed.set_result(failed.result())

    def _cut_soon(self, end: int) -> None:
        """Cut the log at a physical offset: the group's is another one from there on."""
        if self._cutting is None:
            self._cutting = asyncio.create_task(self._cut(end))

    async def _cut(self, end: int) -> None:
        """Close the store, cut its log, and open it again, which derives what follows from it.

        A slave's clients find another broker meanwhile.
        """
        _log.warning("the store is closed, cut at physical offset %d, and opened again", end)
        directory, clock = self.state.store.directory, self.state.store.clock
        size = self.settings.mapped_file_size_commit_log
        try:
            await self._close()
            await asyncio.to_thread(cut_log, directory, end, size, clock)
            self._live = LiveSettings(_of_start(self.settings))
            await self._open()
        except Exception as error:  # noqa: BLE001 (whoever runs the broker is told)
            _log.critical("the broker is stopped: its log could not be cut", exc_info=error)
            if not self._failed.done():
                self._failed.set_result(StoreError(f"the log could not be cut at {end}: {error}"))
        finally:
            self._cutting = None

    def _settings_file(self, store: Store) -> PropertiesFile:
        if self._config is not None:
            return PropertiesFile.given(self._config)
        return PropertiesFile.of_store(store.directory)

    async def stop(self) -> None:
        """Stop answering, and close the store cleanly.

        Raises:
            StoreError: the disk failed, or the store did before; the next start recovers.
        """
        if self._cutting is not None:
            await asyncio.gather(self._cutting, return_exceptions=True)
        await self._close()

    async def _close(self) -> None:
        # Whatever fails, the store is closed.
        async with self._undo:
            failures = [
                failure
                for function in (self.state.names.stop, *self.runtime.on_stop)
                if (failure := await _finish(function)) is not None
            ]
            if failures:
                raise failures[0]


async def _adopt_consumer_offsets(
    state: BrokerState, runtime: BrokerRuntime, own: returning.OwnLog
) -> None:
    found = await returning.consumer_offsets_of_slaves(runtime.settings, runtime.slices)
    own = own._replace(static_topics=state.static_topics)
    adopting = returning.adopt_consumer_offsets(found, state.store.config.consumer_offsets, own)
    await runtime.slices.finish(adopting)


def _of_start(settings: BrokerSettings) -> BrokerSettings:
    """Return the settings that a broker starts with: under a controller, those of a slave."""
    if not settings.enable_controller_mode or settings.is_slave:
        return settings
    return msgspec.structs.replace(settings, broker_role=BrokerRole.SLAVE, broker_id=1)


async def _finish(function: Callable[[], Awaitable[object] | None]) -> Exception | None:
    """Call a function before the stop; log and return its error."""
    try:
        if (waits := function()) is not None:
            await waits
    except Exception as error:  # noqa: BLE001 (the others, and closing the store, go on)
        _log.error("stopping: %s failed", function.__qualname__, exc_info=error)
        return error
    return None


def _restore_topics_of_master(state: BrokerState, runtime: BrokerRuntime) -> None:
    if not runtime.settings.is_slave:
        _restore_topics(state, runtime)


def _restore_topics(state: BrokerState, runtime: BrokerRuntime) -> None:
    """Create topics again that have messages only.

    They were not stored before the last process was killed, the table was lost, or this broker was
    a slave then, and had not copied them. They were not deleted: a deleted topic has no messages.
    """
    reads, topics, least = (
        state.store.reads,
        state.topics,
        runtime.settings.default_topic_queue_nums,
    )
    for name in without_topic(topics, reads.topics()):
        if topics.is_being_deleted(name):
            continue
        count = queues_for(name, reads.queues(name), least)
        _log.warning(
            "topic %s has messages but no configuration: created with %d queues", name, count
        )
        topics.make(name, count)
