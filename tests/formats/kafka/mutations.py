"""Batches with bytes changed: nothing but FormatError may come of reading them.

`tests/hostile` has as many read as asked for.
"""

from __future__ import annotations

import contextlib
import random
from struct import pack_into

from mqlake.errors import FormatError
from mqlake.formats.kafka import (
    checkpoint_file,
    control_record,
    partition_metadata,
    producer_snapshot,
    record_batch,
    transaction_index,
    versions,
)
from mqlake.formats.kafka.crc32c import crc32c
from tests import golden_kafka

# No batch of the golden logs below this size holds more than this.
LIMIT = 1 << 20
LARGEST = 4 << 10

_NUMBERS = (0, 1, -1, 0x7F, 0x80, 0x7FFF, 0x7FFFFFFF, -0x80000000, 0x55555555)


def samples() -> list[bytes]:
    """Return batches of every codec and version, the smaller ones of each log."""
    found: list[bytes] = []
    logs = [
        *golden_kafka.log_directory().glob("*/*.log"),
        *golden_kafka.root().glob("legacy/*/*.log"),
    ]
    for path in sorted(logs):
        data = path.read_bytes()
        at = 0
        while (batch := versions.read_header(data, at, at, len(data))) is not None:
            if batch.size <= LARGEST:
                found.append(data[at : batch.end])
            at = batch.end
    return found


def mutate(data: bytes, source: random.Random) -> bytes:
    """Return `data` with a few changes: bits, numbers, cuts, repetitions."""
    out = bytearray(data)
    for _ in range(source.randint(1, 4)):
        kind = source.randrange(6)
        at = source.randrange(len(out)) if out else 0
        if kind < 2 and out:
            out[at] ^= 1 << source.randrange(8)
        elif kind == 2 and out:
            out[at] = source.randrange(256)
        elif kind == 3 and at + 4 <= len(out):
            pack_into(">i", out, at, source.choice(_NUMBERS))
        elif kind == 4:
            del out[at : at + source.choice((1, 2, 7, len(out)))]
        elif len(out) < 2 * LARGEST:
            out[at:at] = out[at : at + source.randint(1, 40)]
    return bytes(out)


def with_good_check_sum(data: bytes) -> bytes:
    """Return a batch of version 2 with the check sum and length that its bytes have."""
    if len(data) <= record_batch.CHECKED_AT or data[16] != 2:
        return data
    out = bytearray(data)
    pack_into(">i", out, 8, len(out) - 12)
    pack_into(">I", out, record_batch.CRC_AT, crc32c(data[record_batch.CHECKED_AT :]))
    return bytes(out)


def read_all(data: bytes) -> int:
    """Read bytes as a log; return the number of records, however it ends."""
    records = at = 0
    try:
        while (batch := versions.read_header(data, at, at, len(data))) is not None:
            content = data[at : batch.end]
            versions.check(batch, content)
            found = versions.decode_records(batch, content, LIMIT)
            records += len(found)
            if batch.is_control:
                for record in found:
                    control_record.end_marker(record)
            at = batch.end
    except FormatError:
        pass
    return records


def read_side_files(data: bytes) -> None:
    """Read bytes as each of the small files."""
    for decode in (
        producer_snapshot.decode,
        transaction_index.decode,
        checkpoint_file.decode_offsets,
        checkpoint_file.decode_leader_epochs,
        partition_metadata.decode,
    ):
        with contextlib.suppress(FormatError):
            decode(data)
