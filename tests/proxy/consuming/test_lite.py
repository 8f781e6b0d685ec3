"""Lite topics over gRPC: sends, subscriptions, receiving, acknowledgements, and commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.grpc.messages import (
    AckMessageEntry,
    AckMessageRequest,
    Broker,
    ChangeInvisibleDurationRequest,
    ClientType,
    Code,
    Duration,
    LiteSubscriptionAction,
    Message,
    MessageQueue,
    OffsetOption,
    Policy,
    ReceiveMessageRequest,
    SendMessageRequest,
    Settings,
    Subscription,
    SyncLiteSubscriptionRequest,
    SystemProperties,
    TelemetryCommand,
)
from mqlake.protocol.bodies.heartbeat import Heartbeat
from mqlake.proxy.brokers.port import Caller
from tests import simulated
from tests.proxy.serving import Calls, named, serving

TOPIC, GROUP = "Sessions", "agents"
ADD = LiteSubscriptionAction.PARTIAL_ADD


class _Commands:
    def __init__(self) -> None:
        self.sent: list[TelemetryCommand] = []

    def send(self, command: TelemetryCommand) -> None:
        self.sent.append(command)

    async def ask(self, command: TelemetryCommand, nonce: str) -> TelemetryCommand:
        raise AssertionError(command, nonce)


class LiteConsumer:
    """A client that consumes lite topics."""

    def __init__(self, calls: Calls, client_id: str = "consumer-1", group: str = GROUP) -> None:
        self.calls, self.client_id, self.group = calls, client_id, group
        settings = Settings(
            client_type=ClientType.LITE_PUSH_CONSUMER,
            subscription=Subscription(group=named(group)),
            request_timeout=Duration(seconds=3),
        )
        clients, self.commands = calls.service.state.clients, _Commands()
        caller = Caller(client_id, "127.0.0.1:5000")
        client = clients.put(caller, settings, Heartbeat(client_id=client_id))
        clients.attach(client, self.commands)

    async def sync(self, action: int, *lites: str, **more: Any) -> int:
        request = SyncLiteSubscriptionRequest(
            action=action,
            topic=named(more.pop("topic", TOPIC)),
            group=named(self.group),
            lite_topic_set=lites,
            version=1,
            **more,
        )
        answer = await self.calls.ask("SyncLiteSubscription", request, self.client_id)
        return answer.status.code

    async def receive(self, most: int = 32, *, invisible: int = 60) -> list[Message]:
        request = ReceiveMessageRequest(
            group=named(self.group),
            message_queue=MessageQueue(topic=named(TOPIC), id=-1, broker=Broker(name="broker-a")),
            batch_size=most,
            invisible_duration=Duration(seconds=invisible),
            long_polling_timeout=Duration(seconds=5),
        )
        stream = self.calls.stream("ReceiveMessage", request, self.client_id)
        found = [response async for response in stream]
        status = found[0].status
        assert status.code in (Code.OK, Code.MESSAGE_NOT_FOUND), status
        return [each.message for each in found if each.WhichOneof("content") == "message"]

    async def acknowledge(self, message: Message) -> int:
        system = message.system_properties
        entry = AckMessageEntry(
            message_id=system.message_id,
            receipt_handle=system.receipt_handle,
            lite_topic=system.lite_topic,
        )
        request = AckMessageRequest(group=named(self.group), topic=named(TOPIC), entries=[entry])
        return (await self.calls.ask("AckMessage", request, self.client_id)).status.code


async def send(calls: Calls, lite: str, body: str, topic: str = TOPIC) -> int:
    system = SystemProperties(message_id=f"ID-{lite}-{body}", lite_topic=lite)
    message = Message(topic=named(topic), system_properties=system, body=body.encode())
    answer = await calls.ask("SendMessage", SendMessageRequest(messages=[message]), "producer")
    return answer.status.code


def run(path: Path, test: Callable[[Calls], Awaitable[None]], **settings: Any) -> None:
    async def served() -> None:
        async with serving(path, enableLmq=True, **settings) as calls:
            calls.topic(TOPIC, "LITE")
            calls.topic("Orders")
            group(calls, GROUP)
            await test(calls)

    simulated.run(served())


def group(calls: Calls, name: str, **attributes: str) -> None:
    known = {"lite.bind.topic": TOPIC, **{k.replace("_", "."): v for k, v in attributes.items()}}
    calls.broker.state.groups.put(SubscriptionGroup(name, attributes=known))


def test_messages_of_subscribed_lite_topics_are_received_in_order(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = LiteConsumer(calls)
        assert await consumer.sync(ADD, "a", "b") == Code.OK
        for number in range(2):
            for lite in ("a", "b", "c"):
                assert await send(calls, lite, f"{lite}{number}") == Code.OK
        calls.broker.state.store.reads.catch_up()
        found = await consumer.receive()
        assert sorted(each.body.decode() for each in found) == ["a0", "a1", "b0", "b1"]
        first = next(each for each in found if each.body == b"a0")
        assert first.system_properties.lite_topic == "a"
        assert first.system_properties.delivery_attempt == 1
        for each in found:
            assert await consumer.acknowledge(each) == Code.OK
        assert await consumer.receive() == []

    run(tmp_path, test)


def test_an_unacknowledged_message_comes_again_and_counts(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer = LiteConsumer(calls)
        await consumer.sync(ADD, "a")
        await send(calls, "a", "0")
        (message,) = await consumer.receive()
        await send(calls, "a", "1")
        assert await consumer.receive() == []
        request = ChangeInvisibleDurationRequest(
            group=named(GROUP),
            topic=named(TOPIC),
            receipt_handle=message.system_properties.receipt_handle,
            invisible_duration=Duration(seconds=1),
            message_id=message.system_properties.message_id,
            lite_topic="a",
        )
        answer = await calls.ask("ChangeInvisibleDuration", request, consumer.client_id)
        assert answer.status.code == Code.OK
        again = await consumer.receive()
        assert [each.body for each in again] == [b"0", b"1"]
        assert [each.system_properties.delivery_attempt for each in again] == [2, 1]

    run(tmp_path, test)


def test_a_client_is_notified_when_another_one_takes_over(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        group(calls, "single", lite_sub_model="Exclusive")
        old, new = (LiteConsumer(calls, name, "single") for name in ("old", "new"))
        await calls.service.state.brokers.register(
            Caller("old", "127.0.0.1:5000"), Heartbeat(client_id="old")
        )
        await old.sync(ADD, "a")
        await new.sync(ADD, "a")
        await asyncio.sleep(1)
        (command,) = old.commands.sent
        assert command.notify_unsubscribe_lite_command.lite_topic == "a"

    run(tmp_path, test)


def test_subscriptions_end_with_their_client(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        consumer, lite = LiteConsumer(calls), calls.broker.state.lite
        option = OffsetOption(policy=Policy.MIN)
        assert await consumer.sync(ADD, "a", "b", offset_option=option) == Code.OK
        assert lite.subscriptions.count == 2
        await consumer.sync(LiteSubscriptionAction.PARTIAL_REMOVE, "a")
        assert lite.subscriptions.count == 1
        await consumer.sync(LiteSubscriptionAction.COMPLETE_ADD, "c", "d")
        assert lite.subscriptions.count == 2
        calls.service.state.clients.end(consumer.client_id)
        await asyncio.sleep(1)
        assert lite.subscriptions.count == 0

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("lites", "more", "code"),
    [
        (["a b"], {}, Code.ILLEGAL_LITE_TOPIC),
        (["x" * 65], {}, Code.ILLEGAL_LITE_TOPIC),
        (["a"], {"topic": "Orders"}, Code.ILLEGAL_TOPIC),
        ([f"l{number}" for number in range(2301)], {}, Code.LITE_SUBSCRIPTION_QUOTA_EXCEEDED),
    ],
)
def test_wrong_subscriptions_are_refused(
    tmp_path: Path, lites: list[str], more: dict[str, Any], code: int
) -> None:
    async def test(calls: Calls) -> None:
        assert await LiteConsumer(calls).sync(ADD, *lites, **more) == code
        stranger = LiteConsumer(calls, "c2", "unknown")
        assert await stranger.sync(ADD, "a") == Code.ILLEGAL_CONSUMER_GROUP

    run(tmp_path, test)


def test_limits_of_the_broker_have_their_codes(tmp_path: Path) -> None:
    async def test(calls: Calls) -> None:
        assert await send(calls, "a", "0") == Code.OK
        assert await send(calls, "b", "0") == Code.LITE_TOPIC_QUOTA_EXCEEDED
        assert await send(calls, "a b", "0") == Code.ILLEGAL_LITE_TOPIC
        assert await send(calls, "a", "0", "Orders") == Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
        consumer = LiteConsumer(calls)
        assert await consumer.sync(ADD, "a") == Code.OK
        assert await consumer.sync(ADD, "b") == Code.LITE_SUBSCRIPTION_QUOTA_EXCEEDED

    run(tmp_path, test, maxLmqConsumeQueueNum=1, maxLiteSubscriptionCount=1)
