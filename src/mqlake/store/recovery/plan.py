"""Settle what recovery changes, as plain values: its third stage.

It neither reads nor writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqlake.formats.checkpoint import STILL_OPEN, Checksummed
from mqlake.formats.record import Fault
from mqlake.store.incarnations.table import Incarnations
from mqlake.store.recovery.derive import Facts
from mqlake.store.recovery.find import StoreContents
from mqlake.store.recovery.log_walk import Stretch
from mqlake.store.recovery.queue_bytes import FoundQueue
from mqlake.store.recovery.recovery_index import KeptIndex
from mqlake.store.recovery.recovery_queues import KeptQueue
from mqlake.store.settings import StoreSettings


@dataclass(frozen=True)
class RecoveryPlan:
    """The changes of a recovery.

    Attributes:
        distrusts_queues: whether the checkpoint must first say that no queue is to be trusted.
        index: the part of the index that stays; the files in `removed` are removed.
        queues: the part of each queue that stays; all its other files are removed.
        removed: bases of the queue files that are removed.
        dead: queues of deleted topics, with the files that are removed.
        incarnations: which records of deleted topics are dead.
        odd_files: paths of queue files that get the size of the others.
        dispatch: the stretches of the log whose records get their entries.
        end: physical offset at which the log is cut; good records after it are copied first.
        fault: the result of the check at the end.
        dirty_from: the log is durable before this physical offset.
        checksummed: the part of the log whose records have checksums from now on, or None.
    """

    distrusts_queues: bool
    index: KeptIndex
    queues: tuple[KeptQueue, ...]
    removed: dict[FoundQueue, tuple[int, ...]]
    dead: tuple[FoundQueue, ...]
    incarnations: Incarnations
    odd_files: frozenset[str]
    dispatch: tuple[Stretch, ...]
    end: int
    fault: Fault
    dirty_from: int
    checksummed: Checksummed | None


def settle(
    found: StoreContents, facts: Facts, settings: StoreSettings, *, owns_log: bool
) -> RecoveryPlan:
    """Decide what must be changed so that the derived files match the log.

    Args:
        owns_log: as for `find`.
    """
    stays = {(files.topic, files.queue_id): set(files.bases) for files, *_ in facts.queues.queues}
    for files in facts.queues.dead:
        stays.setdefault((files.topic, files.queue_id), set()).update(files.bases)
    removed = {
        queue._replace(bases=()): tuple(
            base for base in queue.bases if base not in stays[queue.topic, queue.queue_id]
        )
        for queue in found.queues
    }
    end = facts.walked.end
    # A slave has the records of its master, which may have no checksums.
    has_checksums = owns_log and settings.enabled_append_prop_crc and not settings.is_slave
    return RecoveryPlan(
        # Its files may show that others are lost, and a power loss may leave any part of what is
        # derived again: no start may trust them before all of it is durable.
        distrusts_queues=facts.is_broken,
        index=facts.index,
        queues=facts.queues.queues,
        removed={queue: bases for queue, bases in removed.items() if bases},
        dead=facts.queues.dead,
        incarnations=facts.incarnations,
        odd_files=facts.odd_files,
        dispatch=facts.walked.stretches,
        end=end,
        fault=facts.walked.fault,
        dirty_from=found.point.position if found.point else 0,
        checksummed=_checksummed(found.checksummed, end) if has_checksums else None,
    )


def _checksummed(part: Checksummed | None, end: int) -> Checksummed:
    """Return the part of the log in which records have checksums, from now on.

    It continues if no other program has appended since; otherwise a new one begins at the log's
    end.
    """
    if part is None or part.start > end or part.end not in (end, STILL_OPEN):
        return Checksummed(end, STILL_OPEN)
    return Checksummed(part.start, STILL_OPEN)
