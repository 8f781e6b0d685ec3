"""The records in the body of an answer."""

from __future__ import annotations

from mqlake.formats import record
from mqlake.formats.record import Record


def answered_records(data: bytes) -> list[Record]:
    """Return the records that follow each other in the body of an answer."""
    found: list[Record] = []
    at = 0
    while at < len(data):
        found.append(record.decode(data, at))
        at += found[-1].size
    return found
