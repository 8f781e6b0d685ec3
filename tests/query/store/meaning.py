"""What conditions mean, without any of the source's own code."""

from __future__ import annotations

import re

from mqlake.query.reading.conditions import (
    MOST,
    AnyNumber,
    AnyText,
    Between,
    Condition,
    HasKey,
    InQueues,
    TopicMatches,
)
from tests.query.store.rows import Row


def holds(one: Condition, row: Row) -> bool:
    """Say whether a row meets a condition, without any of the source's own code."""
    match one:
        case AnyText(column, values) | AnyNumber(column, values):
            return row[column] in values
        case Between(column, low, high):
            return low <= row[column] <= high
        case TopicMatches(pattern):
            return re.fullmatch(pattern, row["topic"]) is not None
        case HasKey(keys):
            return bool(set(keys) & {*row["keys"], row["uniqKey"]})
        case InQueues(ranges, others):
            start, end = ranges.get((row["topic"], row["queueId"]), (0, MOST if others else 0))
            is_queued = row["sysFlag"] & 12 in (0, 8)
            return is_queued and start <= row["queueOffset"] < end
