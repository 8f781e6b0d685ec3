"""A broker: one store, the request families, two ports, the name servers.

Upstream: `BrokerController`. Everything runs on one event loop; what waits for the disk does so in
the store's own threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol, Self

from mqlake.broker.admin.families import ADMIN
from mqlake.broker.clients.requests import ClientRequests
from mqlake.broker.lite.refusals import LiteTopics
from mqlake.broker.locks.requests import LockRequests
from mqlake.broker.offsets.requests import OffsetRequests
from mqlake.broker.parts import Parts
from mqlake.broker.pop.family import PopConsumption
from mqlake.broker.pull.requests import PullRequests
from mqlake.broker.query.requests import QueryRequests
from mqlake.broker.recall.recall import Recalls
from mqlake.broker.reply.reply import Replies
from mqlake.broker.send.send import SendMessages
from mqlake.broker.send_back.send_back import SendBack
from mqlake.broker.settings import FAST_PORT_DISTANCE, BrokerSettings
from mqlake.broker.slave.family import SlaveTables
from mqlake.broker.slave.refusals import SlaveRefusals
from mqlake.broker.static_topics.clean_up import StaticTopicCleaning
from mqlake.broker.static_topics.requests import StaticTopicAdmin
from mqlake.broker.topics import queues_without_topic
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
from mqlake.store.port import Store

_log = logging.getLogger(__name__)


class Family(Protocol):
    """What answers one family of requests; made with a broker's `Parts`."""

    def __init__(self, parts: Parts) -> None: ...

    def routes(self) -> Sequence[Route]:
        """Return what serves each request code."""
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
    *ADMIN,
)
"""Every family that a broker has, in the order in which they are made."""


class Broker:
    """A broker on one store directory. `async with Broker(settings) as broker:` runs it.

    Args:
        config: the file that the settings come from. Settings that are changed while the broker
            runs are written to it; without one, to `config/broker.properties` of the store.
        directory: where the store's bytes live; without it, in `storePathRootDir`.
        clock: what messages are stamped and services scheduled by; without it, this machine's.

    Attributes:
        parts: what the request families share; there while it runs.
        routes: what serves each request code; there while it runs.
    """

    parts: Parts
    routes: tuple[Route, ...]

    def __init__(
        self,
        settings: BrokerSettings,
        config: Path | None = None,
        *,
        directory: OwnedDirectory | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._live, self._config = LiveSettings(settings), config
        self._directory, self._clock = directory, clock

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.stop()

    @property
    def settings(self) -> BrokerSettings:
        """The settings as they are now."""
        return self._live.now

    @property
    def peers(self) -> frozenset[Peer]:
        """The connections that are open."""
        return self._server.peers

    @property
    def failed(self) -> asyncio.Future[StoreError]:
        """Done once the store has lost its service task: the broker is of no use any more."""
        return self.parts.store.failed

    async def start(self) -> None:
        """Open the store, listen, and register.

        Raises:
            MqlakeError: the store cannot be opened, or a port cannot be listened on.
        """
        settings = self.settings
        async with AsyncExitStack() as undo:
            store = MessageStore.open(
                settings.store_path, self._live, directory=self._directory, clock=self._clock
            )
            await undo.enter_async_context(store)
            self.parts = parts = Parts(self._live, store, self._settings_file(store))
            if not store.was_closed_cleanly and not self.settings.is_slave:
                _restore_topics(parts)
            undo.callback(parts.slices.stop)
            undo.callback(parts.repeating.stop)
            self.routes = tuple(route for family in FAMILIES for route in family(parts).routes())
            limits = Limits(memory=settings.max_connection_memory)
            self._server = RemotingServer(self.routes, limits, (SlaveRefusals(self._live).check,))
            undo.push_async_callback(self._server.stop)
            self._live.on_change(
                lambda: self._server.set_memory(self.settings.max_connection_memory),
                "max_connection_memory",
            )
            for port in (settings.listen_port, settings.listen_port - FAST_PORT_DISTANCE):
                await self._server.start(settings.listen_address, port)
            undo.push_async_callback(parts.replication.stop)
            await parts.replication.start()
            await parts.names.start()
            self._undo = undo.pop_all()

    def _settings_file(self, store: Store) -> PropertiesFile:
        if self._config is not None:
            return PropertiesFile.given(self._config)
        return PropertiesFile.of_store(store.directory)

    async def stop(self) -> None:
        """Answer nobody any more, and leave the store in good order.

        Raises:
            StoreError: the disk failed, or the store did before; the next start recovers.
        """
        # Whatever fails, the store is closed.
        async with self._undo:
            failures = [
                failure
                for function in (self.parts.names.stop, *self.parts.on_stop)
                if (failure := await _finish(function)) is not None
            ]
            if failures:
                raise failures[0]


async def _finish(function: Callable[[], Awaitable[object] | None]) -> Exception | None:
    """Call what is to be done before a stop; log and return what it raises."""
    try:
        if (waits := function()) is not None:
            await waits
    except Exception as error:  # noqa: BLE001 (the others, and closing the store, go on)
        _log.error("stopping: %s failed", function.__qualname__, exc_info=error)
        return error
    return None


def _restore_topics(parts: Parts) -> None:
    """Make topics anew that were not kept before the last process was killed."""
    store, topics = parts.store, parts.topics
    queues = {name: store.reads.queues(name) for name in store.reads.topics()}
    least = parts.settings.default_topic_queue_nums
    for name, count in queues_without_topic(topics, queues, least).items():
        _log.warning("topic %s has messages but was not kept: made with %d queues", name, count)
        topics.make(name, count)
