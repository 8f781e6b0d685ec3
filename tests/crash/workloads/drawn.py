"""Scripts that are drawn: as many as one likes, each from its number."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from mqlake.store.settings import StoreSettings
from tests.crash import odd
from tests.crash.session import TOPIC, Session
from tests.crash.store_workload import ASYNC, SYNC, StoreWorkload
from tests.odd_messages import odd_properties

PREFIX = "drawn-"
_STEPS = 25
_HOUR = 3_600_000
_ODD_RECORD = 900
"""Bytes that an odd message may need besides its properties."""


def drawn(number: int) -> StoreWorkload:
    """Return the script of this number: some steps, in any order, on files of any small size."""
    dice = random.Random(number)
    size = dice.choice((1024, 2048, 4096, 8192))
    settings = StoreSettings(
        flush_disk_type=dice.choice((SYNC, ASYNC)),
        mapped_file_size_commit_log=size,
        mapped_file_size_consume_queue=20 * dice.choice((2, 3, 5, 10)),
        max_hash_slot_num=dice.choice((1, 2, 4)),
        max_index_num=dice.choice((4, 5, 9, 17)),
        max_commit_log_bytes=dice.choice((0, 0, 3 * size)),
    )
    steps = [dice.choice(_CHOICES) for _ in range(_STEPS)]

    def script(session: Session) -> None:
        own = random.Random(f"{number}/steps")
        for step in steps:
            step(session, own)

    return StoreWorkload(f"{PREFIX}{number}", script, settings)


Move = Callable[[Session, random.Random], None]


def _size(s: Session, dice: random.Random) -> int:
    most = s.settings.mapped_file_size_commit_log - 400
    return dice.choice((0, 5, dice.randrange(most), dice.randrange(min(most, 600))))


def _put(s: Session, dice: random.Random) -> None:
    keys = " ".join(f"k{dice.randrange(5)}" for _ in range(dice.randrange(3)))
    tags = dice.choice((None, "red", "blue"))
    topic = dice.choice((TOPIC, TOPIC, "second"))
    s.put(_size(s, dice), topic=topic, queue_id=dice.randrange(2), keys=keys, tags=tags)


def _put_many(s: Session, dice: random.Random) -> None:
    sizes = [dice.randrange(200) for _ in range(dice.randrange(1, 6))]
    s.put_many([s.message(size, queue_id=dice.randrange(2)) for size in sizes])


def _put_batch(s: Session, dice: random.Random) -> None:
    s.put_batch([dice.randrange(150) for _ in range(dice.randrange(1, 4))])


def _put_odd(s: Session, dice: random.Random) -> None:
    room = s.settings.mapped_file_size_commit_log - _ODD_RECORD
    kinds = dice.sample(odd.PROPERTIES, dice.randrange(1, 4))
    if dice.random() < 0.5:
        kinds = [odd_properties(dice, room // 2, of_system=dice.random() < 0.2) for _ in kinds]
    kinds = [properties for properties in kinds if len(properties) <= room]
    if dice.random() < 0.3:
        s.put_odd_batch([*_fitting(kinds or [b""], room)])
    else:
        for properties in kinds:
            s.put_odd(properties, dice.randrange(9))


def _fitting(kinds: Sequence[bytes], room: int) -> Iterator[bytes]:
    """Yield the properties whose messages fit into one file together; the first one always does."""
    for number, properties in enumerate(kinds):
        room -= len(properties) + (_ODD_RECORD if number else 0)
        if number and room < 0:
            return
        yield properties


def _put_delayed(s: Session, dice: random.Random) -> None:
    s.put(dice.randrange(100), delay_level=dice.randrange(1, 4))


def _put_timer(s: Session, dice: random.Random) -> None:
    seconds = str(dice.choice((1, 2, 12, 3 * 24 * 3600)))
    s.put(dice.randrange(100), properties={"TIMER_DELAY_SEC": seconds})


def _tick(s: Session, dice: random.Random) -> None:
    s.tick()


def _flush(s: Session, dice: random.Random) -> None:
    s.flush()


def _flush_around(s: Session, dice: random.Random) -> None:
    s.flush_around(lambda: s.do(lambda: s.store.puts.put(s.message(dice.randrange(300)))))


def _checkpoint(s: Session, dice: random.Random) -> None:
    s.checkpoint()


def _pass_time(s: Session, dice: random.Random) -> None:
    s.pass_time(dice.choice((1, 600, 1_500, 11_000)))


def _kill(s: Session, dice: random.Random) -> None:
    s.kill()


def _restart(s: Session, dice: random.Random) -> None:
    s.restart()


def _consume(s: Session, dice: random.Random) -> None:
    s.consume(s.consumed + 1)
    s.persist()


def _retain(s: Session, dice: random.Random) -> None:
    if dice.random() < 0.5:
        s.clock.forward(73 * _HOUR)
        s.store.retention.clean()
    s.store.retention.check()
    for _ in range(3):
        s.remove_next()


_CHOICES: list[Move] = [
    *[_put] * 7,
    *[_put_many] * 3,
    *[_put_batch] * 2,
    *[_put_odd] * 4,
    *[_tick] * 4,
    *[_flush] * 2,
    _put_delayed,
    *[_put_timer] * 2,
    _flush_around,
    _checkpoint,
    *[_pass_time] * 2,
    _kill,
    _restart,
    _consume,
    _retain,
]
