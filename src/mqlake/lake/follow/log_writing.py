"""Write a micro-batch's stretch of the log directly to a table's files.

Spark plans each micro-batch and stores its end in the checkpoint, but the rows do not pass through
Spark: each task reads its part of the log and writes the files.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.engine import Engine
from mqlake.lake.files.partition_writer import Shapes, WrittenFiles, write_counted
from mqlake.lake.follow.log_positions import stream_options_of
from mqlake.lake.follow.topic_groups import topic_groups
from mqlake.lake.options import StoreQuery
from mqlake.query.reading.conditions import TopicShare
from mqlake.query.store.access.stretches import Stretch, without
from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.plan import StoreTask
from mqlake.query.store.position import StorePosition
from mqlake.query.store.stream import LogStream

SHARED = 4
"""Tasks whose parts of the log are shared by topic. Each of the tasks that share them reads all of
these parts, which takes less time than merging the files of as many parts."""


class WriteJob(msgspec.Struct, frozen=True):
    """What one task reads, and the shape of the files that it writes.

    Attributes:
        schema: Arrow schema of the rows.
    """

    task: StoreTask
    schema: Any
    shape: Shapes


class LogWriting:
    """Writes stretches of a store's log to files, in tasks of an engine.

    Args:
        query: its columns include those of the table's files.
    """

    def __init__(self, query: StoreQuery, engine: Engine) -> None:
        self._engine = engine
        self._schema = arrow_schema(query.columns)
        self._stream = LogStream(stream_options_of(query))

    def write(
        self, stretch: tuple[StorePosition, StorePosition], shape: Shapes
    ) -> list[WrittenFiles]:
        """Write the messages of a stretch; return what each task wrote.

        What no task was to read, as no file had it, is the `unread` of an additional one.

        Raises:
            StoreError: damage or deleted messages that the query does not tolerate.
        """
        start, end = (position.write() for position in stretch)
        tasks = self._stream.plan(start, end)
        jobs = [WriteJob(task, self._schema, shape) for task in self._by_topics(tasks)]
        written = self._engine.run(_write, jobs, "write files")
        first, last = (position.physical_offset for position in stretch)
        planned = [(piece.start, piece.end) for task in tasks for piece in task.pieces]
        absent = without([(first, last)], planned)
        return [*written, WrittenFiles([], 0, absent)] if absent else written

    def _by_topics(self, tasks: Sequence[StoreTask]) -> Iterator[StoreTask]:
        """Yield tasks that share the topics of a few parts of the log, instead of the parts.

        A topic then has one file instead of one for each part. If a topic has more messages than
        one task should write, the tasks stay as they are.
        """
        for first in range(0, len(tasks), SHARED):
            some = tasks[first : first + SHARED]
            count = min(len(some), self._engine.parallelism)
            groups = topic_groups(some, count) if len(some) > 1 else None
            if groups is None:
                yield from some
                continue
            pieces = tuple(piece for task in some for piece in task.pieces)
            for number in range(count):
                share = TopicShare(groups, count, number)
                yield msgspec.structs.replace(
                    some[0], pieces=pieces, selection=(*some[0].selection, share)
                )


@reports_disk_faults
def _write(job: WriteJob) -> WrittenFiles:
    """Write the files of one task."""
    from mqlake.query.store.read import read

    unread: list[Stretch] = []
    written = write_counted(job.shape, read(job.task, job.schema, unread))
    return msgspec.structs.replace(written, unread=unread)
