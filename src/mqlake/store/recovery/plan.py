"""Settle what recovery changes, as plain values: its third stage. It neither reads nor writes."""

from __future__ import annotations

from dataclasses import dataclass

from mqlake.formats.checkpoint import STILL_OPEN, Checksummed
from mqlake.formats.record import Fault
from mqlake.store.recovery.derive import Facts
from mqlake.store.recovery.find import Found
from mqlake.store.recovery.log_walk import Stretch
from mqlake.store.recovery.queue_bytes import FoundQueue
from mqlake.store.recovery.recovery_index import KeptIndex
from mqlake.store.recovery.recovery_queues import KeptQueue
from mqlake.store.settings import StoreSettings


@dataclass(frozen=True)
class Plan:
    """What a recovery changes.

    Attributes:
        distrusts_queues: the checkpoint must first say that no queue is to be believed.
        index: what of the index stays; the files in `removed` go.
        queues: what of each queue stays; all other files of theirs go.
        removed: bases of the files of queues that go.
        odd_files: paths of queue files that get the size of the others.
        dispatch: the stretches of the log whose records get their entries.
        end: physical offset at which the log is cut; what is good behind it is kept aside.
        fault: what is there instead of a record.
        dirty_from: the log is on the disk before this physical offset.
        checksummed: where records have checksums from now on, None if nowhere.
    """

    distrusts_queues: bool
    index: KeptIndex
    queues: tuple[KeptQueue, ...]
    removed: dict[FoundQueue, tuple[int, ...]]
    odd_files: frozenset[str]
    dispatch: tuple[Stretch, ...]
    end: int
    fault: Fault
    dirty_from: int
    checksummed: Checksummed | None


def settle(found: Found, facts: Facts, settings: StoreSettings, *, owns_log: bool) -> Plan:
    """Decide what is to be changed so that the store is what its log makes it.

    Args:
        owns_log: as for `find`.
    """
    stays = {(files.topic, files.queue_id): set(files.bases) for files, *_ in facts.queues.queues}
    removed = {
        queue._replace(bases=()): tuple(
            base for base in queue.bases if base not in stays[queue.topic, queue.queue_id]
        )
        for queue in found.queues
    }
    end = facts.walked.end
    # A slave has the records of its master, which may have none.
    has_checksums = owns_log and settings.enabled_append_prop_crc and not settings.is_slave
    return Plan(
        # Their files may show that others are lost, and a power cut may leave any part of what is
        # derived again: no start may believe them before all of it is there.
        distrusts_queues=facts.is_broken,
        index=facts.index,
        queues=facts.queues.queues,
        removed={queue: bases for queue, bases in removed.items() if bases},
        odd_files=facts.odd_files,
        dispatch=facts.walked.stretches,
        end=end,
        fault=facts.walked.fault,
        dirty_from=found.point.position if found.point else 0,
        checksummed=_checksummed(found.checksummed, end) if has_checksums else None,
    )


def _checksummed(part: Checksummed | None, end: int) -> Checksummed:
    """Return the part of the log in which records have checksums, from now on.

    It goes on if nobody else has appended since; else a new one begins at the log's end.
    """
    if part is None or part.start > end or part.end not in (end, STILL_OPEN):
        return Checksummed(end, STILL_OPEN)
    return Checksummed(part.start, STILL_OPEN)
