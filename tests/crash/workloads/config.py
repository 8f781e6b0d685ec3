"""Consumer offsets and topics."""

from __future__ import annotations

from tests.crash.session import TOPIC, Session
from tests.crash.store_workload import SYNC, workload


@workload()
def consumer_offsets(s: Session) -> None:
    for offset in (1, 2, 3):
        s.put()
        s.tick()
        s.consume(offset)
        s.persist()


@workload(SYNC)
def consumer_offsets_and_stop(s: Session) -> None:
    s.put()
    s.consume(1)
    s.persist()
    s.consume(2)
    s.restart()
    s.consume(3)
    s.persist()


@workload()
def topics(s: Session) -> None:
    for number, name in enumerate((TOPIC, "second", "third")):
        s.store.config.topics.ensure(name, 4)
        s.store.config.persist()
        s.put(topic=name)
        s.consume(number)
    s.persist()
