"""Files that go."""

from __future__ import annotations

from tests.crash.session import TOPIC, Session
from tests.crash.store_workload import SYNC, workload

HOUR = 3_600_000
DAYS = 73 * HOUR


def _expire(s: Session, files: int = 9) -> None:
    """Let files be too old, and have them removed."""
    s.clock.forward(DAYS)
    s.store.retention.clean()
    s.store.retention.check()
    for _ in range(files):
        s.remove_next()


def _put_files(s: Session, count: int, **fields: object) -> None:
    for _ in range(count):
        s.put(1800, **fields)
        s.put(1800, **fields)
        s.tick()


@workload()
def retention(s: Session) -> None:
    _put_files(s, 3)
    s.checkpoint()
    _expire(s)
    s.put()
    s.tick()


@workload(SYNC, mapped_file_size_consume_queue=40, max_index_num=6)
def retention_of_queues_and_index(s: Session) -> None:
    _put_files(s, 4)
    s.checkpoint()
    _expire(s, 2)
    s.put()
    _expire(s)
    s.checkpoint()


@workload(SYNC, mapped_file_size_consume_queue=40, max_index_num=6)
def retention_and_lost_index_files(s: Session) -> None:
    """Index files go that were there at the checkpoint, not all of them by retention."""
    _put_files(s, 4)
    s.checkpoint()
    _expire(s, 3)
    for number in (0, 1, -1):
        s.disk.abandon()
        for name in s.disk.names("index")[number:][:1]:
            s.lose(f"index/{name}")
        s.start()
        s.put()


@workload()
def retention_before_a_checkpoint(s: Session) -> None:
    """What a start after a crash would read is kept, however old it is."""
    _put_files(s, 3)
    _expire(s)
    s.flush()
    _expire(s)
    s.checkpoint()
    _expire(s, 1)


@workload(mapped_file_size_consume_queue=40)
def retention_of_a_whole_queue(s: Session) -> None:
    """A queue of which nothing is left goes on at its next offset."""
    s.put(1000, topic="old")
    s.put(1000, topic="old")
    _put_files(s, 2)
    s.checkpoint()
    _expire(s)
    s.put(topic="old")
    s.put(topic=TOPIC)
    s.tick()


@workload(mapped_file_size_consume_queue=40)
def retention_and_restart(s: Session) -> None:
    s.put(100, topic="old")
    _put_files(s, 3)
    s.checkpoint()
    _expire(s)
    s.restart()
    s.put(topic="old")
    s.kill()
    s.put(topic="old")
    s.tick()


@workload(max_commit_log_bytes=8192)
def retention_by_bytes(s: Session) -> None:
    for _ in range(4):
        _put_files(s, 1)
        s.checkpoint()
        s.store.retention.check()
        s.remove_next()
    s.put()


@workload(mapped_file_size_consume_queue=60)
def disk_fills_up(s: Session) -> None:
    """Files go before their time; then nothing is taken; then there is room again."""
    _put_files(s, 3)
    s.checkpoint()
    s.disk.total = 100_000
    s.disk.others = 95_000
    s.store.retention.check()
    s.tick()
    result = s.do(lambda: s.store.puts.put(s.message()))
    # A disk that cannot be looked at leaves all as it is.
    assert not result.is_ok or getattr(s.disk, "has_failed", False)
    s.remove_next()
    s.disk.others = 20_000
    s.store.retention.check()
    s.tick()
    s.put()
    s.tick()
