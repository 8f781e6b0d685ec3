"""Masters that are killed at random times, and slaves that are promoted: nothing that was
acknowledged may be lost."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient
from mqlake.store import StoreReader
from tests.broker.running import to
from tests.programs.processes import BrokerProcess
from tests.replication.pairs import MASTER, SLAVE, caught_up, name_server, start

TOPIC = "Orders"
QUEUES = 4
_LONGEST_BODY = 3000


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
    """

    def __init__(self, path: Path, seed: int) -> None:
        self._path, self._chance = path, random.Random(seed)
        self._client = RemotingClient()
        self._master: BrokerProcess
        self._slave: BrokerProcess
        self._stores = [path / "one", path / "two"]
        self._is_up = asyncio.Event()
        self._is_over = False
        self._sent = [0] * QUEUES
        self._acknowledged: dict[int, list[int]] = defaultdict(list)
        self.result = Result()

    async def run(self, failovers: int) -> Result:
        """Fail over so many times."""
        async with name_server() as names:
            self._master = await start(self._stores[0], names, MASTER)
            self._slave = await start(self._stores[1], names, SLAVE)
            await caught_up(self._client, self._master.address)
            self._is_up.set()
            producers = [asyncio.create_task(self._produce(number)) for number in range(QUEUES)]
            try:
                for _ in range(failovers):
                    await asyncio.sleep(self._chance.uniform(0.2, 1.0))
                    await self._fail_over(names)
                    self.result.failovers += 1
                    if self.result.problems:
                        break
            finally:
                self._is_over = True
                self._is_up.set()
                await asyncio.gather(*producers)
                await self._client.close()
                for process in (self._master, self._slave):
                    process.kill()
        return self.result

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

    async def _fail_over(self, names: str) -> None:
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
        lost, kept = self._stores
        self._check(kept)
        self._stores = [kept, lost]
        self._master = await start(kept, names, MASTER)
        await asyncio.to_thread(shutil.rmtree, lost)
        self._slave = await start(lost, names, SLAVE)
        await caught_up(self._client, self._master.address)
        self._is_up.set()

    def _check(self, store: Path) -> None:
        """Look whether everything that was acknowledged is in a store, in its order."""
        with StoreReader.open(store) as reader:
            for queue_id in range(QUEUES):
                found = _numbers(reader, queue_id)
                missing = set(self._acknowledged[queue_id]) - set(found)
                if missing:
                    problem = f"queue {queue_id}: {len(missing)} lost, {min(missing)} first"
                    self.result.problems.append(problem)
                if found != sorted(set(found)):
                    self.result.problems.append(f"queue {queue_id}: out of order, or twice")


def _numbers(reader: StoreReader, queue_id: int) -> list[int]:
    numbers: list[int] = []
    at, end = reader.queue(TOPIC, queue_id)
    while at < end:
        found = reader.get(TOPIC, queue_id, at, 1000)
        for record in found.records:
            queue, number, _ = record.body.split(b" ", 2)
            assert int(queue) == queue_id
            numbers.append(int(number))
        if found.next_offset <= at:
            break
        at = found.next_offset
    return numbers
