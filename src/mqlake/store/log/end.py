"""Find where the commit log ends (docs/store-reader.md, "The log's end").

Upstream: `CommitLog.recoverAbnormally`, `recoverNormally`, `isMappedFileMatchedRecover`.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlake.formats.checkpoint import Checkpoint
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Fault
from mqlake.store.log.scan import SMALL, head_at, segment_scan, walk
from mqlake.store.log.segments import CommitLog, Segment

RECOVERED_SEGMENTS = 3
"""After a clean stop RocketMQ checks the last three segments."""

_MOST_RECOVERED = 10  # RocketMQ 5.5: commitLogRecoverMaxNum
_FLUSH_DELAY = 3000  # the milliseconds that StoreCheckpoint.getMinTimestamp subtracts

# Faults that do not end RocketMQ's walk, because it does not check for them.
_PASSED_OVER = (Fault.GOOD, Fault.BLANK, Fault.OFFSET, Fault.TOPIC)


class LogEnd(NamedTuple):
    """Where the log ends.

    Attributes:
        start: physical offset at which the walk began.
        offset: physical offset of the first byte that is not a good record.
        fault: the result of RocketMQ's check at that position; SHORT if there is no such byte.
    """

    start: int
    offset: int
    fault: Fault


def recovery_start(log: CommitLog, checkpoint: Checkpoint, dialect: Dialect) -> int:
    """Return where RocketMQ's recovery after a crash begins its walk: the start of a segment.

    This is the newest whose first record is good and was dispatched before the crash, according to
    the checkpoint; otherwise the first one. RocketMQ 5.5 goes back ten segments at most.
    """
    newest_first = log.segments[::-1]
    for number, segment in enumerate(newest_first, start=1):
        is_last_try = dialect is Dialect.V5_5 and number == _MOST_RECOVERED
        if is_last_try or _is_before_checkpoint(log, segment, checkpoint, dialect):
            return segment.base
    return log.min_offset


def _is_before_checkpoint(
    log: CommitLog, segment: Segment, checkpoint: Checkpoint, dialect: Dialect
) -> bool:
    fault, _ = log.check(segment.base)
    head = None if fault else head_at(log, segment.base)
    if head is None or head.store_timestamp == 0:
        return False
    if dialect is not Dialect.V5_5:
        flushed = min(checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp)
        return head.store_timestamp <= max(0, flushed - _FLUSH_DELAY)
    if checkpoint.logics_physical_offset > 0:
        return segment.base <= checkpoint.logics_physical_offset
    return head.store_timestamp <= checkpoint.logics_msg_timestamp


def last_segments_start(log: CommitLog) -> int:
    """Return the start of the third segment from the end."""
    return log.segments[-RECOVERED_SEGMENTS:][0].base if log.segments else 0


def last_written_start(log: CommitLog) -> int:
    """Return where the newest segment that begins with a good record starts."""
    for segment in reversed(log.segments):
        if log.check(segment.base)[0] is Fault.GOOD:
            return segment.base
    return log.min_offset


def find_end(log: CommitLog, start: int) -> LogEnd:
    """Walk from `start`, where a record starts, to the first bad record, bodies checked."""
    offset = start
    while True:
        step_end, fault = _walk_some(log, offset)
        if fault not in _PASSED_OVER or log.segment_at(step_end) is None:
            return LogEnd(start, step_end, fault)
        # The plain walk has reached its limit: the compiled scan continues if there is more.
        offset = _scan_to_gap(log, step_end)


def _walk_some(log: CommitLog, start: int) -> tuple[int, Fault]:
    """Walk a little more than SMALL bytes; return where the walk ended, and why."""
    end, walked = start, 0
    for step in walk(log, start, log.limit, crc=True):
        if step.offset != end:
            # A segment without the blank record that ends it.
            return end, Fault.SHORT
        if step.fault not in _PASSED_OVER:
            return step.offset, step.fault
        if step.layout is None:
            following = log.segment_after(step.place.segment)
            if following is None:
                return step.offset, Fault.SHORT
            end = following.base
            continue
        end = step.offset + step.layout.size
        walked += step.layout.size
        if walked > SMALL:
            return end, Fault.GOOD
    return end, Fault.SHORT


def _scan_to_gap(log: CommitLog, start: int) -> int:
    """Return where the first gap of a segment begins, at the latest after its last record."""
    from mqlake.dispatch.scan import Want

    segment = log.segment_at(start)
    scan = segment and segment_scan(log, segment, start, segment.end, want=Want.LOCATE, crc=True)
    end = start
    for batch in scan or ():
        last = batch.records[-1]
        end = int(last["physical_offset"]) + int(last["size"])
        if scan and scan.gaps:
            break
    return scan.gaps[0].physical_offset if scan and scan.gaps else end
