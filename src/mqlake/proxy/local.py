"""Local mode: the service in the process of one broker."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import Final, Self

from mqlake.broker.broker import Broker
from mqlake.errors import MqlakeError
from mqlake.metrics.metric import Sample
from mqlake.tls.settings import server_tls

_OF_BROKER: Final = (
    "channel_expired_timeout",
    "max_address_share",
    "enable_topic_message_type_check",
    "min_invisible_time_mills_for_recv",
    "default_invisible_time_mills",
    "grpc_max_inbound_message_size",
    "grpc_max_inbound_request_size",
    "grpc_client_consumer_min_long_polling_timeout_millis",
    "grpc_client_consumer_max_long_polling_timeout_millis",
)
"""Settings that the broker has under the same names."""

_log: Final = logging.getLogger("mqlake.proxy")


def check_installed() -> None:
    """Check that the packages of the extra `grpc` are installed.

    Raises:
        MqlakeError: they are not.
    """
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        raise MqlakeError(
            "setting grpcServerPort: the gRPC service needs a package: pip install 'mqlake[grpc]'"
        )


class LocalService:
    """Serves RocketMQ 5's clients beside a broker. `async with` runs it.

    Args:
        broker: runs as long as the service.
    """

    def __init__(self, broker: Broker) -> None:
        check_installed()
        from mqlake.proxy.brokers.local import LocalBrokers
        from mqlake.proxy.listening import ListeningService
        from mqlake.proxy.service import GrpcService
        from mqlake.proxy.settings import ProxySettings

        settings = broker.settings
        own = ProxySettings(
            **{name: getattr(settings, name) for name in _OF_BROKER},
            max_message_size=settings.max_message_size,
        )
        self._settings, self._brokers = settings, LocalBrokers(broker)
        clock, slow = broker.state.store.clock, settings.slow_request_millis
        service = GrpcService(self._brokers, own, clock, slow)
        tls, balancers = server_tls(settings), settings.proxy_protocol_addresses
        self._service = ListeningService(service, tls, balancers)

    async def __aenter__(self) -> Self:
        settings = self._settings
        try:
            await self._service.start(settings.listen_address, settings.grpc_server_port)
        except BaseException:
            await self._stop()
            raise
        _log.info("gRPC clients are served on port %d", settings.grpc_server_port)
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._stop()

    async def _stop(self) -> None:
        await self._service.stop()
        self._brokers.stop()

    def samples(self) -> list[Sample]:
        """Return what was counted, as metrics."""
        return self._service.samples()
