"""Settings of clients, and their Telemetry streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from mqlake.grpc.messages import (
    ClientType,
    Code,
    FilterExpression,
    FilterType,
    Publishing,
    Settings,
    Subscription,
    SubscriptionEntry,
    TelemetryCommand,
)
from tests.proxy.serving import Calls, named


def producer(*topics: str) -> Settings:
    publishing = Publishing(topics=[named(topic) for topic in topics])
    return Settings(client_type=ClientType.PRODUCER, publishing=publishing)


def consumer(
    group: str, *topics: str, client_type: ClientType = ClientType.SIMPLE_CONSUMER
) -> Settings:
    expression = FilterExpression(type=FilterType.TAG, expression="*")
    entries = [SubscriptionEntry(topic=named(each), expression=expression) for each in topics]
    subscription = Subscription(group=named(group), subscriptions=entries)
    return Settings(client_type=client_type, subscription=subscription)


class OpenStream:
    """A Telemetry stream of a client."""

    def __init__(self, calls: Calls, client_id: str, **more: Any) -> None:
        self._in: asyncio.Queue[TelemetryCommand | None] = asyncio.Queue()
        calls.on_end.append(self.close)
        self._out = calls.stream("Telemetry", self._requests(), client_id, **more)

    async def _requests(self) -> AsyncIterator[TelemetryCommand]:
        while (command := await self._in.get()) is not None:
            yield command

    def send(self, command: TelemetryCommand) -> None:
        self._in.put_nowait(command)

    async def next(self) -> TelemetryCommand:
        return await anext(self._out)

    async def answer_to(self, settings: Settings) -> TelemetryCommand:
        self.send(TelemetryCommand(settings=settings))
        return await self.next()

    async def close(self) -> None:
        """End the stream as a client that is gone."""
        await self._out.aclose()

    async def end(self) -> None:
        """End the stream as a client that half-closes it."""
        self._in.put_nowait(None)
        async for _ in self._out:
            pass


async def known(calls: Calls, client_id: str, settings: Settings, **more: Any) -> OpenStream:
    """Return the stream of a client whose settings were accepted."""
    stream = OpenStream(calls, client_id, **more)
    answer = await stream.answer_to(settings)
    assert answer.status.code == Code.OK, answer.status.message
    return stream
