"""Topics that are deleted, and created again."""

from __future__ import annotations

from tests.crash.session import TOPIC, Session
from tests.crash.store_workload import SYNC, workload


@workload()
def deletions(s: Session) -> None:
    for _ in range(2):
        for number in range(6):
            s.put(queue_id=number % 2)
        s.put(topic="second")
        s.tick()
        s.delete(TOPIC)
    s.put(topic="second")
    s.tick()


@workload(SYNC)
def deletions_synced(s: Session) -> None:
    s.put(300)
    s.put(300, queue_id=1)
    s.checkpoint()
    s.delete(TOPIC)
    s.put(300)
    s.tick()
    s.checkpoint()
    s.delete(TOPIC)
    s.restart()
    s.put(queue_id=1)
    s.tick()


@workload()
def deletions_before_dispatch(s: Session) -> None:
    for number in range(4):
        s.put(queue_id=number % 2)
    s.delete(TOPIC)
    for number in range(4):
        s.put(queue_id=number % 2)
    s.kill()
    s.put()
    s.tick()
    s.delete(TOPIC)
    s.put()


@workload()
def queues_lost_after_a_deletion(s: Session) -> None:
    for number in range(14):
        s.put(queue_id=number % 2)
    s.put(topic="second")
    s.tick()
    s.delete(TOPIC)
    s.put()
    s.stop()
    for path in (f"consumequeue/{TOPIC}/0", "consumequeue/second/0"):
        s.lose(path)
    s.start()
    s.put()
    s.tick()
    s.delete("second")
    s.put(topic="second")
