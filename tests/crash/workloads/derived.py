"""Queues, index and checkpoint against the log."""

from __future__ import annotations

from tests.crash.session import Session
from tests.crash.store_workload import SYNC, workload


@workload()
def checkpoints(s: Session) -> None:
    for _ in range(3):
        s.put(300)
        s.clock.forward(1000)
        s.tick()
        s.checkpoint()
    s.put()
    s.tick()


@workload(SYNC)
def checkpoints_synced(s: Session) -> None:
    for _ in range(3):
        s.put(900)
        s.put()
        s.clock.forward(5000)
        s.checkpoint()


@workload()
def checkpoint_of_many_queues(s: Session) -> None:
    for number in range(6):
        s.put(queue_id=number)
    s.checkpoint()
    for number in range(6):
        s.put(topic="second", queue_id=number)
    s.checkpoint()


@workload()
def checkpoint_without_tick(s: Session) -> None:
    s.put()
    s.put()
    s.checkpoint()
    s.put()


@workload()
def same_millisecond(s: Session) -> None:
    """Store times do not tell what a checkpoint covers from what it does not."""
    s.put()
    s.tick()
    s.checkpoint()
    s.put()
    s.tick()
    s.flush()
    s.put()
    s.checkpoint()


@workload()
def clock_goes_on_slowly(s: Session) -> None:
    for _ in range(4):
        s.put(400)
        s.clock.forward(1)
        s.tick()
    s.checkpoint()
    for _ in range(4):
        s.put(400)
        s.clock.forward(1)
    s.flush()


@workload(message_index_enable=False)
def without_index(s: Session) -> None:
    for _ in range(3):
        s.put(1000)
        s.tick()
        s.checkpoint()
    s.put()
    s.tick()


@workload()
def ticks_seldom(s: Session) -> None:
    """Long stretches of log are dispatched at once, over rolls."""
    for _ in range(9):
        s.put(1000)
    s.tick()
    s.checkpoint()
    for _ in range(3):
        s.put(1000)
    s.tick()
