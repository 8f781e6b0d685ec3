"""From a master to a Delta table, with everything on the way killed at random times."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient
from mqlake.replication.master_log import ask
from mqlake.store import StoreReader
from tests.broker.running import to
from tests.replica.processes import ReplicaProcess
from tests.replication.pairs import FILES, difference, name_server, start

PATIENCE = 300.0
"""Seconds: Spark is started again and again, perhaps on a busy machine."""
TOPIC, QUEUES = "Orders", 4
_LOOK = 0.1
_MASTER: dict[str, object] = {**FILES, "brokerName": "broker-a"}


@dataclass
class Outcome:
    """What a run has come to.

    Attributes:
        kills: by process.
        acknowledged: messages that were answered with SUCCESS.
        problems: what was lost, doubled, or differs.
    """

    kills: Counter[str] = field(default_factory=Counter[str])
    acknowledged: int = 0
    messages: int = 0
    problems: list[str] = field(default_factory=list)


class Pipeline:
    """A master, its replica, and what follows the replica into a Delta table.

    Args:
        is_one: whether one `mqlake follow --replica-of` does both; else two programs do.
    """

    def __init__(self, path: Path, seed: int, *, is_one: bool) -> None:
        self._path, self._chance, self._is_one = path, random.Random(seed), is_one
        self._copy, self._table = path / "copy", path / "table"
        self._client = RemotingClient()
        self._sent = [0] * QUEUES
        self._acknowledged = Counter[str]()
        self._follow: subprocess.Popen[bytes] | None = None
        self._replica: ReplicaProcess | None = None
        self._is_over = False
        self.outcome = Outcome()

    async def run(self, kills: int) -> Outcome:
        """Kill each process so many times."""
        async with name_server() as names:
            self._names = names
            self._master = await start(self._path / "master", names, _MASTER)
            producers = [asyncio.create_task(self._produce(number)) for number in range(QUEUES)]
            try:
                await self._start_copy()
                for _ in range(kills):
                    await self._live_and_die()
                self._is_over = True
                await asyncio.gather(*producers)
                await self._finish()
            finally:
                self._is_over = True
                await asyncio.gather(*producers, return_exceptions=True)
                self._kill_all()
                await self._client.close()
        await asyncio.to_thread(self._check)
        return self.outcome

    # The processes

    def _start_follow(self) -> None:
        command = [sys.executable, "-m", "mqlake", "follow", str(self._copy), "--to", "delta"]
        command += ["--out", str(self._table), "--target-lag", "0.5"]
        command += ["--processing-time", "200 milliseconds", "--compact-every", "3", "--json"]
        if self._is_one:
            command += ["--replica-of", "broker-a", "-n", self._names]
        with (self._path / "follow.log").open("ab") as log:
            self._follow = subprocess.Popen(command, stdout=log, stderr=log)

    async def _start_copy(self) -> None:
        if not self._is_one:
            self._replica = ReplicaProcess("broker-a", self._copy, self._names)
            self._replica.start()
            await self._until((self._copy / "config/broker.properties").is_file)
        self._start_follow()

    async def _live_and_die(self) -> None:
        """Let the table grow; then kill everything, each at a time of its own."""
        before = self._version()
        await self._until(lambda: self._version() > before)
        victims = [self._kill_follow, self._kill_master]
        victims += [] if self._is_one else [self._kill_replica]
        self._chance.shuffle(victims)
        for kill in victims:
            await asyncio.sleep(self._chance.uniform(0, 1.5))
            await kill()

    async def _kill_follow(self) -> None:
        assert self._follow is not None
        self._check_follow()
        self._follow.kill()
        await asyncio.to_thread(self._follow.wait)
        self.outcome.kills["follow"] += 1
        if self._is_one:
            self.outcome.kills["replica"] += 1
        self._start_follow()

    async def _kill_replica(self) -> None:
        assert self._replica is not None
        await asyncio.to_thread(self._replica.kill)
        self.outcome.kills["replica"] += 1
        self._replica.start()

    async def _kill_master(self) -> None:
        await asyncio.to_thread(self._master.kill)
        self.outcome.kills["master"] += 1
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        await asyncio.to_thread(self._master.start)

    async def _finish(self) -> None:
        """Let everything arrive, and stop what runs in good order."""
        assert self._follow is not None
        end = await self._end()
        await self._until(lambda: self._has_all(end))
        self._follow.terminate()
        if code := await asyncio.to_thread(self._follow.wait, PATIENCE):
            self.outcome.problems.append(f"follow: {code}: {self._said()}")
        if self._replica is not None:
            await asyncio.to_thread(self._replica.stop)
        await asyncio.to_thread(self._master.stop)

    async def _end(self) -> int:
        """Return where the master's log ends, once it answers."""
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(MqlakeError):
                    return (await ask(self._client, self._master.address)).end
                await asyncio.sleep(_LOOK)

    def _has_all(self, end: int) -> bool:
        """Say whether the copy, and then the table, have the master's log up to its end."""
        with StoreReader.open(self._copy) as store:
            if store.max_offset < end:
                return False
            ends = [store.queue(TOPIC, number) for number in range(QUEUES)]
        rows = DeltaTable(str(self._table)).to_pyarrow_table(columns=["queueId"])
        return len(rows) >= sum(last - first for first, last in ends)

    def _kill_all(self) -> None:
        if self._follow is not None:
            self._follow.kill()
            self._follow.wait()
        if self._replica is not None:
            self._replica.kill()
        self._master.kill()

    def _check_follow(self) -> None:
        if self._follow is not None and self._follow.poll() is not None:
            raise RuntimeError(f"follow has ended: {self._said()}")

    def _said(self) -> str:
        return (self._path / "follow.log").read_text()[-2000:]

    def _version(self) -> int:
        try:
            return DeltaTable(str(self._table)).version()
        except TableNotFoundError:
            return -1

    async def _until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await asyncio.to_thread(is_so):
                self._check_follow()
                await asyncio.sleep(_LOOK)

    # Messages

    async def _produce(self, queue_id: int) -> None:
        while not self._is_over:
            key = f"{queue_id}-{self._sent[queue_id]}"
            self._sent[queue_id] += 1
            body = key.encode() * self._chance.randrange(1, 200)
            header = to(TOPIC, queue_id=queue_id, properties=f"KEYS\x01{key}\x02")
            asked = request(RequestCode.SEND_MESSAGE_V2, header, body)
            try:
                answer = await self._client.request(self._master.address, asked, 30)
            except MqlakeError:
                await asyncio.sleep(0.05)
                continue
            if answer.code == ResponseCode.SUCCESS:
                self.outcome.acknowledged += 1
                self._acknowledged[key] += 1
            await asyncio.sleep(0.01)

    def _check(self) -> None:
        """Compare the master, the copy and the table."""
        problems = self.outcome.problems
        if (where := difference(self._path / "master", self._copy)) is not None:
            problems.append(f"the copy differs: {where}")
        rows = DeltaTable(str(self._table)).to_pyarrow_table(
            columns=["brokerName", "physicalOffset", "keys"]
        )
        offsets = Counter[int](rows["physicalOffset"].to_pylist())
        doubled = [offset for offset, count in offsets.items() if count > 1]
        if doubled:
            problems.append(f"{len(doubled)} rows twice, at {doubled[0]} first")
        keys = {" ".join(each) for each in rows["keys"].to_pylist()}
        if lost := self._acknowledged.keys() - keys:
            problems.append(f"{len(lost)} acknowledged messages lost, as {min(lost)}")
        # A program that follows a copy by itself is not told whose copy it is.
        if set(rows["brokerName"].to_pylist()) != {"broker-a" if self._is_one else None}:
            problems.append("rows of another broker")
        with StoreReader.open(self._copy) as store:
            ends = [store.queue(TOPIC, number) for number in range(QUEUES)]
        self.outcome.messages = sum(end - first for first, end in ends)
        if len(rows) != self.outcome.messages:
            problems.append(f"{len(rows)} rows of {self.outcome.messages} messages")
