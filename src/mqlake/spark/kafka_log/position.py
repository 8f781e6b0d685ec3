"""Where a streaming query is: what Spark writes into its checkpoint, as Spark's Kafka source does.

{"topicA": {"0": 23, "1": 345}}
"""

from __future__ import annotations

from typing import Any

import msgspec

from mqlake.errors import StoreError
from mqlake.spark.kafka_log.options import TopicPartition

Offsets = dict[TopicPartition, int]
"""The next offset of each partition."""


def read_position(written: dict[str, Any]) -> Offsets:
    """Return the offsets of a checkpoint.

    Raises:
        StoreError: it is not one of this source.
    """
    try:
        found = msgspec.convert(written, dict[str, dict[int, int]], strict=False)
    except msgspec.ValidationError as error:
        raise StoreError(f"the checkpoint is not one of this source: {error}") from None
    return {(topic, number): offset for topic, of in found.items() for number, offset in of.items()}


def write_position(offsets: Offsets) -> dict[str, Any]:
    """Return what Spark keeps."""
    written: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        written.setdefault(topic, {})[str(number)] = offset
    return written


def admitted(starts: Offsets, ends: Offsets, most: int) -> Offsets:
    """Return ends with at most `most` offsets, shared by what each partition has."""
    waiting = {name: end - starts[name] for name, end in ends.items()}
    total = sum(waiting.values())
    if total <= most:
        return ends
    room = most
    found: Offsets = {}
    # What rounding leaves goes to those that come last, which have the most.
    for name in sorted(waiting, key=lambda name: (waiting[name], name)):
        share = 0 if not total else room * waiting[name] // total
        found[name] = starts[name] + share
        room, total = room - share, total - waiting[name]
    return found
