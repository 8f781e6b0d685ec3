"""Write Kafka log segments to measure on: batches of equal records, without compression.

The same arguments give the same bytes. Offsets and times go up from batch to batch.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from struct import pack_into

from mqlake.formats.kafka.crc32c import crc32c
from mqlake.formats.kafka.file_name import Kind, file_name
from mqlake.formats.kafka.record_batch import CHECKED_AT, CRC_AT, NewRecord, encode

INTERVAL = 4096
RECORD = 1 << 10
BEGIN_TIMESTAMP = 1_767_225_600_000
BLOCK = 1024

BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT = 27, 35


@dataclass(frozen=True)
class Segment:
    """What was written: the partition's directory; `size` in bytes."""

    path: Path
    size: int
    batches: int
    records: int

    @property
    def log(self) -> Path:
        """The `.log` file."""
        return self.path / file_name(0, Kind.LOG)

    def strip(self) -> None:
        """Remove everything but the log."""
        for entry in self.path.iterdir():
            if entry != self.log:
                entry.unlink()

    def indexes(self) -> dict[str, bytes]:
        """Return the index files by name."""
        kinds = (Kind.OFFSET_INDEX, Kind.TIME_INDEX)
        return {kind: (self.path / file_name(0, kind)).read_bytes() for kind in kinds}


def write_segment(path: Path, *, size: int, records: int) -> Segment:
    """Write up to `size` bytes of batches of so many records of 1 KiB."""
    source = random.Random(records)
    template = bytearray(
        encode(
            0,
            [
                NewRecord(BEGIN_TIMESTAMP, b"key-%010d" % number, source.randbytes(RECORD - 32))
                for number in range(records)
            ],
        )
    )
    batches = size // len(template)
    path.mkdir(parents=True)
    with (path / file_name(0, Kind.LOG)).open("wb") as log:
        for first in range(0, batches, BLOCK):
            numbers = range(first, min(first + BLOCK, batches))
            log.write(b"".join(_numbered(template, number, records) for number in numbers))
    return Segment(path, batches * len(template), batches, batches * records)


def _numbered(template: bytearray, number: int, records: int) -> bytes:
    pack_into(">q", template, 0, number * records)
    pack_into(">q", template, BASE_TIMESTAMP_AT, BEGIN_TIMESTAMP + number)
    pack_into(">q", template, MAX_TIMESTAMP_AT, BEGIN_TIMESTAMP + number)
    pack_into(">I", template, CRC_AT, crc32c(bytes(template[CHECKED_AT:])))
    return bytes(template)
