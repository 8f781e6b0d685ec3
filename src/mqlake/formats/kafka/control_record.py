"""Read and write the markers that end transactions (docs/formats/kafka/control_record.md).

Upstream: `ControlRecordType`, `EndTransactionMarker`.
"""

from __future__ import annotations

import enum
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats.kafka.batch import Record
from mqlake.formats.kafka.record_batch import NewRecord, encode

KEY = Struct(
    ">"
    "h"  # version: 0
    "h"  # type
)
MARKER = Struct(
    ">"
    "h"  # version: 0
    "i"  # epoch of the transaction coordinator
)


class ControlType(enum.IntEnum):
    """What a control record is for; types from 2 on belong to KRaft's own log."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndMarker(NamedTuple):
    """The end of a transaction: whether it counts, and who said so."""

    kind: ControlType
    coordinator_epoch: int


def control_type(record: Record) -> ControlType:
    """Return the type of a control record, UNKNOWN for one of a later Kafka.

    Raises:
        FormatError: no such key.
    """
    key = record.key or b""
    if len(key) < KEY.size:
        raise FormatError(f"a control record's key has {KEY.size} bytes, not {len(key)}")
    version, kind = KEY.unpack_from(key)
    if version < 0:
        raise FormatError(f"a control record's key of version {version}")
    try:
        return ControlType(kind)
    except ValueError:
        return ControlType.UNKNOWN


def end_marker(record: Record) -> EndMarker:
    """Return what a record that ends a transaction says.

    Raises:
        FormatError: another kind of control record, or no such value.
    """
    kind = control_type(record)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        raise FormatError(f"a control record of type {kind.name} in a transaction")
    value = record.value or b""
    if len(value) < MARKER.size:
        raise FormatError(f"an end marker has {MARKER.size} bytes, not {len(value)}")
    version, epoch = MARKER.unpack_from(value)
    if version < 0:
        raise FormatError(f"an end marker of version {version}")
    return EndMarker(kind, epoch)


def encode_end_marker(
    offset: int,
    timestamp: int,
    marker: EndMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    leader_epoch: int,
) -> bytes:
    """Return the control batch that ends a transaction."""
    record = NewRecord(
        timestamp,
        KEY.pack(0, marker.kind),
        MARKER.pack(0, marker.coordinator_epoch),
    )
    return encode(
        offset,
        [record],
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
