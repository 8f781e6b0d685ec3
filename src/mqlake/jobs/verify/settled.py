"""Find how much of a store can be verified while a broker writes it.

A broker appends, then dispatches what it has appended, and a job that reads meanwhile sees some of
it: half of a record, a record without its entries, or one queue's entries without another's.
Everything that was complete when the job began stays unchanged, so only that part is verified.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from mqlake.formats.damage import Damage
from mqlake.formats.file_name import parse_segment_name
from mqlake.jobs.queues.runs import queues_of
from mqlake.jobs.source import StoreSource
from mqlake.jobs.verify.batch_units import newest_unit
from mqlake.jobs.verify.index import IndexFileJob, plan_index
from mqlake.store.log.segments import open_log
from mqlake.store.queues.queue_files import topic_names
from mqlake.store.queues.queue_kind import BATCH
from mqlake.store.snapshot import Snapshot

T = TypeVar("T")

_PATIENCE = 50
_LOOK_INTERVAL = 0.02
"""Seconds. A broker dispatches what it appends within a few milliseconds."""


class Settled(NamedTuple):
    """What was complete at one moment; physical offsets.

    Attributes:
        end: records before it are whole.
        dispatched: records before it have their queue entries and index entries.
    """

    end: int
    dispatched: int

    def before_end(self, damage: list[Damage]) -> list[Damage]:
        """Return the damage of the log without that of files after `end`, which appear and grow."""
        return [each for each in damage if _base(each) < self.end]


def settle(source: StoreSource) -> Settled:
    """Return what is complete in a store that has an owner, once it is.

    The newest entry of all queues may belong to a dispatch that is still running. The dispatch is
    over when there is an entry of a record that was appended later or, if nothing is sent, after a
    second.
    """
    dispatched, end = _newest(source, source.snapshot), source.snapshot.end.offset

    def newest() -> int:
        log = open_log(source.directory)
        try:
            dialect = source.snapshot.detected.dialect
            return _newest(source, Snapshot(source.directory, log, dialect))
        finally:
            log.close()

    _look_until(lambda at: at >= end, newest)
    return Settled(end, min(dispatched, end))


def _newest(source: StoreSource, snapshot: Snapshot) -> int:
    """Return the physical offset of the newest record with an entry, in queues of either kind."""
    simple = snapshot.walk_start if topic_names(source.directory) else snapshot.log.min_offset
    batches = queues_of(source.directory, BATCH)
    return max(simple, newest_unit(source.directory, snapshot.log, batches))


def plan_live_index(source: StoreSource) -> tuple[list[IndexFileJob], list[Damage]]:
    """Return the result of `plan_index`; the newest file is still being written.

    A file that the broker is creating looks damaged until it has its first entry.
    """
    jobs, damage = _look_until(lambda found: not found[1], lambda: plan_index(source.directory))
    if jobs:
        jobs[-1] = jobs[-1].of_live_store()
    return jobs, damage


def _look_until(is_enough: Callable[[T], bool], look: Callable[[], T]) -> T:
    """Repeat a check for a second at most; return the last result."""
    for _ in range(_PATIENCE):
        if is_enough(found := look()):
            return found
        time.sleep(_LOOK_INTERVAL)
    return look()


def _base(damage: Damage) -> int:
    return parse_segment_name(damage.file.rpartition("/")[2]) or 0
