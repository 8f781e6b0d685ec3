"""Clients of a broker that asks for signatures and permissions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from mqlake.admin import Admin, acls, users
from mqlake.client import (
    Consumer,
    Credentials,
    Message,
    Producer,
    PullConsumer,
    RefusedError,
    SimpleConsumer,
)
from mqlake.protocol.bodies.auth import UserInfo
from mqlake.testing import RunningBroker, broker
from tests.auth.closed import CLOSED, ROOT
from tests.broker.running import PATIENCE

APP = Credentials("app", "app-password-9", "a token")
OTHER = Credentials("other", "other-password-1")


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    """A closed broker with a user who may send to topics t… and consume them as groups g…"""
    with broker(**CLOSED, authorizationEnabled="true", brokerName="a") as found:

        async def prepare() -> None:
            async with Admin(found.name_server, credentials=ROOT) as admin:
                for user in (APP, OTHER):
                    info = UserInfo(user.access_key, user.secret_key)
                    await users.create(admin, info, None, "a")
                for resource, actions in (("Topic:t*", ("Pub", "Sub")), ("Group:g*", ("Sub",))):
                    grant = acls.Grant([resource], actions)
                    await acls.create(admin, "User:app", grant, None, "a")

        asyncio.run(prepare())
        yield found


async def send(running: RunningBroker, topic: str, credentials: Credentials | None) -> None:
    async with Producer(running.name_server, credentials=credentials, timeout=PATIENCE) as producer:
        await producer.send(Message(topic=topic, body=b"one"))
        await producer.send_batch([Message(topic=topic, body=b"two")])
        await producer.send_oneway(Message(topic=topic, body=b"three"))


@pytest.mark.parametrize(
    ("topic", "credentials", "words"),
    [
        ("t-refused", None, "username cannot be null"),
        ("t-refused", Credentials("app", "wrong"), "check signature failed"),
        ("t-refused", OTHER, "no matched policies"),
        ("x-refused", APP, "no matched policies"),
    ],
)
def test_a_producer_without_permission_is_refused(
    running: RunningBroker, topic: str, credentials: Credentials | None, words: str
) -> None:
    with pytest.raises(RefusedError, match=words) as caught:
        asyncio.run(send(running, topic, credentials))
    assert caught.value.code == 16


def test_messages_are_sent_and_pushed(running: RunningBroker) -> None:
    async def run() -> None:
        await send(running, "t-push", APP)
        async with Consumer(
            running.name_server, "g-push", {"t-push": "*"}, credentials=APP
        ) as consumer:
            bodies: set[bytes] = set()
            async with asyncio.timeout(PATIENCE):
                async for message in consumer:
                    bodies.add(message.body)
                    await consumer.ack(message)
                    if len(bodies) == 3:
                        break
            await consumer.commit()

    asyncio.run(run())


def test_messages_are_popped(running: RunningBroker) -> None:
    async def run() -> None:
        await send(running, "t-pop", APP)
        async with SimpleConsumer(
            running.name_server, "g-pop", {"t-pop": "*"}, credentials=APP
        ) as consumer:
            found = 0
            async with asyncio.timeout(PATIENCE):
                while found < 3:
                    for message in await consumer.receive(32):
                        await consumer.ack(message)
                        found += 1

    asyncio.run(run())


def test_messages_are_pulled(running: RunningBroker) -> None:
    async def run() -> None:
        await send(running, "t-pull", APP)
        async with PullConsumer(running.name_server, "g-pull", credentials=APP) as consumer:
            consumer.assign(await consumer.queues_of("t-pull"))
            found = 0
            async with asyncio.timeout(PATIENCE):
                while found < 3:
                    found += len(await consumer.poll(timeout=1.0))
            await consumer.commit()

    asyncio.run(run())


def test_clients_of_two_users_share_no_connection(running: RunningBroker) -> None:
    async def run() -> None:
        async with (
            Producer(running.name_server, credentials=APP, timeout=PATIENCE) as good,
            Producer(running.name_server, credentials=OTHER, timeout=PATIENCE) as bad,
        ):
            await good.send(Message(topic="t-shared", body=b"x"))
            with pytest.raises(RefusedError, match="no matched policies"):
                await bad.send(Message(topic="t-shared", body=b"x"))
            await good.send(Message(topic="t-shared", body=b"x"))

    asyncio.run(run())
