"""A rebuild in place: what it built takes the place of a store's queues, index and checkpoint."""

from __future__ import annotations

from tests.crash.exchange_workload import exchange_workload, rebuild
from tests.crash.session import Session


@exchange_workload
def exchange(s: Session) -> None:
    for number in range(4):
        s.put(300, queue_id=number % 2)
    s.stop()
    rebuild(s)
    s.start()
    s.put(300)


@exchange_workload
def exchange_twice(s: Session) -> None:
    """The second one finds what the first has left."""
    s.put(1500)
    s.put(1500)
    s.stop()
    rebuild(s)
    rebuild(s)
