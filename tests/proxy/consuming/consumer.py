"""A consumer of the service, without a wire."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.grpc.messages import (
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    Broker,
    ClientType,
    Code,
    Duration,
    FilterExpression,
    FilterType,
    Message,
    MessageQueue,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    RetryPolicy,
    Settings,
    Subscription,
    TelemetryCommand,
)
from mqlake.protocol.bodies.heartbeat import Heartbeat
from mqlake.protocol.codes import ResponseCode
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.clients.client import GrpcClient
from tests.broker.running import to
from tests.proxy.serving import Calls, named

TOPIC, GROUP = "Orders", "group"
MAX_ATTEMPTS = 17


class LiveStream:
    """A Telemetry stream that is open."""

    def send(self, command: TelemetryCommand) -> None:
        raise AssertionError(command)

    async def ask(self, command: TelemetryCommand, nonce: str) -> TelemetryCommand:
        raise AssertionError(command, nonce)


class TestedConsumer:
    """A client that consumes.

    Attributes:
        client: what the service knows of it.
    """

    __test__ = False

    def __init__(
        self,
        calls: Calls,
        client_id: str = "consumer-1",
        *,
        group: str = GROUP,
        is_fifo: bool = False,
        max_attempts: int = MAX_ATTEMPTS,
        is_connected: bool = True,
        **call: Any,
    ) -> None:
        self.calls, self.client_id, self.group, self._call = calls, client_id, group, call
        settings = Settings(
            client_type=ClientType.PUSH_CONSUMER,
            subscription=Subscription(group=named(group), fifo=is_fifo),
            backoff_policy=RetryPolicy(max_attempts=max_attempts),
            request_timeout=Duration(seconds=3),
        )
        if is_fifo or max_attempts != MAX_ATTEMPTS:
            known = SubscriptionGroup(
                group_name=group,
                consume_message_orderly=is_fifo,
                retry_max_times=max_attempts - 1,
            )
            calls.broker.state.groups.put(known)
        caller = Caller(client_id, "127.0.0.1:5000")
        clients = calls.service.state.clients
        self.client: GrpcClient = clients.put(caller, settings, Heartbeat(client_id=client_id))
        if is_connected:
            clients.attach(self.client, LiveStream())

    def request(self, most: int = 32, **more: Any) -> ReceiveMessageRequest:
        """Return a request for messages: a poll of 5 s, 60 s invisible, no renewal."""
        tags, sql = more.pop("tags", "*"), more.pop("sql", None)
        kind = FilterType.TAG if sql is None else FilterType.SQL
        seconds = more.pop("invisible", 60)
        known: dict[str, Any] = {
            "group": named(self.group),
            "message_queue": MessageQueue(topic=named(TOPIC), id=0, broker=Broker(name="broker-a")),
            "filter_expression": FilterExpression(type=kind, expression=sql or tags),
            "batch_size": most,
            "invisible_duration": Duration(seconds=seconds),
            "long_polling_timeout": Duration(seconds=5),
        }
        return ReceiveMessageRequest(**(known | more))

    def stream(self, most: int = 32, **more: Any) -> Any:
        """Return the responses to a call that receives messages."""
        request = self.request(most, **more)
        return self.calls.stream("ReceiveMessage", request, self.client_id, **self._call)

    async def responses(self, most: int = 32, **more: Any) -> list[ReceiveMessageResponse]:
        return [response async for response in self.stream(most, **more)]

    async def receive(self, most: int = 32, **more: Any) -> list[Message]:
        """Return messages; none if there is none."""
        status, *rest, last = await self.responses(most, **more)
        assert last.WhichOneof("content") == "delivery_timestamp"
        messages = [response.message for response in rest]
        wanted = Code.OK if messages else Code.MESSAGE_NOT_FOUND
        assert status.status.code == wanted, status.status
        return messages

    async def acknowledge(self, *messages: Message) -> AckMessageResponse:
        return await self.acknowledge_by(*(entry(message) for message in messages))

    async def acknowledge_by(self, *entries: AckMessageEntry) -> AckMessageResponse:
        request = AckMessageRequest(group=named(self.group), topic=named(TOPIC), entries=entries)
        return await self.calls.ask("AckMessage", request, self.client_id, **self._call)

    async def begin(self) -> None:
        """Let a new group begin here."""
        assert await self.receive() == []


def entry(message: Message) -> AckMessageEntry:
    found = message.system_properties
    return AckMessageEntry(message_id=found.message_id, receipt_handle=found.receipt_handle)


async def send(
    calls: Calls,
    *bodies: str | bytes,
    queue_id: int = 0,
    sys_flag: int = 0,
    **properties: str,
) -> None:
    """Send messages to the topic that is consumed."""
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    header = to(TOPIC, queue_id=queue_id, properties=text, sys_flag=sys_flag)
    for body in bodies:
        data = body.encode() if isinstance(body, str) else body
        answer = await calls.broker.send(header, data)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
    await asyncio.sleep(0.1)  # Until they can be read, all of them.


def bodies(messages: Sequence[Message]) -> list[str]:
    return [message.body.decode() for message in messages]
