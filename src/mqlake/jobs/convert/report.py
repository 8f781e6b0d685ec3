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
    bytes_written: int
    left_out: list[LeftOut]
    damage: list[Damage]
