"""Calls are cancelled, streams are lost and clients end at any moment: at least once, in order,
nothing too early, nothing lost.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from math import inf
from pathlib import Path
from typing import Any

import pytest

from mqlake.grpc.messages import ChangeInvisibleDurationRequest, Code, Duration, Message
from mqlake.proxy.consuming.message_handle import parse_handle
from mqlake.proxy.settings import ProxySettings
from tests import simulated
from tests.proxy.brokers.test_cluster import ProxiedCluster
from tests.proxy.consuming.consumer import TOPIC, LiveStream, TestedConsumer, entry, send
from tests.proxy.serving import Calls, named, serving

CONSUMERS, MESSAGES, QUEUES = 3, 40, 2
CHAOS = 60.0
"""Simulated seconds."""
INVISIBLE = 10
ACKNOWLEDGED, REFUSED = 0.6, 0.8
"""Up to which number that is drawn a message is acknowledged, or refused; others are left."""
AGAIN = 1
"""Seconds after which a message that a client has refused comes again."""


class Ledger:
    """Which messages came when, and what became of them.

    Args:
        is_ordered: whether a message comes only after all before it in its queue were acknowledged.
    """

    def __init__(self, *, is_ordered: bool) -> None:
        self._is_ordered = is_ordered
        self._visible_at: dict[str, float] = {}
        self._acknowledged: set[str] = set()
        self._places: dict[str, tuple[int, int]] = {}

    @property
    def acknowledged(self) -> set[str]:
        return self._acknowledged

    def delivered(self, messages: list[Message], now: float, *, is_renewed: bool) -> None:
        for message in messages:
            body, found = message.body.decode(), message.system_properties
            assert body not in self._acknowledged
            assert now >= self._visible_at.get(body, 0), f"{body} comes too early"
            handle = parse_handle(found.receipt_handle)
            self._visible_at[body] = inf if is_renewed else handle.visible_at
        if self._is_ordered:
            self._check_order(messages)

    def _check_order(self, messages: list[Message]) -> None:
        by_queue: dict[int, list[int]] = {}
        for message in messages:
            system = message.system_properties
            self._places[message.body.decode()] = system.queue_id, system.queue_offset
            by_queue.setdefault(system.queue_id, []).append(system.queue_offset)
        for queue_id, offsets in by_queue.items():
            assert offsets == sorted(offsets)
            settled = {self._places[body] for body in self._acknowledged}
            for offset in range(offsets[0]):
                assert (queue_id, offset) in settled, f"{queue_id}: {offsets} before {offset}"

    def acknowledge(self, body: str) -> None:
        self._acknowledged.add(body)

    def refuse(self, body: str, now: float) -> None:
        self._visible_at[body] = now + 1000 * AGAIN


class LossyClient:
    """A consumer whose calls are cancelled, and which ends and begins again."""

    def __init__(
        self, calls: Calls, name: str, ledger: Ledger, dice: random.Random, *, is_ordered: bool
    ) -> None:
        self._calls, self._name, self._ledger, self._dice = calls, name, ledger, dice
        self._is_ordered = is_ordered
        self._consumer = TestedConsumer(calls, name, is_fifo=is_ordered)
        self._attempts = 0

    def _now(self) -> int:
        return self._calls.service.state.now()

    async def round(self, *, is_calm: bool = False) -> None:
        """Receive once, and settle what came; perhaps lose the call, or end."""
        dice = self._dice
        self._attempts += 1
        is_renewed = dice.random() < 0.5
        stream = self._consumer.stream(
            dice.randint(1, 8),
            invisible=INVISIBLE,
            auto_renew=is_renewed,
            attempt_id=f"{self._name}-{self._attempts}",
        )
        lost_after = dice.randint(0, 4) if not is_calm and dice.random() < 0.2 else None
        task = asyncio.create_task(_collected(stream, lost_after))
        if not is_calm and dice.random() < 0.4:
            await asyncio.sleep(dice.choice((0, 0, dice.uniform(0, 0.01), dice.uniform(0, 5))))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if task.cancelled():
                return  # The client knows of none of the messages.
        try:
            messages = await task
        except ConnectionResetError:
            return
        self._ledger.delivered(messages, self._now(), is_renewed=is_renewed)
        refused: dict[int, float] = {}
        for message in messages:
            choice = 0.0 if is_calm else dice.random()
            if self._is_ordered:
                # What follows a message that comes again comes again, too.
                queue_id = message.system_properties.queue_id
                choice = refused.get(queue_id, choice)
                if choice >= ACKNOWLEDGED:
                    refused[queue_id] = choice
            await self._settle(message, choice, is_renewed=is_renewed)

    async def _settle(self, message: Message, choice: float, *, is_renewed: bool) -> None:
        dice, body = self._dice, message.body.decode()
        await asyncio.sleep(dice.uniform(0, 0.5))
        if choice < ACKNOWLEDGED:
            found = await self._consumer.acknowledge_by(entry(message))
            assert found.status.code == Code.OK, found.status
            self._ledger.acknowledge(body)
        elif choice < REFUSED or is_renewed:
            request = ChangeInvisibleDurationRequest(
                group=named(self._consumer.group),
                topic=named(TOPIC),
                receipt_handle=message.system_properties.receipt_handle,
                message_id=message.system_properties.message_id,
                invisible_duration=Duration(seconds=AGAIN),
            )
            before = self._now()
            found = await self._calls.ask("ChangeInvisibleDuration", request, self._name)
            assert found.status.code == Code.OK, found.status
            self._ledger.refuse(body, before)

    def restart(self) -> None:
        """End, as a client that says so, and begin again."""
        clients = self._calls.service.state.clients
        clients.end(self._name)
        self._consumer = TestedConsumer(self._calls, self._name, is_fifo=self._is_ordered)
        clients.attach(self._consumer.client, LiveStream())


async def _collected(stream: Any, lost_after: int | None) -> list[Message]:
    """Return the messages of a call, unless it is lost after so many responses."""
    found: list[Message] = []
    try:
        async for response in stream:
            if lost_after == len(found):
                raise ConnectionResetError
            if response.WhichOneof("content") == "message":
                found.append(response.message)
    finally:
        await stream.aclose()
    return found


@asynccontextmanager
async def local(path: Path) -> AsyncGenerator[Calls]:
    known = ProxySettings(channel_expired_timeout=1 << 40)
    async with serving(path, known) as calls:
        calls.topic(TOPIC, queues=QUEUES)
        yield calls


@asynccontextmanager
async def clustered(path: Path) -> AsyncGenerator[Calls]:
    cluster = ProxiedCluster(path)
    async with cluster.name_server(), cluster.broker() as broker:
        await cluster.create(broker, TOPIC)
        async with cluster.proxy(broker) as calls:
            yield calls


async def consumed(
    served: AbstractAsyncContextManager[Calls], dice: random.Random, *, is_ordered: bool
) -> None:
    ledger = Ledger(is_ordered=is_ordered)
    async with served as calls:
        clients = [
            LossyClient(calls, f"client-{number}", ledger, dice, is_ordered=is_ordered)
            for number in range(CONSUMERS)
        ]
        await clients[0].round(is_calm=True)  # The group begins here.
        now = asyncio.get_running_loop().time
        end = now() + CHAOS

        async def produce() -> None:
            for number in range(MESSAGES):
                await send(calls, f"{number}", queue_id=number % QUEUES)
                await asyncio.sleep(dice.uniform(0, 1))

        async def consume(client: LossyClient) -> None:
            while now() < end:
                await client.round()
                if dice.random() < 0.05:
                    await client.round(is_calm=True)
                    client.restart()

        await asyncio.gather(produce(), *map(consume, clients))
        wanted = {str(number) for number in range(MESSAGES)}
        for _ in range(100):
            if ledger.acknowledged == wanted:
                break
            await clients[0].round(is_calm=True)
        assert ledger.acknowledged == wanted


@pytest.mark.parametrize("is_ordered", [False, True], ids=["at any queue", "in order"])
@pytest.mark.parametrize("mode", [local, clustered])
@pytest.mark.parametrize("seed", range(4))
def test_every_message_is_delivered_until_it_is_acknowledged(
    tmp_path: Path, seed: int, mode: type[AbstractAsyncContextManager[Calls]], *, is_ordered: bool
) -> None:
    dice = random.Random(f"{seed} {is_ordered}")
    simulated.run(consumed(mode(tmp_path), dice, is_ordered=is_ordered))
