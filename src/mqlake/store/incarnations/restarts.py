"""Find from the log alone where topics were deleted and created again.

A deleted topic's records stay in the log, and the queues of a topic that is created again start at
queue offset 0 again. So a record with queue offset 0 in a queue that already has records is a
*restart*: the topic was deleted between that record and the one before it in its queue.

Tasks trace the queues of their splits (`RestartTracer`), and the driver joins the traces (`join`).
Two kinds of records look like a restart, and do not prove a deletion: a record whose queue offset
is damaged, and a record that was written twice. So a restart must fit the record that follows it in
its queue. If the following record fits both explanations, as in 0, 0, 1, the one without damage is
chosen: the topic was deleted after one record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from mqlake.store.log.scan import Queue

_MOST_STARTS = 64
"""Of one queue in one split; only the newest ones decide."""


class Position(NamedTuple):
    """A record of a queue: its physical offset in bytes, and its queue offset."""

    physical_offset: int
    queue_offset: int


class Start(msgspec.Struct, frozen=True):
    """A record with queue offset 0.

    Attributes:
        physical_offset: of the record, bytes.
        end: the queue offset after it: 1, or the number of its messages if it is a batch.
        previous: the record before it in its queue; None if it is the first.
        following: the queue offset of the record after it in its queue; None if it is the last.
    """

    physical_offset: int
    end: int
    previous: Position | None = None
    following: int | None = None


class Trace(msgspec.Struct):
    """One queue in one stretch of the log: its first and last record, and the newest starts."""

    first: Position
    last: Position
    starts: list[Start]


class RestartTracer:
    """Trace the queues of a stretch of the log. Records are seen in the log's order."""

    def __init__(self) -> None:
        self.traces: dict[Queue, Trace] = {}

    def see(self, queue: Queue, first: Position, end: int, last: Position) -> None:
        """See records of a queue that have consecutive queue offsets.

        Args:
            end: the queue offset after the record `first`.
            last: the last record; `first` if there is no other.
        """
        trace = self.traces.get(queue)
        if trace is None:
            trace = self.traces[queue] = Trace(first, first, [])
            previous = None
        else:
            previous = trace.last
            _follow(trace.starts, first.queue_offset)
        if first.queue_offset == 0:
            following = None if last == first else end
            _append(trace.starts, Start(first.physical_offset, end, previous, following))
        trace.last = last


def join(stretches: Iterable[Mapping[Queue, Trace]]) -> dict[Queue, Trace]:
    """Return the traces of queues in a whole log from those in its consecutive stretches."""
    joined: dict[Queue, Trace] = {}
    for traces in stretches:
        for queue, trace in traces.items():
            whole = joined.get(queue)
            if whole is None:
                joined[queue] = Trace(trace.first, trace.last, list(trace.starts))
                continue
            _follow(whole.starts, trace.first.queue_offset)
            for start in trace.starts:
                previous = start.previous or whole.last
                _append(whole.starts, msgspec.structs.replace(start, previous=previous))
            whole.last = trace.last
    return joined


def is_restart(start: Start) -> bool:
    """Return whether a record began its queue again, judged by its neighbours.

    The queue was begun again if it continues after this record, or with less than what it had
    before. A queue that continues after what it had before has a damaged or repeated record.
    """
    if start.previous is None:
        return False
    following = start.following
    return following in (None, 0, start.end) or following <= start.previous.queue_offset


def befores(
    traces: Mapping[Queue, Trace],
    decide: Callable[[Queue, Start], bool] = lambda _, start: is_restart(start),
) -> dict[str, int]:
    """Return the physical offset before which each topic's records are dead.

    Topics without a restart are left out. The latest deletion came after every record that a
    restart follows, so the living records begin with the first start after all of these. Records of
    another queue that began between them and the deletion, and did not restart, count as living.

    Args:
        decide: whether a start of a queue is a restart.
    """
    newest_dead: dict[str, int] = {}
    for queue, trace in traces.items():
        for start in trace.starts:
            if start.previous is not None and decide(queue, start):
                dead = start.previous.physical_offset
                newest_dead[queue[0]] = max(dead, newest_dead.get(queue[0], -1))
    firsts: dict[str, list[int]] = defaultdict(list)
    for (topic, _), trace in traces.items():
        if topic in newest_dead:
            firsts[topic] += [start.physical_offset for start in trace.starts]
    return {
        topic: min(first for first in firsts[topic] if first > dead)
        for topic, dead in newest_dead.items()
    }


def _follow(starts: list[Start], queue_offset: int) -> None:
    """Note the queue offset of the record that follows a queue's newest start, unless known."""
    if starts and starts[-1].following is None:
        starts[-1] = msgspec.structs.replace(starts[-1], following=queue_offset)


def _append(starts: list[Start], start: Start) -> None:
    starts.append(start)
    if len(starts) > _MOST_STARTS:
        del starts[0]
