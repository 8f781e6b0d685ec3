"""The service in local mode, without its wire: methods are called as the wire calls them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from inspect import isawaitable
from pathlib import Path
from typing import Any

from mqlake.formats.config.topics import MESSAGE_TYPE, Topic
from mqlake.grpc.call import Call
from mqlake.grpc.messages import Resource
from mqlake.grpc.method import Method
from mqlake.proxy.brokers.local import LocalBrokers
from mqlake.proxy.counts import CallCounts
from mqlake.proxy.gate import CLIENT_ID
from mqlake.proxy.service import GrpcService
from mqlake.proxy.settings import ProxySettings
from mqlake.storage.clock import Clock
from tests.broker.running import Running, running

LOCAL = "127.0.0.1:8081"


class Calls:
    """A service, its broker, and calls of its methods."""

    def __init__(self, broker: Running, service: GrpcService) -> None:
        self.broker, self.service = broker, service
        self.on_end: list[Callable[[], Awaitable[object]]] = []
        self.methods: dict[str, Method] = {method.name: method for method in service.methods}

    @property
    def counts(self) -> CallCounts:
        return self.service.counts

    def topic(self, name: str, message_type: str = "", queues: int = 4) -> None:
        """Create a topic."""
        attributes = {MESSAGE_TYPE: message_type} if message_type else {}
        topic = Topic(name, queues, queues, attributes=attributes)
        self.broker.state.topics.put(topic)

    def call(self, method: str, client_id: str = "client-1", **more: Any) -> Call:
        """Return a call of a client."""
        metadata = {CLIENT_ID: client_id} if client_id else {}
        metadata |= more.pop("metadata", {})
        return Call(method, metadata, peer=more.pop("peer", "127.0.0.1:5000"), local=LOCAL, **more)

    async def ask(self, method: str, request: Any, client_id: str = "client-1", **more: Any) -> Any:
        """Return the response to a call."""
        found = self.methods[method].handler(self.call(method, client_id, **more), request)
        return await found if isawaitable(found) else found

    def stream(self, method: str, request: Any, client_id: str = "client-1", **more: Any) -> Any:
        """Return the responses to a call that has several."""
        return self.methods[method].handler(self.call(method, client_id, **more), request)


@asynccontextmanager
async def serving(
    path: Path,
    proxy_settings: ProxySettings | None = None,
    *,
    clock: Clock | None = None,
    **settings: object,
) -> AsyncIterator[Calls]:
    """Run a broker and the service beside it."""
    async with running(path, clock=clock, **settings) as broker:
        brokers = LocalBrokers(broker.broker)
        clock, own = broker.state.store.clock, proxy_settings or ProxySettings()
        service = GrpcService(brokers, own, clock)
        calls = Calls(broker, service)
        try:
            yield calls
        finally:
            for function in calls.on_end:
                await function()
            await service.stop()
            brokers.stop()


def named(name: str, namespace: str = "") -> Resource:
    return Resource(resource_namespace=namespace, name=name)
