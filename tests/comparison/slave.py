"""A slave that copies the log and the tables of a master: its disk fails, or a connection is reset.

The master and the name server are healthy. After each step, the slave has what its master has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mqlake.broker.broker import Broker
from mqlake.broker.settings import make_broker_settings
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.header import Header
from mqlake.store.owned_store import OwnedStore
from tests.comparison.run import Step, View, World
from tests.comparison.wire import GROUP, SETTINGS, TOPIC, WireSubject, WireWorkload
from tests.crash.disk import RecordedDisk
from tests.crash.expectation import require
from tests.simulation.process import Process
from tests.simulation.servers import NAMES, SimulatedNameServer

_MACHINE = "10.0.1.2"
_PATIENCE = 120.0
"""Seconds within which a slave has everything, after a failure, too."""
_QUEUES = 0, 1


class SlaveSubject(WireSubject):
    """A slave, of which the disk or a connection fails; requests go to its master."""

    asked = f"{_MACHINE}:10911"

    def __init__(self, failure: str, at: int, workload: WireWorkload) -> None:
        super().__init__(failure, at, workload)
        self._master: Broker | None = None

    async def _start_master(self) -> None:
        self._names = SimulatedNameServer(self.network)
        await self._names.start()
        own = {"brokerIP1": _MACHINE, "bindAddress": _MACHINE, "namesrvAddr": NAMES}
        settings = make_broker_settings({**SETTINGS, **own})
        clock = self.world.clock
        self._master = Broker(settings, directory=RecordedDisk(None, clock), clock=clock)
        await Process("master", _MACHINE).run(self._master.start())

    def _start(self) -> None:
        if self._master is None:
            self.run(self._start_master())
        super()._start()
        self.follow()

    def request(
        self,
        code: int,
        header: Header | None,
        body: bytes = b"",
        accepted: Sequence[int] = (ResponseCode.SUCCESS,),
    ) -> Command:
        answer = super().request(code, header, body, accepted)
        self.follow()
        return answer

    def follow(self) -> None:
        """Wait until the slave has everything.

        Raises:
            MqlakeError: its store accepts nothing any more.
        """
        until = self.now + _PATIENCE
        while self._lacks():
            assert self.broker is not None
            if (failure := self.broker.state.store.core.health.failure) is not None:
                raise failure
            require(self.now < until, "the slave does not follow")
            self.run(asyncio.sleep(0.5))

    def _lacks(self) -> bool:
        assert self._master is not None
        assert self.broker is not None
        master, slave = self._master.state.store, self.broker.state.store
        if slave.watermarks.dispatched < master.watermarks.end:
            return True
        return self._look_at(master.core) != self._look_at(slave.core)

    def _look_at(self, store: OwnedStore) -> View:
        offsets = store.config.consumer_offsets
        found = {f"offset {queue}": offsets.query(GROUP, TOPIC, queue) for queue in _QUEUES}
        return {**super()._look_at(store), **found}

    def left(self) -> View:
        """Return what the next process finds of the log: it copies the tables again."""
        names = "topics", "groups", "offset"
        return {name: each for name, each in super().left().items() if not name.startswith(names)}


@dataclass
class SlaveWorkload(WireWorkload):
    """A script of requests to a slave's master."""

    def begin(self, failure: str, at: int) -> tuple[World, WireSubject]:
        subject = SlaveSubject(failure, at, self)
        return subject.world, subject


def _follows(s: WireSubject) -> Iterator[Step]:
    yield s.create(TOPIC)
    yield s.create_group()
    for number in range(3):
        yield s.send(f"s{number}", queue_id=number % 2)
    yield s.send("long " + 1500 * "x")
    yield s.commit(1)
    yield s.create("others")
    yield s.send("o1", "others")
    yield s.restart()
    yield s.send("s3")
    yield s.delete("others")
    yield s.create("others")
    yield s.send("o2", "others")


_SLAVE = {"brokerRole": "SLAVE", "brokerId": 1, "namesrvAddr": NAMES}
SLAVE_WORKLOADS = [
    SlaveWorkload("wire-slave", _follows, _SLAVE, settling=10.0),
    SlaveWorkload(
        "wire-slave-synced", _follows, {**_SLAVE, "flushDiskType": "SYNC_FLUSH"}, settling=10.0
    ),
]
