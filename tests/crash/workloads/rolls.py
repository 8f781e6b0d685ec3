"""Files that become full: log, queue and index."""

from __future__ import annotations

from tests.crash.session import Session
from tests.crash.store_workload import SYNC, workload

LOG = 4096
BLANK = 8


def _fill(s: Session, left: int) -> None:
    """Put plain messages until so many bytes are left in the first log file."""
    s.put_plain(1000)
    s.put_plain(1000)
    s.put_plain(LOG - 2000 - left)


def _roll(s: Session, left: int) -> None:
    _fill(s, left)
    s.put_plain(200)
    s.put_plain(300)
    s.tick()


@workload()
def roll(s: Session) -> None:
    for _ in range(6):
        s.put(1200)
        s.tick()


@workload(SYNC)
def roll_synced(s: Session) -> None:
    for _ in range(6):
        s.put(1200)


@workload()
def roll_flushed_late(s: Session) -> None:
    """One sync covers files, and names of files, from before and after a roll."""
    for _ in range(7):
        s.put(1200)
    s.flush()
    s.put(1200)
    s.checkpoint()


@workload(SYNC)
def roll_at_the_exact_end(s: Session) -> None:
    """Eight bytes are left: just enough for the blank record."""
    _roll(s, BLANK)


@workload()
def roll_at_the_exact_end_unsynced(s: Session) -> None:
    _roll(s, BLANK)
    s.flush()


@workload(SYNC)
def roll_one_byte_before_the_end(s: Session) -> None:
    _roll(s, BLANK + 1)


@workload(SYNC)
def roll_with_a_gap(s: Session) -> None:
    """The next record would fit, but not with a blank record behind it."""
    _roll(s, 200 + BLANK - 1)


@workload(SYNC)
def fill_to_the_blank(s: Session) -> None:
    """The next record fits with a blank record behind it, to the byte."""
    _roll(s, 200 + BLANK)


@workload(SYNC)
def stop_at_the_exact_end(s: Session) -> None:
    _fill(s, BLANK)
    s.restart()
    s.put_plain(300)


@workload()
def roll_by_a_batch(s: Session) -> None:
    s.put(1500)
    s.put_batch([700, 700, 700])
    s.tick()
    s.put_many([s.message(900) for _ in range(5)])
    s.tick()
    s.flush()


@workload(SYNC, mapped_file_size_commit_log=1024)
def a_file_a_message(s: Session) -> None:
    for _ in range(5):
        s.put(600)


@workload(mapped_file_size_commit_log=1024)
def a_file_a_message_unsynced(s: Session) -> None:
    for _ in range(6):
        s.put(600)
        s.tick()
    s.flush()


@workload(mapped_file_size_commit_log=16384)
def pages(s: Session) -> None:
    """Files of several pages."""
    for _ in range(4):
        s.put(2500)
        s.put(3000)
        s.tick()
    s.flush()
    s.put(3000)


@workload(mapped_file_size_consume_queue=60)
def queue_roll(s: Session) -> None:
    for _ in range(8):
        s.put()
        s.tick()
    s.checkpoint()
    s.put()
    s.tick()


@workload(SYNC, mapped_file_size_consume_queue=60)
def queue_roll_synced(s: Session) -> None:
    s.put_many([s.message() for _ in range(5)])
    s.checkpoint()
    s.put_many([s.message() for _ in range(5)])


@workload(mapped_file_size_consume_queue=20)
def a_queue_file_an_entry(s: Session) -> None:
    for number in range(5):
        s.put(queue_id=number % 2)
        s.tick()
    s.flush()


@workload(max_index_num=6, max_hash_slot_num=2)
def index_roll(s: Session) -> None:
    for _ in range(5):
        s.put()
        s.clock.forward(7)
        s.tick()
    s.checkpoint()
    s.put()
    s.tick()


@workload(SYNC, max_index_num=4)
def index_roll_synced(s: Session) -> None:
    for _ in range(5):
        s.put()
        s.clock.forward(1500)


@workload(max_index_num=5, max_hash_slot_num=1)
def index_roll_within_a_record(s: Session) -> None:
    """The keys of one record lie in several index files."""
    s.put(keys=[f"key{number}" for number in range(9)])
    s.tick()
    s.clock.forward(5)
    s.put(keys=[f"key{number}" for number in range(9)])
    s.tick()
    s.checkpoint()


@workload(mapped_file_size_commit_log=1024, mapped_file_size_consume_queue=40, max_index_num=4)
def everything_rolls(s: Session) -> None:
    for _ in range(5):
        s.put(500)
        s.clock.forward(3)
        s.tick()
        s.flush()
    s.checkpoint()
