"""Groups: why one lags, its members, and changes of its offsets."""

from __future__ import annotations

import asyncio
import time

import pytest

from mqlake.client.blocking import Consumer
from mqlake.client.message import Message
from mqlake.testing.running_broker import RunningBroker
from tests.console.site import site, words


def send(running: RunningBroker, topic: str, count: int) -> None:
    with running.producer() as producer:
        for number in range(count):
            producer.send(Message(topic=topic, body=f"{number}".encode()))


def consume(running: RunningBroker, group: str, topic: str, count: int) -> None:
    """Consume messages and commit their offsets."""
    with running.consumer(group, topic) as consumer:
        receive(consumer, count)


def receive(consumer: Consumer, count: int) -> None:
    for _ in range(count):
        message = consumer.receive()
        assert message is not None
        consumer.ack(message)
    consumer.commit()


def test_says_that_nobody_is_connected(running: RunningBroker) -> None:
    send(running, "unread", 3)
    consume(running, "absent", "unread", 3)
    send(running, "unread", 4)

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            shown = words(await visitor.get("/groups/group?group=absent"))
            assert "Why this group lags No consumer is connected" in shown
            listed = words(await visitor.get("/groups?q=absent"))
            assert "absent 4 0 1" in listed

    asyncio.run(visit())


def test_shows_members_and_their_queues(running: RunningBroker) -> None:
    send(running, "read", 3)

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            shown = words(await visitor.get("/groups/group?group=present"))
            assert "Everything is consumed." in shown
            assert "read: *" in shown

    with running.consumer("present", "read") as consumer:
        receive(consumer, 3)
        asyncio.run(visit())


def test_skips_the_backlog_and_resets_to_a_time(running: RunningBroker) -> None:
    send(running, "moved", 2)
    consume(running, "mover", "moved", 2)
    send(running, "moved", 5)

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            form = {"group": "mover", "topic": "moved"}
            skipped = words(await visitor.post("/groups/skip", form))
            assert "queues of moved was skipped." in skipped
            assert "0 messages not consumed (lag)" in skipped
            reset = words(await visitor.post("/groups/reset", {**form, "time": "0"}))
            assert "queues of moved were reset." in reset
            assert "7 messages not consumed (lag)" in reset
            late = str(int(time.time() * 1000) + 3_600_000)
            again = words(await visitor.post("/groups/reset", {**form, "time": late}))
            assert "0 messages not consumed (lag)" in again

    asyncio.run(visit())


def test_copies_offsets_to_another_group(running: RunningBroker) -> None:
    send(running, "copied", 3)
    consume(running, "source", "copied", 3)
    send(running, "copied", 2)

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            await visitor.post(
                "/groups/save",
                {
                    "group": "target",
                    "cluster": "DefaultCluster",
                    "new": "1",
                    "enable": "1",
                    "retries": "5",
                    "queues": "1",
                },
            )
            form = {"group": "source", "target": "target", "topic": "copied", "offline": "1"}
            shown = words(await visitor.post("/groups/copy", form))
            assert "The offsets of source were copied to target on broker-a." in shown
            assert "2 messages not consumed (lag)" in shown

    asyncio.run(visit())


def test_changes_settings_and_deletes(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            form = {"group": "short", "cluster": "DefaultCluster", "retries": "3", "queues": "1"}
            shown = words(await visitor.post("/groups/save", {**form, "new": "1"}))
            assert "broker-a no no 3 1" in shown
            assert "does not let this group consume: consumeEnable is off." in shown
            shown = words(await visitor.post("/groups/save", {**form, "enable": "1"}))
            assert "broker-a yes no 3 1" in shown
            gone = {"group": "short", "cluster": "DefaultCluster"}
            refused = await visitor.post("/groups/delete", {**gone, "typed": "shor"})
            assert refused.status_code == 400
            await visitor.post("/groups/delete", {**gone, "typed": "short"})
            assert (await visitor.get("/groups/group?group=short")).status_code == 404

    asyncio.run(visit())


def test_members_are_paged(running: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlake.console.pages.groups._MEMBERS", 1)
    send(running, "paged", 1)

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            first = await visitor.get("/groups/group?group=pages")
            assert "2 in all, page 1 of 2" in words(first)
            second = await visitor.get("/groups/group?group=pages&members=2")
            assert "2 in all, page 2 of 2" in words(second)
            assert "1 in all" not in words(second)
            assert "members=1" in second.text

    with running.consumer("pages", "paged"), running.consumer("pages", "paged"):
        asyncio.run(visit())


def test_groups_of_brokers_are_listed_only_if_asked_for(running: RunningBroker) -> None:
    send(running, "owned", 1)
    consume(running, "own", "owned", 1)

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            normal = words(await visitor.get("/groups"))
            assert " own " in normal
            assert "TOOLS_CONSUMER" not in normal
            system = words(await visitor.get("/groups?kind=system"))
            assert "TOOLS_CONSUMER" in system
            assert " own " not in system
            every = words(await visitor.get("/groups?kind=all"))
            assert "TOOLS_CONSUMER" in every
            assert " own " in every

    asyncio.run(visit())
