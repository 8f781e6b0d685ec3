"""Masters under RocketMQ's controller that are killed at random times: another broker takes over by
itself, and nothing that was acknowledged may be lost."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient
from tests.broker.running import to
from tests.replication.failover import QUEUES, TOPIC, Result, check
from tests.replication.led_group import Broker, LedGroup, led_group
from tests.replication.pairs import difference

_LONGEST_BODY = 3000
_PAUSE = 0.005
"""Seconds between two messages of a producer: the logs are compared at the end."""


class LedFailovers:
    """A group under a controller whose masters are killed, under producers.

    Each producer sends to a queue of its own, one message after the other, to whoever is the
    master then.

    Args:
        kinds: of each broker of the group: mqlake's or RocketMQ's.
    """

    def __init__(self, path: Path, seed: int, kinds: Sequence[str]) -> None:
        self._path, self._chance, self._kinds = path, random.Random(seed), kinds
        self._client = RemotingClient()
        self._master: Broker | None = None
        self._is_over = False
        self._sent = [0] * QUEUES
        self._acknowledged: dict[int, list[int]] = defaultdict(list)
        self.result = Result()

    async def run(self, failovers: int) -> Result:
        """Fail over so many times; then all logs must be the same, and lack nothing."""
        slaves = len(self._kinds) - 1
        async with led_group(self._path, self._kinds) as group:
            for number in range(len(self._kinds)):
                await group.start(number)
                self._master = await group.in_sync(number)
            producers = [asyncio.create_task(self._produce(number)) for number in range(QUEUES)]
            try:
                for _ in range(failovers):
                    await asyncio.sleep(self._chance.uniform(0.2, 1.0))
                    await self._fail_over(group)
                    self.result.failovers += 1
            finally:
                self._is_over = True
                await asyncio.gather(*producers)
                await self._client.close()
            await group.in_sync(slaves)
            await group.stop()
            for store in group.stores:
                self.result.problems += check(store, self._acknowledged)
                if (found := difference(group.stores[0], store)) is not None:
                    self.result.problems.append(f"{store.name}: {found}")
        return self.result

    async def _produce(self, queue_id: int) -> None:
        chance = random.Random(queue_id)
        while not self._is_over:
            master = self._master
            if master is None:
                await asyncio.sleep(0.01)
                continue
            number = self._sent[queue_id]
            self._sent[queue_id] += 1
            body = b"%d %d " % (queue_id, number) + chance.randbytes(
                chance.randrange(_LONGEST_BODY)
            )
            header = to(TOPIC, queue_id=queue_id, properties=f"KEYS\x01{queue_id}-{number}\x02")
            try:
                answer = await self._client.request(
                    master.address, request(RequestCode.SEND_MESSAGE_V2, header, body), 30
                )
            except MqlakeError:
                answer = None
            if answer is not None and answer.code == ResponseCode.SUCCESS:
                self.result.acknowledged += 1
                self._acknowledged[queue_id].append(number)
            else:
                self.result.others += 1
            await asyncio.sleep(_PAUSE)

    async def _fail_over(self, group: LedGroup) -> None:
        """Kill the master, wait for another one, and start the old one again as its slave."""
        old = await group.in_sync(1)
        number = group.brokers.index(old)
        await asyncio.sleep(self._chance.uniform(0, 0.05))
        await asyncio.to_thread(old.kill)
        self._master = None
        self._master = await group.master(but=old)
        await group.start(number)
        if self._chance.random() < 0.5:
            await group.in_sync(len(self._kinds) - 1)
