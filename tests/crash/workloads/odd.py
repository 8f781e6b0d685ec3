"""Messages whose records look damaged, and are not: zeros, no text, records within records."""

from __future__ import annotations

from tests.crash import odd
from tests.crash.session import Session
from tests.crash.store_workload import SYNC, workload


@workload(SYNC)
def odd_properties(s: Session) -> None:
    for properties in odd.PROPERTIES[::3]:
        s.put_odd(properties)


@workload()
def odd_properties_unsynced(s: Session) -> None:
    for number, properties in enumerate(odd.PROPERTIES[1::3]):
        s.put_odd(properties)
        if number % 4 == 3:
            s.flush()


@workload(SYNC)
def odd_properties_in_many(s: Session) -> None:
    for first in range(0, len(odd.PROPERTIES), 4):
        s.put_many([s.odd_message(each) for each in odd.PROPERTIES[first : first + 4]])


@workload()
def odd_properties_in_batches(s: Session) -> None:
    for first in range(2, len(odd.PROPERTIES), 6):
        s.put_odd_batch(odd.PROPERTIES[first : first + 3])
        s.tick()
    s.flush()


@workload(SYNC)
def odd_bodies(s: Session) -> None:
    """Bodies that are records themselves, at the very place that they state."""
    for number, _ in enumerate(odd.bodies(0)):
        s.put_odd(odd.PROPERTIES[number], number)


@workload()
def odd_records_over_rolls(s: Session) -> None:
    """A record with 600 zeros is the last one of a file, the first one, and alone in one."""
    for number in range(12):
        s.put_odd(odd.PROPERTIES[15 + number % 5])
        s.put(900 if number % 3 else 100)
    s.tick()


@workload()
def odd_records_and_kills(s: Session) -> None:
    for number, properties in enumerate(odd.PROPERTIES[2::4]):
        s.put_odd(properties)
        if number % 2:
            s.kill()
    s.restart()
    s.put_odd(odd.PROPERTIES[16])
    s.kill()


@workload(SYNC)
def odd_records_after_rocketmq(s: Session) -> None:
    """A store that RocketMQ has closed in between has no part with checksums."""
    s.put_odd(odd.PROPERTIES[15])
    s.stop()
    s.hand_over()
    s.start()
    s.put_odd(odd.PROPERTIES[16])
    s.put_odd(odd.PROPERTIES[17])
