"""Masters that are killed at random times, and slaves that are promoted: nothing that was
acknowledged may be lost."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient
from mqlake.store import StoreReader
from tests.broker.running import to
from tests.peer.rocketmq_client import Clients
from tests.programs.processes import BrokerProcess
from tests.replication.pairs import MASTER, PATIENCE, SLAVE, caught_up, name_server, start

TOPIC = "Orders"
QUEUES = 4
_LONGEST_BODY = 3000
_LEAST = 30
"""Messages that are acknowledged before each failover, however slow the machine is."""
_TOLD = 10
"""Failovers after which a line tells how many there were."""


@dataclass
class Result:
    """What a run has come to.

    Attributes:
        acknowledged: messages that were answered with SUCCESS.
        others: those that were answered otherwise, or not at all.
        problems: what was lost, or out of order.
    """

    failovers: int = 0
    acknowledged: int = 0
    others: int = 0
    problems: list[str] = field(default_factory=list)


class Failovers:
    """A master and a slave that change places, under producers.

    Each producer sends to a queue of its own, one message after the other: in each, the messages of
    a producer are in the order of their numbers.

    Args:
        java: RocketMQ's clients, whose producers send instead of mqlake's. They find the master by
            the name server.
    """

    def __init__(self, path: Path, seed: int, java: Clients | None = None) -> None:
        self._path, self._chance, self._java = path, random.Random(seed), java
        self._client = RemotingClient()
        self._master: BrokerProcess
        self._slave: BrokerProcess
        self._stores = [path / "one", path / "two"]
        self._is_up = asyncio.Event()
        self._is_over = False
        self._sent = [0] * QUEUES
        self._acknowledged: dict[int, list[int]] = defaultdict(list)
        self._checked = [0] * QUEUES
        self.result = Result()

    async def run(self, failovers: int) -> Result:
        """Fail over so many times."""
        async with name_server() as names:
            self._master = await start(self._stores[0], names, MASTER)
            self._slave = await start(self._stores[1], names, SLAVE)
            await caught_up(self._client, self._master.address)
            self._is_up.set()
            producers = await self._start_producers(names)
            try:
                for number in range(failovers):
                    await self._work()
                    await self._fail_over(names, is_last=number == failovers - 1)
                    self.result.failovers += 1
                    if self.result.problems:
                        break
                    if self.result.failovers % _TOLD == 0:
                        print(f"{self.result.failovers} failovers of {failovers}", flush=True)
            finally:
                self._is_over = True
                self._is_up.set()
                await asyncio.gather(*producers)
                if self._java is not None:
                    self._count(await asyncio.to_thread(self._java.stop_producing))
                await self._client.close()
                for process in (self._master, self._slave):
                    process.kill()
        return self.result

    async def _work(self) -> None:
        """Let producers send for a while."""
        wanted = self.result.acknowledged + _LEAST
        await asyncio.sleep(self._chance.uniform(0.2, 1.0))
        async with asyncio.timeout(PATIENCE):
            # Java's are counted only after a failover.
            while self._java is None and self.result.acknowledged < wanted:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def _start_producers(self, names: str) -> list[asyncio.Task[None]]:
        if self._java is None:
            return [asyncio.create_task(self._produce(number)) for number in range(QUEUES)]
        await asyncio.to_thread(self._java.produce, names, TOPIC, QUEUES)
        # If the master dies before a slave has a message of the topic, the topic is gone, and
        # RocketMQ's producers look for it at the dead master until somebody creates it.
        await self._sent_again()
        return []

    def _count(self, produced: tuple[list[list[int]], int]) -> None:
        """Count what Java's producers have sent since the last time."""
        acknowledged, others = produced
        for queue_id, numbers in enumerate(acknowledged):
            self._acknowledged[queue_id] += numbers
            self.result.acknowledged += len(numbers)
        self.result.others += others

    async def _produce(self, queue_id: int) -> None:
        chance = random.Random(queue_id)
        while not self._is_over:
            await self._is_up.wait()
            address, number = self._master.address, self._sent[queue_id]
            self._sent[queue_id] += 1
            body = b"%d %d " % (queue_id, number) + chance.randbytes(
                chance.randrange(_LONGEST_BODY)
            )
            header = to(TOPIC, queue_id=queue_id, properties=f"KEYS\x01{queue_id}-{number}\x02")
            try:
                answer = await self._client.request(
                    address, request(RequestCode.SEND_MESSAGE_V2, header, body), 30
                )
            except MqlakeError:
                self.result.others += 1
                await asyncio.sleep(0.01)
                continue
            if answer.code == ResponseCode.SUCCESS:
                self.result.acknowledged += 1
                self._acknowledged[queue_id].append(number)
            else:
                self.result.others += 1

    async def _fail_over(self, names: str, *, is_last: bool) -> None:
        """Kill the master, promote the slave, and let an empty slave follow it."""
        self._is_up.clear()  # producers that wait for an answer go on waiting for it
        if self._chance.random() < 0.5:
            self._is_up.set()
            await asyncio.sleep(self._chance.uniform(0, 0.05))
        self._master.process.kill()
        self._is_up.clear()
        await asyncio.to_thread(self._master.process.wait)
        if self._chance.random() < 0.5:
            await asyncio.to_thread(self._slave.kill)
        else:
            await asyncio.to_thread(self._slave.stop)
        if self._java is not None:
            self._count(await asyncio.to_thread(self._java.produced))
        lost, kept = self._stores
        self._check(kept, is_whole=is_last)
        self._stores = [kept, lost]
        self._master = await start(kept, names, MASTER)
        await asyncio.to_thread(shutil.rmtree, lost)
        self._slave = await start(lost, names, SLAVE)
        await caught_up(self._client, self._master.address)
        if self._java is not None:
            await self._sent_again()
        self._is_up.set()

    def _check(self, store: Path, *, is_whole: bool) -> None:
        """Check what was stored since the last time, or everything.

        An acknowledgement may have been counted only after that time: a fault is looked for in
        everything.
        """
        if is_whole or check(store, self._acknowledged, self._checked):
            self.result.problems += check(store, self._acknowledged)

    async def _sent_again(self) -> None:
        """Return once Java's producers have found the master."""
        assert self._java is not None
        before = self.result.acknowledged
        async with asyncio.timeout(PATIENCE):
            while self.result.acknowledged < before + QUEUES:
                await asyncio.sleep(0.1)
                self._count(await asyncio.to_thread(self._java.produced))


def check(
    store: Path, acknowledged: Mapping[int, Collection[int]], starts: list[int] | None = None
) -> list[str]:
    """Return what a store lacks of the messages that were acknowledged, by queue and number.

    Args:
        starts: the queue offset from which on each queue is read; afterwards, where it ended. What
            was acknowledged before is not looked for.
    """
    problems: list[str] = []
    with StoreReader.open(store) as reader:
        for queue_id in range(QUEUES):
            found, end = _numbers(reader, queue_id, starts[queue_id] if starts else 0)
            least = min(found, default=0) if starts and starts[queue_id] else 0
            wanted = {number for number in acknowledged.get(queue_id, ()) if number >= least}
            if missing := wanted - set(found):
                problems.append(f"queue {queue_id}: {len(missing)} lost, {min(missing)} first")
            if found != sorted(set(found)):
                problems.append(f"queue {queue_id}: out of order, or twice")
            if starts:
                starts[queue_id] = end
    return problems


def _numbers(reader: StoreReader, queue_id: int, start: int) -> tuple[list[int], int]:
    """Return the numbers of a queue's messages from an offset on, and where the queue ends."""
    numbers: list[int] = []
    at, end = reader.queue(TOPIC, queue_id)
    at = max(at, start)
    while at < end:
        found = reader.get(TOPIC, queue_id, at, 1000)
        for record in found.records:
            queue, number, _ = record.body.split(b" ", 2)
            assert int(queue) == queue_id
            numbers.append(int(number))
        if found.next_offset <= at:
            break
        at = found.next_offset
    return numbers, end
