"""Requests to a broker, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from tests.comparison.run import Step
from tests.comparison.wire import GROUP, TOPIC, WireSubject, WireWorkload


def _sends(s: WireSubject) -> Iterator[Step]:
    yield s.create(TOPIC)
    yield s.create_group()
    for number in range(4):
        yield s.send(f"s{number}", queue_id=number % 2, properties=f"KEYS\x01k{number}\x02")
    yield s.send_batch("b1", "b2")
    yield s.send("long " + 1500 * "x")
    yield s.commit(1)
    yield s.pass_time(6.0)
    yield s.commit(2)
    yield s.send("last")


def _later(s: WireSubject) -> Iterator[Step]:
    yield s.create(TOPIC)
    yield s.create_group()
    yield s.send("now")
    yield s.send("delayed", properties="DELAY\x011\x02")
    yield s.pass_time(2.0)
    yield s.send_back(0)
    yield s.pass_time(2.0)
    yield s.send("timed", properties="TIMER_DELAY_SEC\x012\x02", queue_id=1)
    yield s.pass_time(4.0)


def _manages(s: WireSubject) -> Iterator[Step]:
    yield s.create(TOPIC)
    yield s.create_group()
    yield s.create("others")
    yield s.send("o1", "others")
    yield s.send("s1")
    yield s.commit(1)
    yield s.delete("others")
    yield s.create("others")
    yield s.send("o2", "others")
    yield s.configure("fileReservedTime=100\n")
    yield s.delete_group(GROUP)


_SYNC = {"flushDiskType": "SYNC_FLUSH"}
WIRE_WORKLOADS = [
    WireWorkload("wire-sends", _sends),
    WireWorkload("wire-sends-synced", _sends, _SYNC),
    WireWorkload("wire-later", _later),
    WireWorkload("wire-manages", _manages),
]
