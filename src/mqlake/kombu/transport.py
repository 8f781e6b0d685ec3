"""The transport of `rocketmq://` URLs, and of `rocketmqs://` URLs, which use TLS."""

from __future__ import annotations

from queue import Empty
from time import monotonic

import mqlake
from mqlake.kombu.border import Hub, VirtualTransport
from mqlake.kombu.channel import Channel
from mqlake.kombu.cluster_transport import ClusterTransport
from mqlake.kombu.errors import RequestRefusedError, UnavailableError
from mqlake.kombu.feed import Feed
from mqlake.kombu.settings import DEFAULT_PORT


class Transport(ClusterTransport):
    """A connection of kombu to a RocketMQ cluster."""

    Channel = Channel
    default_port = DEFAULT_PORT
    driver_type = "rocketmq"
    driver_name = "mqlake"
    implements = VirtualTransport.implements.extend(
        asynchronous=True, exchange_type=frozenset(("direct", "topic", "fanout"))
    )
    connection_errors = (*VirtualTransport.connection_errors, UnavailableError)
    channel_errors = (*VirtualTransport.channel_errors, RequestRefusedError)
    recoverable_connection_errors = (UnavailableError,)
    recoverable_channel_errors = ()

    def driver_version(self) -> str:
        """Return mqlake's version."""
        return mqlake.__version__

    def drain_events(
        self,
        connection: object,  # noqa: ARG002
        timeout: float | None = None,
    ) -> None:
        """Deliver one message.

        Raises:
            TimeoutError: no message arrived within `timeout` seconds.
            UnavailableError: the connection no longer works.
        """
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - monotonic())
            try:
                arrival = self.arrivals.get(left)
            except Empty:
                raise TimeoutError from None
            if self._deliver(arrival):
                return

    def register_with_event_loop(self, connection: object, loop: Hub) -> None:  # noqa: ARG002
        """Have the event loop of a Celery worker deliver messages.

        Celery's pools then need no locks that their processes share, and that a killed process
        would never release.
        """
        self.arrivals.watch(loop, self._deliver)

    def _deliver(self, arrival: Feed | BaseException) -> bool:
        if isinstance(arrival, BaseException):
            raise UnavailableError(f"the connection failed: {arrival!r}") from arrival
        return arrival.deliver()


class TlsTransport(Transport):
    """The same with TLS; there is no fallback to clear text."""

    uses_tls = True
