"""Inner batches and single messages in batch consume queues."""

from __future__ import annotations

from tests.crash.expectation import BATCHES
from tests.crash.session import Session
from tests.crash.store_workload import SYNC, workload


def _mix(s: Session, rounds: int) -> None:
    for number in range(rounds):
        s.put_inner([20] * (number % 4 + 1), queue_id=number % 2)
        s.tick()
        s.put(topic=BATCHES)
        s.put(300)


@workload()
def inner_batches(s: Session) -> None:
    s.make_batch_topic()
    _mix(s, 8)
    s.flush()


@workload(SYNC)
def inner_batches_synced(s: Session) -> None:
    s.make_batch_topic()
    _mix(s, 6)


@workload()
def inner_batches_after_a_checkpoint(s: Session) -> None:
    s.make_batch_topic()
    _mix(s, 4)
    s.checkpoint()
    _mix(s, 4)
    s.tick()
    s.restart()
    s.put_inner([10, 20, 30])
    s.tick()
    s.kill()
    s.put_inner([10] * 5)
    s.tick()


@workload(max_commit_log_bytes=3 * 4096)
def inner_batches_go_with_the_log(s: Session) -> None:
    s.make_batch_topic()
    for _ in range(14):
        s.put_inner([400, 400])
        s.tick()
    s.checkpoint()
    s.remove_next()
    s.remove_next()
    s.put_inner([10, 20, 30])
    s.tick()
    s.restart()
    s.put_inner([10])
    s.tick()


@workload()
def lost_files_of_inner_batches(s: Session) -> None:
    s.make_batch_topic()
    _mix(s, 6)
    s.stop()
    s.lose(f"batchconsumequeue/{BATCHES}/0")
    s.start()
    _mix(s, 2)
    s.flush()


@workload()
def inner_batches_in_a_store_of_rocketmq(s: Session) -> None:
    """Its checkpoint says nothing of how far queues are on the disk."""
    s.make_batch_topic()
    _mix(s, 6)
    s.stop()
    s.hand_over()
    s.start()
    _mix(s, 3)
    s.flush()
