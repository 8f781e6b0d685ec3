"""Read the records of one task as Arrow batches."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from mqlake.errors import StoreError
from mqlake.formats.damage import Damage
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.records.arrow import times, to_arrow
from mqlake.kafka.records.scan import Records, RecordScan
from mqlake.query.kafka_log.plan import KafkaLogTask, PartitionRange
from mqlake.query.reading.directory import open_directory
from mqlake.query.reading.joining import put_together
from mqlake.query.reading.log import logger
from mqlake.query.reading.memory import keep_freed_memory

log = logger()


def read(task: KafkaLogTask, schema: Any) -> Iterator[Any]:
    """Yield the records of a task as `pyarrow.RecordBatch`es of an Arrow schema.

    Raises:
        FormatError, StoreError: records are damaged, or were deleted since the planning, unless
            that is tolerated.
    """
    keep_freed_memory()
    losses = _KafkaLogLosses(task)
    for batch in put_together(_batches(task, schema.names, losses)):
        yield batch.cast(schema) if batch.schema != schema else batch
    losses.report()


def _batches(task: KafkaLogTask, columns: list[str], losses: _KafkaLogLosses) -> Iterator[Any]:
    logs = LogDirectory(open_directory(task.location.path, task.location.settings))
    with ExitStack() as stack:
        opened: tuple[str, int] | None = None
        partition: Partition | None = None
        for one in task.ranges:
            if opened != (one.topic, one.partition):
                stack.close()
                opened = one.topic, one.partition
                partition = _open(logs, one, losses, stack)
            if partition is not None:
                for records in _scan(partition, one, task, losses):
                    yield to_arrow(records, one.topic, one.partition, columns)


def _open(
    logs: LogDirectory, one: PartitionRange, losses: _KafkaLogLosses, stack: ExitStack
) -> Partition | None:
    try:
        return stack.enter_context(logs.partition(one.topic, one.partition))
    except StoreError as error:
        losses.lost(f"{one.topic}-{one.partition} no longer exists: {error}")
        return None


def _scan(
    partition: Partition, one: PartitionRange, task: KafkaLogTask, losses: _KafkaLogLosses
) -> Iterator[Records]:
    start, end = partition.visible(one.start, one.end, isolation=task.isolation)
    if (start, end) != (one.start, one.end):
        losses.lost(
            f"{one.topic}-{one.partition}: offsets {one.start} to {one.end} are no longer "
            f"complete: the log has {start} to {end}"
        )
    on_damage = None if task.fail_on_data_loss else losses.damaged
    first, last = task.times
    scan = RecordScan(partition, start, end, isolation=task.isolation, on_damage=on_damage)
    for records in scan:
        shown = times(records)
        inside = (shown >= first) & (shown <= last)
        if inside.all():
            yield records
        elif inside.any():
            yield records._replace(rows=records.rows[inside])


class _KafkaLogLosses:
    """What a task could not read: it raises an error, or is logged."""

    def __init__(self, task: KafkaLogTask) -> None:
        self._fails = task.fail_on_data_loss
        self._count = 0
        self._first = ""

    def damaged(self, damage: Damage) -> None:
        """Report damage that is skipped."""
        self.lost(f"{damage.file}: {damage.length} bytes at {damage.offset}: {damage.reason}")

    def lost(self, what: str) -> None:
        """Report records that are missing."""
        if self._fails:
            raise StoreError(
                f"{what}; set failOnDataLoss to false to continue without the lost records"
            )
        self._first = self._first or what
        self._count += 1

    def report(self) -> None:
        """Log what was skipped."""
        if self._first:
            log.warning("skipped damage in %d places; the first: %s", self._count, self._first)
