"""A streaming query over a running cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.query.live.brokers import Brokers, name_of
from mqlake.query.live.connection import connection
from mqlake.query.live.group import CommittedOffsets
from mqlake.query.live.options import LiveOptions
from mqlake.query.live.plan import brokers_of, plan_tasks, reached
from mqlake.query.live.position import LivePosition, Offsets
from mqlake.query.live.replaced import replaced_queues
from mqlake.query.live.scope import Spans, starts_of, wanted_queues
from mqlake.query.live.task import LiveTask, OffsetRange
from mqlake.query.reading.conditions import MOST
from mqlake.query.reading.log import logger
from mqlake.query.reading.losses import data_loss
from mqlake.query.reading.source import Stream, Written, most_of
from mqlake.query.reading.triggers import Trigger

log = logger()

_LOOK_AGAIN = 1.0
"""Seconds after which name servers are asked again for a queue that is not in its topic's route."""


class LiveStream(Stream[LiveTask]):
    """Reads what brokers have stored since the last micro-batch."""

    def __init__(self, options: LiveOptions) -> None:
        self._options = options
        self._trigger = Trigger(options)
        self._target: Offsets | None = None
        self._seen: Offsets | None = None
        self._group: CommittedOffsets | None = None

    @property
    def most(self) -> int | None:
        """The most messages of a micro-batch that options allow; None if they set no limit."""
        return most_of(self._options.max_offsets_per_trigger, self._options.min_offsets_per_trigger)

    @property
    def seen(self) -> Written | None:
        """The ends of the queues."""
        return None if self._seen is None else LivePosition(self._seen).write()

    def stop_at_end(self) -> None:
        """Let the query end at the current ends of the queues."""
        brokers = brokers_of(self._options)
        spans = connection(self._options).run(self._look(brokers, {}))
        self._target = {queue: end for queue, (_, end) in spans.items()}

    def position(self, after: Written | None = None, most: int | None = None) -> Written:
        """Return where the micro-batch after a position ends; `after` if there is nothing new.

        Raises:
            StoreError: a broker does not answer, or a queue is gone, unless that is tolerated.
        """
        if after is None:
            return connection(self._options).run(self._initial()).write()
        return self._next(after, is_limited=most is not None)

    async def _initial(self) -> LivePosition:
        brokers, options = brokers_of(self._options), self._options
        queues = await wanted_queues(brokers, options, log.warning)
        spans = reached(options, await brokers.spans(queues))
        starts = await starts_of(brokers, options, spans)
        befores = {queue: start - 1 for queue, start in starts.items() if start > spans[queue][0]}
        return LivePosition(starts, await brokers.marks(befores))

    def _next(self, start: Written, *, is_limited: bool) -> Written:
        before = LivePosition.read(start)
        self._commit(before.offsets)
        after = connection(self._options).run(self._latest(before, is_limited=is_limited))
        if after.offsets == before.offsets:
            return start
        self._trigger.began()
        return after.write()

    async def _latest(self, before: LivePosition, *, is_limited: bool) -> LivePosition:
        brokers = brokers_of(self._options)
        spans = await self._look(brokers, before.offsets)
        self._seen = {queue: end for queue, (_, end) in spans.items()}
        starts = {queue: before.offsets.get(queue, low) for queue, (low, _) in spans.items()}
        replaced = await replaced_queues(brokers, before, spans)
        for queue, one in replaced.items():
            data_loss(self._options, one.describe(queue))
        ends = self._ends(before, starts, spans)
        # The query goes back, and the next micro-batch reads the queue from there.
        ends |= {queue: one.start for queue, one in replaced.items()}
        if is_limited:
            ends = self._trigger.admit(starts, ends, waits=self._target is None)
        moved = {queue: end for queue, end in ends.items() if end != before.offsets.get(queue)}
        new = await brokers.marks({queue: end - 1 for queue, end in moved.items() if end > 0})
        kept = {queue: mark for queue, mark in before.marks.items() if queue not in moved}
        return LivePosition({**before.offsets, **moved}, {**kept, **new})

    def _ends(self, before: LivePosition, starts: Offsets, spans: Spans) -> dict[MessageQueue, int]:
        """Return the latest possible end of the micro-batch in each queue."""
        ends: dict[MessageQueue, int] = {}
        for queue, (_, end) in spans.items():
            start = starts[queue]
            if queue not in before.offsets:
                # A new queue is noted with its first offset, so that a batch that is planned again
                # begins there, too. The next batch reads it.
                end = start
            elif self._target is not None:
                end = max(start, min(end, self._target.get(queue, start)))
            ends[queue] = end
        return ends

    async def _look(self, brokers: Brokers, known: Offsets) -> Spans:
        """Return the spans of queues.

        Queues that a query knows but that are in no route now are waited for, because restarting
        brokers and name servers omit them for a while.

        Raises:
            StoreError: a known queue does not come back, or its broker does not answer, unless that
                is tolerated.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + brokers.seconds
        while True:
            queues = await wanted_queues(brokers, self._options)
            missing = sorted(name_of(queue) for queue in known.keys() - set(queues))
            if not missing or loop.time() >= deadline:
                break
            log.warning("%s is not in a route now, which may be temporary", missing[0])
            await asyncio.sleep(min(_LOOK_AGAIN, max(0.0, deadline - loop.time())))
        for name in missing:
            data_loss(
                self._options,
                f"{name} is no longer in a route: the topic was deleted or has fewer queues, "
                f"or its broker was away for {brokers.seconds:g} s (option retryTimeout)",
            )
        return reached(self._options, await brokers.spans(queues))

    def plan(self, start: Written, end: Written) -> Sequence[LiveTask]:
        """Return the tasks of a micro-batch, with the same offsets whenever it is planned."""
        before, after = LivePosition.read(start), LivePosition.read(end)
        moved = [
            queue for queue, last in after.offsets.items() if last > before.offsets.get(queue, MOST)
        ]
        ranges = [
            OffsetRange(
                queue,
                before.offsets[queue],
                after.offsets[queue],
                before.marks.get(queue),
                after.marks.get(queue),
            )
            for queue in moved
        ]
        tasks = plan_tasks(self._options, ranges)
        count = sum(one.end - one.start for one in ranges)
        log.info(
            "%s: micro-batch of %d offsets, %d tasks", self._options.name_servers, count, len(tasks)
        )
        return tasks

    def read(self, task: LiveTask, schema: Any) -> Iterator[Any]:
        """Read the messages of one task, as Arrow batches."""
        from mqlake.query.live.read import read

        return read(task, schema)

    def done(self, end: Written) -> None:
        """Commit the offsets of the group: the engine has finished all micro-batches before."""
        self._commit(LivePosition.read(end).offsets)

    def _commit(self, offsets: Offsets) -> None:
        """Commit the offsets of the group, unless they are already committed.

        Spark requests the next batch only when the last one is finished, and calls `done` only
        when there is a next one.
        """
        if self._options.group is None:
            return
        if self._group is None:
            instance = connection(self._options).instance
            self._group = CommittedOffsets(instance, self._options.group)
        connection(self._options).run(self._group.commit(offsets))
