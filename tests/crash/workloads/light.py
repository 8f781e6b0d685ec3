"""Light queues, which are derived from the properties of records."""

from __future__ import annotations

from collections import Counter

from mqlake.formats.properties import MULTI_DISPATCH, MULTI_QUEUE_OFFSET
from tests.crash.session import TOPIC, Session
from tests.crash.store_workload import SYNC, workload


class _Lights:
    def __init__(self, session: Session) -> None:
        self._session, self._next = session, Counter[str]()

    def put(self, *numbers: int, size: int = 20, topic: str = TOPIC) -> None:
        names = [f"%LMQ%${topic}${number}" for number in numbers]
        properties = {
            MULTI_DISPATCH: ",".join(names),
            MULTI_QUEUE_OFFSET: ",".join(str(self._next[name]) for name in names),
        }
        self._session.put(size, topic=topic, properties=properties)
        self._next.update(names)

    def end(self, topic: str) -> None:
        self._session.delete(topic)
        self._next = Counter({name: n for name, n in self._next.items() if topic not in name})


@workload(enable_lmq=True)
def light_queues(s: Session) -> None:
    light = _Lights(s)
    for number in range(8):
        light.put(number % 3, size=300)
        s.put()
        s.tick()
    s.checkpoint()
    light.put(0, 5)
    s.kill()
    light.put(5)
    s.tick()


@workload(SYNC, enable_lmq=True)
def light_queues_synced(s: Session) -> None:
    light = _Lights(s)
    for number in range(5):
        light.put(number % 2, size=800)
    s.checkpoint()
    light.put(0, topic="second")
    s.tick()
    s.restart()
    light.put(1)
    s.checkpoint()


@workload(enable_lmq=True)
def light_queues_of_deleted_topics(s: Session) -> None:
    light = _Lights(s)
    for number in range(4):
        light.put(number % 2, size=400)
    light.put(0, topic="second")
    s.tick()
    s.checkpoint()
    light.end(TOPIC)
    light.put(1)
    s.tick()
    light.end(TOPIC)
    s.kill()
    light.put(0, topic="second")
    light.put(1)
    s.tick()
