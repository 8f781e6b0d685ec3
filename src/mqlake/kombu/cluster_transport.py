"""A transport's connection to a RocketMQ cluster, which its channels share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mqlake.client.message import Message
from mqlake.errors import MqlakeError
from mqlake.kombu import loop_thread
from mqlake.kombu.access import access_of
from mqlake.kombu.arrivals import WatchedQueue
from mqlake.kombu.border import KombuConnection, VirtualTransport
from mqlake.kombu.declarations import Declarations
from mqlake.kombu.direct_sender import DirectSender
from mqlake.kombu.errors import UnavailableError, as_kombu_error
from mqlake.kombu.feed import Feed
from mqlake.kombu.loop_thread import KombuThread
from mqlake.kombu.session import BrokerSession
from mqlake.kombu.settings import name_servers, transport_settings

T = TypeVar("T")

_MOST_ARRIVALS = 1000
_CONNECT_TIMEOUT = 5.0

_log = logging.getLogger(__name__)


class ClusterTransport(VirtualTransport):
    """Opens and closes the connection to the cluster; the channels run their requests on it.

    Attributes:
        arrivals: for each message that waits for `drain_events`, the feed that has it; or an error
            if the connection no longer works.
        queues: the declared queues.
        uses_tls: whether the connection is encrypted.
    """

    uses_tls = False

    def __init__(self, client: KombuConnection, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.settings = transport_settings(client.transport_options)
        self._name_servers = name_servers(client)
        self._access = access_of(client, needs_tls=self.uses_tls)
        self._thread: KombuThread | None = None
        self._session: BrokerSession | None = None
        self._sender: DirectSender | None = None
        self._has_warned = False
        self._begin()

    def _begin(self) -> None:
        """Forget the state of an earlier connection of this object."""
        self.arrivals: WatchedQueue[Feed | BaseException] = WatchedQueue()
        self.queues = Declarations()
        # kombu skips declarations that it has noted, so they would never reach `queues`.
        self.state.clear()

    @property
    def thread(self) -> KombuThread:
        """Return the thread of the event loop.

        Raises:
            UnavailableError: the connection is closed.
        """
        if self._thread is None:
            raise UnavailableError("the connection is closed")
        return self._thread

    @property
    def session(self) -> BrokerSession:
        """Return the session of the connection.

        Raises:
            UnavailableError: the connection is closed.
        """
        if self._session is None:
            raise UnavailableError("the connection is closed")
        return self._session

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine, which runs on the event loop.

        Raises:
            UnavailableError, RequestRefusedError: brokers do not answer, or refuse.
        """
        if self._thread is None:
            work.close()
            raise UnavailableError("the connection is closed")
        return self._thread.run(work)

    def call(self, function: Callable[[], T]) -> T:
        """Return the result of a function, which runs on the event loop."""

        async def work() -> T:
            return function()

        return self.run(work())

    def send(self, message: Message) -> None:
        """Store a message; return once a broker has acknowledged it.

        Raises:
            UnavailableError, RequestRefusedError: no broker has acknowledged it.
        """
        session = self.session
        if self._sender is None:
            self._sender = DirectSender(
                lambda topic: self.run(session.topics.route(topic)), self._access
            )
        try:
            is_stored = self.thread.is_own and self._sender.send(message)
        except MqlakeError as error:
            raise as_kombu_error(error) from error
        if not is_stored:
            self.run(session.send(message))

    def establish_connection(self) -> object:
        """Connect to the cluster.

        Raises:
            UnavailableError: no name server knows a broker, or none answers.
        """
        if self._thread is not None:  # It belongs to the parent of a process that was forked.
            self.close_connection(self)
        self._begin()
        thread = loop_thread.acquire()
        try:
            seconds = self.client.connect_timeout or _CONNECT_TIMEOUT
            session = thread.run(
                BrokerSession.open(
                    self._name_servers,
                    self.settings,
                    self._is_full,
                    self.arrivals.put,
                    seconds,
                    self._access,
                )
            )
        except BaseException:
            loop_thread.release(thread)
            raise
        self._thread, self._session = thread, session
        return super().establish_connection()

    def close_connection(self, connection: object) -> None:
        """Close all channels, then the connections to the cluster."""
        thread, session = self._thread, self._session
        self.arrivals.unwatch(is_own=thread is not None and thread.is_own)
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()
        if thread is None or session is None:
            return
        try:
            super().close_connection(connection)
            if thread.is_own:
                thread.run(session.close(self.queues.temporary))
        finally:
            self._thread = self._session = None
            loop_thread.release(thread)

    def verify_connection(self, connection: object) -> bool:  # noqa: ARG002
        """Return whether this process has opened the connection, and not closed it."""
        return self._thread is not None and self._thread.is_own

    def warn_of_priorities(self) -> None:
        """Log, once a connection, that priorities are ignored."""
        if not self._has_warned:
            self._has_warned = True
            _log.warning("priorities are ignored: RocketMQ delivers messages in their order")

    def _is_full(self) -> bool:
        return len(self.arrivals) >= _MOST_ARRIVALS
