"""A Kafka log directory: appended to, rolled, cut, retained, recovered, its indexes rebuilt."""

from __future__ import annotations

from mqlake.formats.kafka.control_record import ControlType
from tests.crash.kafka_workload import KafkaSession, kafka_workload


@kafka_workload()
def kafka_append_flushed(s: KafkaSession) -> None:
    for _ in range(5):
        s.append()
        s.flush()


@kafka_workload()
def kafka_append_flushed_late(s: KafkaSession) -> None:
    """Without leader epochs, whose file would bring the names in the directory to the disk."""
    s.epoch = -1
    for number in range(8):
        s.append(2, 150)
        if number % 3 == 2:
            s.flush()


@kafka_workload()
def kafka_append_unflushed(s: KafkaSession) -> None:
    for _ in range(6):
        s.append()
        s.clock.forward(40)


@kafka_workload()
def kafka_roll(s: KafkaSession) -> None:
    for _ in range(9):
        s.append(2, 200)
        s.clock.forward(1000)
    s.roll()
    s.append()


@kafka_workload()
def kafka_roll_flushed(s: KafkaSession) -> None:
    for _ in range(7):
        s.append(2, 250)
        s.flush()


@kafka_workload(preallocate=True)
def kafka_preallocated(s: KafkaSession) -> None:
    for _ in range(6):
        s.append(2, 180)
        s.flush()
    s.restart()
    s.append()


@kafka_workload(segment_index_bytes=24, index_interval_bytes=0)
def kafka_roll_by_full_index(s: KafkaSession) -> None:
    for _ in range(5):
        s.append(1)
        s.clock.forward(5)
    s.flush()


@kafka_workload()
def kafka_restart(s: KafkaSession) -> None:
    for _ in range(3):
        s.append(2, 150)
        s.restart()
        s.append(1, 300)


@kafka_workload()
def kafka_killed(s: KafkaSession) -> None:
    for _ in range(3):
        s.append(2, 200)
        s.flush()
        s.append(2, 100)
        s.kill()
    s.append()
    s.flush()


@kafka_workload()
def kafka_transactions(s: KafkaSession) -> None:
    s.send(7)
    s.send(8)
    s.end_transaction(7, ControlType.ABORT)
    s.flush()
    s.end_transaction(8, ControlType.COMMIT)
    s.roll()
    s.send(9)
    s.end_transaction(9, ControlType.ABORT)
    s.flush()
    s.send(7)


@kafka_workload()
def kafka_leader_epochs(s: KafkaSession) -> None:
    for epoch in (0, 3, 4):
        s.epoch = epoch
        s.append()
        s.flush()
    s.restart()
    s.epoch = 9
    s.append()


@kafka_workload()
def kafka_truncate(s: KafkaSession) -> None:
    for _ in range(6):
        s.append(2, 250)
    s.flush()
    s.truncate(5)
    s.append(2, 100)
    s.flush()
    s.append(2, 300)
    s.append(2, 300)
    s.flush()


@kafka_workload()
def kafka_truncate_after_restart(s: KafkaSession) -> None:
    """The recovery point lies beyond what is appended next."""
    for _ in range(6):
        s.append(2, 250)
    s.restart()
    s.truncate(6)
    s.append(1, 100)
    s.flush()
    s.append(2, 200)
    s.kill()
    s.append()
    s.flush()


@kafka_workload()
def kafka_log_start(s: KafkaSession) -> None:
    for _ in range(6):
        s.append(2, 200)
    s.begin_at(7)
    s.restart()
    s.append()
    s.flush()
    s.kill()


@kafka_workload()
def kafka_log_start_beyond_the_end(s: KafkaSession) -> None:
    """All segments are removed."""
    for _ in range(5):
        s.append(2, 250)
    s.begin_at(20)
    s.restart()
    s.append(2, 200)
    s.flush()


@kafka_workload()
def kafka_rebuild_indexes(s: KafkaSession) -> None:
    s.send(7)
    s.append(2, 300)
    s.end_transaction(7, ControlType.ABORT)
    for _ in range(4):
        s.append(2, 200)
    s.stop()
    s.rebuild_indexes()
    s.start()
    s.append()


@kafka_workload()
def kafka_rebuild_lost_indexes(s: KafkaSession) -> None:
    for _ in range(6):
        s.append(2, 200)
    s.stop()
    s.lose_indexes()
    s.rebuild_indexes()
