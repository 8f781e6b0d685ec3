"""Messages of every kind, flushed or not."""

from __future__ import annotations

from mqlake.formats import sys_flag
from tests.crash.session import TOPIC, Session
from tests.crash.store_workload import SYNC, workload

LONG_TOPIC = "a-topic-of-more-than-127-bytes-" + "x" * 120


@workload()
def put(s: Session) -> None:
    for _ in range(6):
        s.put()
    s.tick()
    s.flush()
    s.put()


@workload(SYNC)
def put_synced(s: Session) -> None:
    for _ in range(6):
        s.put()


@workload()
def put_v2(s: Session) -> None:
    s.put()
    s.put(topic=LONG_TOPIC)
    s.flush()
    s.put(topic=LONG_TOPIC)
    s.tick()


@workload(SYNC)
def put_v6(s: Session) -> None:
    s.put(born_host="[2001:db8::1]:1234")
    s.put()
    s.put(born_host="[2001:db8::2]:1234")


@workload()
def put_many(s: Session) -> None:
    s.put_many([s.message() for _ in range(5)])
    s.flush()
    s.put_many([s.message(queue_id=number % 2) for number in range(5)])
    s.tick()


@workload(SYNC)
def put_many_synced(s: Session) -> None:
    for topic in (TOPIC, "other", TOPIC):
        s.put_many([s.message(topic=topic, queue_id=number) for number in range(3)])


@workload()
def batch(s: Session) -> None:
    s.put_batch([10, 20, 30])
    s.tick()
    s.flush()
    s.put_batch([700, 1, 40])


@workload(SYNC)
def batch_synced(s: Session) -> None:
    s.put()
    s.put_batch([400] * 4)
    s.put_batch([5, 6])


@workload(SYNC)
def big_messages(s: Session) -> None:
    s.put(1800)
    s.put(2000)
    s.put(3500)
    s.put(3)


@workload()
def big_messages_unsynced(s: Session) -> None:
    for size in (1500, 1500, 3000):
        s.put(size)
        s.tick()
    s.flush()
    s.put(3000)


@workload(SYNC)
def long_properties(s: Session) -> None:
    """Records whose properties lie in sectors of their own, that no checksum covers."""
    for _ in range(3):
        s.put(5, properties={"note": "p" * 1300})


@workload()
def long_properties_unsynced(s: Session) -> None:
    for size in (5, 900):
        s.put(size, properties={"note": "p" * 700, "more": "q" * 600})
    s.flush()
    s.put(0, properties={"note": "r" * 1200})


@workload(SYNC)
def empty_bodies(s: Session) -> None:
    for _ in range(4):
        s.put(0, properties={"note": "p" * 150})


@workload()
def many_topics(s: Session) -> None:
    for number in range(8):
        s.put(topic=f"topic-{number}", queue_id=number % 3)
    s.tick()
    s.checkpoint()
    s.put(topic="topic-8")
    s.tick()


@workload(SYNC)
def many_queues_synced(s: Session) -> None:
    for number in range(6):
        s.put(queue_id=number)


@workload()
def many_keys(s: Session) -> None:
    s.put(keys=[f"key{number}" for number in range(10)])
    s.tick()
    s.put(keys="same same same", properties={"UNIQ_KEY": "7F0000010A8C"})
    s.put(tags=None, keys=())
    s.tick()
    s.flush()


@workload(SYNC)
def group_commit(s: Session) -> None:
    """What is put while a sync runs waits for the next one."""
    s.flush_around(lambda: s.do(lambda: s.store.puts.put(s.message())))
    s.flush_around(lambda: s.do(lambda: s.store.puts.put(s.message(900))))
    s.flush()


@workload()
def flush_while_putting(s: Session) -> None:
    for _ in range(4):
        s.put(700)
        s.flush_around(lambda: s.do(lambda: s.store.puts.put(s.message(800))))


@workload()
def half_messages(s: Session) -> None:
    """Neither half messages nor rollbacks are queued; rollbacks are not indexed either."""
    s.put()
    s.put(sys_flag=sys_flag.TRANSACTION_PREPARED)
    s.put(sys_flag=sys_flag.TRANSACTION_ROLLBACK)
    s.tick()
    s.put(sys_flag=sys_flag.TRANSACTION_COMMIT)
    s.flush()
    s.tick()


@workload()
def delayed_tags(s: Session) -> None:
    """In the topic of delayed messages a queue entry holds the delivery time."""
    for level in (1, 3, 18):
        s.put(topic="SCHEDULE_TOPIC_XXXX", queue_id=level - 1, delay_level=level)
        s.clock.forward(500)
    s.tick()
    s.flush()


@workload()
def refused(s: Session) -> None:
    """A refused message leaves nothing, in the log or in the offsets."""
    s.put()
    assert not s.do(lambda: s.store.puts.put(s.message(5000))).is_ok
    assert not s.do(lambda: s.store.puts.put(s.message(properties={"note": "x" * 40_000}))).is_ok
    s.put()
    s.flush()
