"""Make and check the names of store files and directories (docs/formats/file_name.md).

Upstream: `UtilAll.offset2FileName`, `UtilAll.timeMillisToHumanString`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from mqlake.errors import FormatError

SEGMENT_NAME_DIGITS = 20
INDEX_NAME_DIGITS = 17
MAX_NAME_BYTES = 255

_DIGITS = re.compile(r"[0-9]+")
_UNSAFE = re.compile(rb"[\x00-\x1f\x7f/\\]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def segment_name(offset: int) -> str:
    """Return the name of the file that starts at `offset` bytes: 20 decimal digits."""
    return f"{offset:020d}"


def parse_segment_name(name: str) -> int | None:
    """Return the offset (bytes) that a file name states, None if it is no such name."""
    if len(name) != SEGMENT_NAME_DIGITS or not _DIGITS.fullmatch(name):
        return None
    offset = int(name)
    return offset if offset < 1 << 63 else None


def index_name(milliseconds: int) -> str:
    """Return an index file's name, `yyyyMMddHHmmssSSS`, in UTC.

    RocketMQ uses its own time zone, and the time at which the file was made.

    Raises:
        FormatError: not within the years 1 to 9999.
    """
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise FormatError(f"not a calendar date: {milliseconds} ms") from None
    return f"{time:%Y%m%d%H%M%S}".rjust(14, "0") + f"{time.microsecond // 1000:03d}"


def is_index_name(name: str) -> bool:
    """Return whether a name has the digits of an index file's name."""
    return len(name) == INDEX_NAME_DIGITS and bool(_DIGITS.fullmatch(name))


def parse_index_name(name: str) -> int | None:
    """Return the milliseconds since 1970 that an index file's name states as UTC, else None."""
    if not is_index_name(name):
        return None
    year, month, day, hour, minute, second, millisecond = (
        int(name[start:end])
        for start, end in ((0, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 14), (14, 17))
    )
    try:
        time = datetime(year, month, day, hour, minute, second, millisecond * 1000, tzinfo=UTC)
    except ValueError:
        return None
    return (time - _EPOCH) // _MILLISECOND


def check_topic_name(name: str) -> str:
    """Return `name` if it is safe as one path component.

    Raises:
        FormatError: empty, ".", "..", with a slash, a backslash or a control character, more than
            255 bytes of UTF-8, or no Unicode text.
    """
    try:
        data = name.encode()
    except UnicodeEncodeError:
        data = b""
    if not is_safe_topic(data):
        raise FormatError(f"not usable as the name of a topic's directory: {name[:300]!r}")
    return name


@lru_cache(maxsize=4096)
def is_safe_topic(data: bytes) -> bool:
    """Return whether a topic's bytes are UTF-8 that is safe as one path component.

    Bytes below 0x20, 0x7F, `/` and `\\`, the names `.` and `..`, and more than 255 bytes are not.
    """
    if not data or len(data) > MAX_NAME_BYTES or data in (b".", b"..") or _UNSAFE.search(data):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
