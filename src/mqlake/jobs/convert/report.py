"""The report of a conversion."""

from __future__ import annotations

import msgspec

from mqlake.formats.damage import Damage
from mqlake.jobs.convert.topics import LeftOut


class ConvertReport(msgspec.Struct, frozen=True, rename="camel"):
    """What was read and written.

    Attributes:
        source, output: the directories.
        to: "kafka" or "rocketmq".
        topics, partitions: how many were converted; queues are partitions.
        records: how many were written.
        deleted_topic_messages: messages of topics that were deleted after they were put, which are
            left out; 0 for Kafka, which removes them.
        bytes_written: the size of the new commit log, or of the new `.log` files.
        left_out: topics that were not converted.
        damage: the parts of the source that could not be converted.
    """

    source: str
    output: str
    to: str
    topics: int
    partitions: int
    records: int
    deleted_topic_messages: int
    bytes_written: int
    left_out: list[LeftOut]
    damage: list[Damage]
