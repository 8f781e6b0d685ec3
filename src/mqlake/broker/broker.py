"""A broker: one store, the request families, two ports, registration with name servers.

Upstream: `BrokerController`. Everything runs on one event loop; what waits for the disk does so in
the store's own threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import msgspec

from mqlake.broker.acting.family import ActingMaster
from mqlake.broker.acting.returning_master import ReturningMaster
from mqlake.broker.admin.families import ADMIN
from mqlake.broker.after_dispatch import after_dispatch
from mqlake.broker.clients import ClientRequests
from mqlake.broker.controller.requests import ControllerRequests
from mqlake.broker.lane.choice import is_chosen as lane_is_chosen
from mqlake.broker.lite.family import LiteRequests
from mqlake.broker.locks import LockRequests
from mqlake.broker.logic_queues.routes import LogicQueueRoutes
from mqlake.broker.offsets import OffsetRequests
from mqlake.broker.pop.family import PopConsumption
from mqlake.broker.pull.requests import PullRequests
from mqlake.broker.query import QueryRequests
from mqlake.broker.quotas import QUOTAS, address_quota, user_quota
from mqlake.broker.recall import Recalls
from mqlake.broker.reply import Replies
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.send import SendMessages
from mqlake.broker.send_back import SendBack
from mqlake.broker.settings import FAST_PORT_DISTANCE, BrokerSettings
from mqlake.broker.slave.family import SlaveTables
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.restored_topics import restore_topics
from mqlake.broker.static_topics.clean_up import StaticTopicCleaning
from mqlake.broker.static_topics.requests import StaticTopicAdmin
from mqlake.broker.topic_routes import TopicRoutes
from mqlake.broker.transactions.end import EndTransactions
from mqlake.broker.transactions.resume import ResumeChecks
from mqlake.errors import StoreError
from mqlake.remoting.latencies import Latencies
from mqlake.remoting.limits import Limits
from mqlake.remoting.route import Check, Route
from mqlake.remoting.server import RemotingServer, RemotingService
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store import MessageStore
from mqlake.store.bounds import networks
from mqlake.store.config.properties_file import PropertiesFile
from mqlake.store.live_settings import LiveSettings
from mqlake.store.port import Progress, Store, cut_log
from mqlake.store.settings import BrokerRole
from mqlake.tls.settings import server_tls

if TYPE_CHECKING:
    from mqlake.broker.lane.lane import Lane
    from mqlake.broker.lane.pulls import LanePulls

_LONGEST_LANE_TURN = 5
"""Milliseconds."""
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
    LiteRequests,
    TopicRoutes,
    StaticTopicAdmin,
    StaticTopicCleaning,
    SlaveTables,
    ControllerRequests,
    ActingMaster,
    *ADMIN,
)
"""All families of a broker, in the order in which they are created."""


class Broker(RemotingService):
    """A broker on one store directory. `async with Broker(settings) as broker:` runs it.

    Args:
        config: the file of the settings. Settings that are changed while the broker runs are
            written to it; by default, to `config/broker.properties` of the store.
        directory: the directory of the store; by default, `storePathRootDir`.
        clock: stamps messages and schedules services; by default, this machine's clock.
        client_time: returns the time (ms since 1970) as clients state it in their requests; by
            default, the time of the clock.
        progress: called, in any thread, with how many of how many bytes the recovery of the store
            has done.

    Attributes:
        state: what the request families read and change; set while the broker runs.
        runtime: settings, long work, periodic functions, hooks; set while the broker runs.
        families: the families in the order of `FAMILIES`; set while the broker runs.
        routes: the handlers by request code; set while the broker runs.
    """

    state: BrokerState
    runtime: BrokerRuntime
    families: tuple[Family, ...]
    routes: tuple[Route, ...]

    def __init__(
        self,
        settings: BrokerSettings,
        config: Path | None = None,
        *,
        directory: OwnedDirectory | None = None,
        clock: Clock | None = None,
        client_time: Callable[[], int] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._live, self._config = LiveSettings(_of_start(settings)), config
        self._directory, self._clock, self._client_time = directory, clock, client_time
        self._progress = progress
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
        """Open the store, create the families, serve their requests, and register."""
        async with AsyncExitStack() as undo:
            returning = await ReturningMaster.before_open(self.settings)
            store = await self._open_store(undo)
            returning.store_opened(store)
            self._create(store, undo)
            await returning.before_serving(self.state, self.runtime)
            await self._serve(undo)
            await self._register()
            self._undo = undo.pop_all()

    async def _open_store(self, undo: AsyncExitStack) -> Store:
        path, directory, clock = self.settings.store_path, self._directory, self._clock
        opened = MessageStore.open(
            path, self._live, progress=self._progress, directory=directory, clock=clock
        )
        store = await undo.enter_async_context(opened)
        store.failed.add_done_callback(self._store_failed)
        return store

    def _create(self, store: Store, undo: AsyncExitStack) -> None:
        """Create the state, the runtime, and the families with their routes."""
        self.runtime = runtime = BrokerRuntime(self._live, self._settings_file(store))
        self.state = state = BrokerState(store, runtime, self._client_time, self._cut_soon)
        restore_topics(state.topics, store.reads, self._live)
        undo.callback(runtime.slices.stop)
        undo.callback(runtime.repeating.stop)
        self.families = tuple(family(state, runtime) for family in FAMILIES)
        logic_queues = LogicQueueRoutes(state, runtime)
        handlers = (route for family in self.families for route in family.routes())
        served = state.access.routes(map(logic_queues.wrap, handlers))
        self.routes = tuple(after_dispatch(route, store) for route in served)

    async def _serve(self, undo: AsyncExitStack) -> None:
        """Serve requests at both ports, and copy the log."""
        settings, replication = self.settings, self.state.replication
        limits = Limits(memory=settings.max_connection_memory, share=settings.max_address_share)
        slow, exporter = settings.slow_request_millis, settings.metrics_exporter_type
        pulls = self._open_lane_pulls(undo)
        lane = self._open_lane(pulls)
        self._server = server = RemotingServer(
            self._routes(lane, pulls),
            limits,
            self._checks(),
            server_tls(settings),
            Latencies(slow) if slow or exporter != "DISABLE" else None,
            self.state.quotas,
            proxies=networks(settings.proxy_protocol_addresses),
        )
        undo.push_async_callback(server.stop)
        self._live.on_change(
            lambda: server.set_memory(self.settings.max_connection_memory), "max_connection_memory"
        )
        self._live.on_change(
            lambda: server.set_share(self.settings.max_address_share), "max_address_share"
        )
        self._limit_clients()
        self._live.on_change(self._limit_clients, *QUOTAS)
        for port in (settings.listen_port, settings.listen_port - FAST_PORT_DISTANCE):
            await server.start(settings.listen_address, port)
        if lane is not None:
            lane.open(server)
            undo.callback(lane.stop)
        undo.push_async_callback(replication.stop)
        await replication.start(server.budget)

    def _routes(self, lane: Lane | None, pulls: LanePulls | None) -> Sequence[Route]:
        """Return the routes, of which the lane serves usual sends and pulls."""
        routes = self.routes if lane is None else lane.routes(self.routes)
        return routes if pulls is None else pulls.routes(routes)

    def _open_lane_pulls(self, undo: AsyncExitStack) -> LanePulls | None:
        """Return what serves usual pulls; None if they and sends take the ordinary path."""
        access = self.state.access
        if not lane_is_chosen() or access.plain is not None:
            return None
        # Without compiled kernels, these modules cannot be imported.
        from mqlake.broker.lane.pull_decisions import PullDecisions
        from mqlake.broker.lane.pulls import LanePulls
        from mqlake.broker.lane.users import LaneUsers

        state, runtime = self.state, self.runtime
        requests = next(each for each in self.families if isinstance(each, PullRequests))
        decisions = PullDecisions(requests, state, runtime, LaneUsers(access))
        pulls = LanePulls(requests, state, runtime, decisions)
        undo.callback(pulls.stop)
        return pulls

    def _open_lane(self, pulls: LanePulls | None) -> Lane | None:
        """Return what serves usual sends, and reads connections; None if it is not wanted."""
        state, runtime = self.state, self.runtime
        # A turn of the lane has one duration for the log of slow requests.
        is_timed = 0 < self.settings.slow_request_millis < _LONGEST_LANE_TURN
        if pulls is None or is_timed:
            return None
        # Without compiled kernels, these modules cannot be imported.
        from mqlake.broker.lane.decisions import SendDecisions
        from mqlake.broker.lane.lane import Lane

        sends = next(each for each in self.families if isinstance(each, SendMessages))
        lane = Lane(sends, state, SendDecisions(sends, state, runtime, pulls.users), pulls)
        runtime.live.on_change(lane.clear, *QUOTAS)
        return lane

    def _checks(self) -> Sequence[Check]:
        """Return what is checked before every route."""
        state = self.state
        checks = state.access.checks
        if checks:
            checks = (*checks, state.quotas.check_user)
        return state.quotas.check_address, *checks, state.refusals.check

    def _limit_clients(self) -> None:
        now = self.settings
        self.state.quotas.set(address_quota(now), user_quota(now), self._server.peers)

    async def _register(self) -> None:
        if self.state.replication.group is None:
            await self.state.names.start()  # otherwise once the controller has named the master
        for function in self.runtime.on_start:
            await function()

    def _store_failed(self, failed: asyncio.Future[StoreError]) -> None:
        if not failed.cancelled() and not self._failed.done():
            self._failed.set_result(failed.result())

    def _cut_soon(self, end: int) -> None:
        """Cut the log at the physical offset from which on the group's log differs."""
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
