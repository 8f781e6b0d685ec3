"""Records, one line each."""

from __future__ import annotations

from mqlake.cli.text import local_time, preview, printable
from mqlake.formats.kafka.batch import Record

KEY, VALUE, HEADER = 24, 80, 40


def line(record: Record) -> str:
    """Return offset, time, key, value and headers; "-" stands for null."""
    time = "-" if record.timestamp < 0 else local_time(record.timestamp)
    headers = "  ".join(
        f"{printable(name)}={_part(value, HEADER)}" for name, value in record.headers
    )
    kind = "[control]  " if record.is_control else ""
    shown = f"{record.offset:>12}  {time:23}  {kind}{_part(record.key, KEY):12}  "
    return f"{shown}{_part(record.value, VALUE)}  {headers}".rstrip()


def _part(data: bytes | None, limit: int) -> str:
    return "-" if data is None else preview(data, limit)
