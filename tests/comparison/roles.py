"""A slave that receives its master's log, is promoted, demoted, and follows again."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from functools import cache

import msgspec

from mqlake.errors import StoreError, SyncError
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.services import Job
from mqlake.store.settings import BrokerRole
from tests.comparison.run import Step
from tests.comparison.store import TOPIC, StoreSubject, StoreWorkload
from tests.crash.clock import ManualClock
from tests.crash.disk import RecordedDisk
from tests.crash.store_workload import ASYNC, SYNC, settings_of

_PIECE = 700
_COUNT = 14


@cache
def _sent() -> bytes:
    """Return a master's log, blanks at the ends of its files included."""
    store = OwnedStore.open(RecordedDisk(), settings_of(ASYNC), ManualClock())
    for number in range(_COUNT):
        body = b"%d:" % -number
        store.puts.put(
            Message(TOPIC, body.ljust(600, b"x"), keys=f"m{number}", queue_id=number % 2)
        )
    parts: list[bytes] = []
    start = 0
    while start < store.log.end:
        segment = store.log.segment_at(start)
        assert segment is not None
        stop = min(segment.end, store.log.end)
        parts.append(bytes(store.log.read(start, stop - start)))
        start = stop
    return b"".join(parts)


def _receive(s: StoreSubject, start: int, end: int) -> Step:
    """Take what the master sends from where the log ends, as after each connection."""

    def act() -> None:
        store = s.store
        store.role.received.drop()
        while (at := store.role.received.expected) < end:
            store.role.receive(_sent()[at : min(at + _PIECE, end)])
        store.tick()
        if store.health.not_writable is not None:
            raise StoreError(store.health.not_writable)

    return Step(f"receive {start} to {end}", act, is_exact=False)


def _prepare(s: StoreSubject, steps: Generator[Job | None]) -> None:
    """Do what a switch of the role needs first, as `LogCopying` does."""
    with closing(steps):
        for job in steps:
            if job is not None:
                try:
                    job.run()
                except SyncError as error:
                    s.store.health.fail(error)
                    raise
                job.done()
            if s.store.health.failure is not None:
                raise s.store.health.failure


def _switch(s: StoreSubject, role: BrokerRole) -> Step:
    def act() -> None:
        _prepare(
            s, s.store.role.following() if role is BrokerRole.SLAVE else s.store.role.leading()
        )
        now = msgspec.structs.replace(s.settings.now, broker_role=role)
        s.settings.switch(now)

    return Step(f"become {role.value}", act)


def _promoted(s: StoreSubject) -> Iterator[Step]:
    third = len(_sent()) // 3
    yield _receive(s, 0, third)
    yield _receive(s, third, len(_sent()))
    yield _switch(s, BrokerRole.ASYNC_MASTER)
    yield s.put(queue_id=1)
    yield s.put(900)
    yield s.kill()
    yield s.put()
    yield _switch(s, BrokerRole.SLAVE)
    yield s.restart()
    yield _switch(s, BrokerRole.ASYNC_MASTER)
    yield s.put()


def _led(s: StoreSubject) -> Iterator[Step]:
    """A controller's slave shows what its master confirmed, and all of it once it is promoted.

    The confirm offset is inside a record, as a slave's that has received a part of it.
    """

    def follow() -> None:
        s.store.copies.follow(len(_sent()) // 2)

    yield s.do("follow", follow)
    yield _receive(s, 0, len(_sent()))
    yield _switch(s, BrokerRole.ASYNC_MASTER)
    yield s.put()


_SLAVE = {"broker_role": BrokerRole.SLAVE}

ROLE_WORKLOADS = [
    StoreWorkload("roles-promoted", _promoted, settings_of(ASYNC, **_SLAVE)),
    StoreWorkload("roles-promoted-synced", _promoted, settings_of(SYNC, **_SLAVE)),
    StoreWorkload("roles-led", _led, settings_of(ASYNC, **_SLAVE)),
    StoreWorkload("roles-led-synced", _led, settings_of(SYNC, **_SLAVE)),
]
