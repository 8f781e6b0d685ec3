"""Where a query over a table and its log starts and ends, as conditions on rows.

The log may have lost its beginning, and with it queue files. So the time of each message decides.
"""

from __future__ import annotations

from mqlake.errors import FormatError
from mqlake.query.reading.conditions import MOST, Between, InQueues, Interval, Selection
from mqlake.query.reading.queue_json import EARLIEST, LATEST
from mqlake.query.store.options import StoreReadOptions
from mqlake.store.log.scan import Queue


def limits(options: StoreReadOptions) -> Selection:
    """Return the condition of starting and ending options; () without such options.

    Raises:
        FormatError: an option is about the positions of one log.
    """
    if options.starting.timestamps or options.ending.timestamps:
        raise FormatError(
            "options startingOffsetsByTimestamp and endingOffsetsByTimestamp cannot be "
            "combined with option table: use startingTimestamp and endingTimestamp, or "
            "filter on storeTimestamp"
        )
    if options.max_records_per_partition is not None:
        raise FormatError("option maxRecordsPerPartition cannot be combined with option table")
    first, last = options.starting.timestamp, options.ending.timestamp
    starts, ends = options.starting.offsets or {}, options.ending.offsets or {}
    ranges: dict[Queue, Interval] = {
        queue: (_start(starts.get(queue, EARLIEST)), _end(ends.get(queue, LATEST)))
        for queue in {**starts, **ends}
    }
    found: list[Between | InQueues] = []
    if first is not None or last is not None:
        low = -MOST if first is None else first
        found.append(Between("storeTimestamp", low, MOST if last is None else last - 1))
    if found or ranges:
        found.append(InQueues(ranges, others=True))
    return tuple(found)


def _start(offset: int) -> int:
    return 0 if offset == EARLIEST else offset


def _end(offset: int) -> int:
    return MOST if offset == LATEST else offset
