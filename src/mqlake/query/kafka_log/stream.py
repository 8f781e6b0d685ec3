"""A streaming query over a Kafka log directory that a broker writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mqlake.errors import FormatError
from mqlake.formats.kafka.partition_metadata import encode_topic_id
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.log.partition import Partition
from mqlake.query.kafka_log.offsets import start_of
from mqlake.query.kafka_log.options import KafkaLogReadOptions, TopicPartition
from mqlake.query.kafka_log.place import is_wanted, open_logs, wanted_partitions
from mqlake.query.kafka_log.plan import KafkaLogTask, PartitionRange, plan_tasks
from mqlake.query.kafka_log.position import KafkaLogPosition, Offsets, TopicIds
from mqlake.query.reading.log import logger
from mqlake.query.reading.losses import data_loss
from mqlake.query.reading.source import Stream, Written, most_of
from mqlake.query.reading.triggers import Trigger

log = logger()


class KafkaStream(Stream[KafkaLogTask]):
    """Reads what was appended to the partitions since the last micro-batch."""

    def __init__(self, options: KafkaLogReadOptions) -> None:
        self._options = options
        self._target: Offsets | None = None
        self._seen: Offsets | None = None
        self._trigger = Trigger(options)

    @property
    def most(self) -> int | None:
        """The most records of a micro-batch that options allow; None if they set no limit."""
        return most_of(self._options.max_offsets_per_trigger, self._options.min_offsets_per_trigger)

    @property
    def seen(self) -> Written | None:
        """The ends of the partitions."""
        return None if self._seen is None else KafkaLogPosition(self._seen).write()

    def stop_at_end(self) -> None:
        """Let the query end at the current ends of the partitions."""
        self._target = {name: end for name, (_, end) in self._look()[0].items()}

    def position(self, after: Written | None = None, most: int | None = None) -> Written:
        """Return where the micro-batch after a position ends; `after` if there is nothing new.

        Raises:
            StoreError: a partition does not exist, or its log is not the one that was read, unless
                that is tolerated.
        """
        return self._first() if after is None else self._next(after, is_limited=most is not None)

    def _first(self) -> Written:
        logs = open_logs(self._options.location)
        starts: Offsets = {}
        ids: TopicIds = {}
        for name in wanted_partitions(logs, self._options):
            with logs.partition(*name) as partition:
                starts[name] = start_of(partition, name, self._options)
                ids |= _id_of(partition, name)
        return KafkaLogPosition(starts, ids).write()

    def _next(self, start: Written, *, is_limited: bool) -> Written:
        before = KafkaLogPosition.read(start)
        there, ids = self._look()
        position = self._still_valid(before, ids)
        starts = {name: position.get(name, first) for name, (first, _) in there.items()}
        ends = {name: max(starts[name], end) for name, (_, end) in there.items()}
        self._check_ends(position, {name: end for name, (_, end) in there.items()})
        if self._target is not None:
            ends = {
                name: min(end, self._target.get(name, starts[name])) for name, end in ends.items()
            }
            ends = {name: max(starts[name], end) for name, end in ends.items()}
        if is_limited:
            ends = self._trigger.admit(starts, ends, waits=self._target is None)
        if ends != starts:
            self._trigger.began()
        # A new partition that is empty does not justify a micro-batch.
        known = {name: end for name, end in ends.items() if name in position or end > starts[name]}
        if before.offsets == position | known:
            return start
        return KafkaLogPosition(position | known, before.topic_ids | ids).write()

    def _look(self) -> tuple[dict[tuple[str, int], tuple[int, int]], TopicIds]:
        """Return the first offset and the end offset of the existing partitions.

        Also return the ids of their topics.
        """
        logs = open_logs(self._options.location)
        found: dict[tuple[str, int], tuple[int, int]] = {}
        ids: TopicIds = {}
        for name in wanted_partitions(logs, self._options):
            with logs.partition(*name) as partition:
                found[name] = partition.visible(isolation=self._options.isolation)
                ids |= _id_of(partition, name)
        self._seen = {name: end for name, (_, end) in found.items()}
        return found, ids

    def _still_valid(self, position: KafkaLogPosition, found: TopicIds) -> Offsets:
        """Return the offsets of topics that are still those that were read.

        The other topics are read from their first record, if losses are tolerated.

        Args:
            found: the current ids of the topics.
        """
        anew = {
            topic
            for topic, topic_id in position.topic_ids.items()
            if found.get(topic, topic_id) != topic_id
        }
        for topic in sorted(anew):
            data_loss(
                self._options,
                f"{self._options.path}: topic {topic} is not the one that this query has "
                f"read: its id was {position.topic_ids[topic]} and is {found[topic]} now; it "
                "was deleted and created again",
            )
        return {name: offset for name, offset in position.offsets.items() if name[0] not in anew}

    def _check_ends(self, position: Offsets, ends: Offsets) -> None:
        for name, offset in position.items():
            end = ends.get(name)
            if not is_wanted(name, self._options):
                continue  # Its offset is kept for a query that subscribes to it again.
            if end is None:
                data_loss(self._options, f"{name[0]}-{name[1]} no longer exists")
            elif end < offset:
                data_loss(
                    self._options,
                    f"{name[0]}-{name[1]} ends at offset {end}, but the query is at {offset}: "
                    "the log was cut, or is another one",
                )

    def plan(self, start: Written, end: Written) -> Sequence[KafkaLogTask]:
        """Return the tasks of a micro-batch, with the same offsets whenever it is planned."""
        planned = KafkaLogPosition.read(end)
        starts = self._still_valid(KafkaLogPosition.read(start), planned.topic_ids)
        logs = open_logs(self._options.location)
        ranges = [
            one
            for name, last in planned.offsets.items()
            if starts.get(name, -1) < last and (one := self._range(logs, name, starts, planned))
        ]
        tasks = plan_tasks(logs, self._options, ranges)
        count = sum(one.end - one.start for one in ranges)
        log.info("%s: micro-batch of %d offsets, %d tasks", self._options.path, count, len(tasks))
        return tasks

    def _range(
        self, logs: LogDirectory, name: tuple[str, int], starts: Offsets, planned: KafkaLogPosition
    ) -> PartitionRange | None:
        """Return the part of a micro-batch that exists in a partition."""
        if not is_wanted(name, self._options):
            data_loss(
                self._options,
                f"a micro-batch that is not committed has records of {name[0]}-{name[1]}, to "
                "which the query no longer subscribes; restart it with the old options until "
                "the batch is committed",
            )
            return None
        if name not in wanted_partitions(logs, self._options):
            data_loss(self._options, f"{name[0]}-{name[1]} no longer exists")
            return None
        with logs.partition(*name) as partition:
            first, found = partition.log_start_offset, _id_of(partition, name)
        end = planned.offsets[name]
        if not self._still_valid(KafkaLogPosition({name: end}, planned.topic_ids), found):
            return None  # The topic was created again since the micro-batch was planned.
        # A new partition is read from its first record.
        start = starts.get(name, first)
        if start < first:
            data_loss(
                self._options,
                f"{name[0]}-{name[1]} begins at offset {first}; records from {start} on were "
                "deleted before the query read them",
            )
        return PartitionRange(*name, max(start, first), end) if max(start, first) < end else None

    def read(self, task: KafkaLogTask, schema: Any) -> Iterator[Any]:
        """Read the records of one task, as Arrow batches."""
        from mqlake.query.kafka_log.read import read

        return read(task, schema)


def _id_of(partition: Partition, name: TopicPartition) -> TopicIds:
    """Return the id of a partition's topic; nothing if it has none or it is unreadable."""
    try:
        metadata = partition.metadata
    except FormatError:
        return {}  # `mqlake kafka verify` reports the file; the records are readable.
    return {} if metadata is None else {name[0]: encode_topic_id(metadata.topic_id)}
