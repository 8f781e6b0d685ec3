"""CRC-32C, the checksum of record batches and producer snapshots.

Upstream: `org.apache.kafka.common.utils.Crc32C`.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

from mqlake.errors import MqlakeError


class _Library(Protocol):
    def value(self, chunk: bytes) -> int: ...

    def extend(self, crc: int, chunk: bytes) -> int: ...


@cache
def _library() -> _Library:
    try:
        import google_crc32c
    except ImportError:
        # No FormatError: the bytes are not to be taken for damaged.
        raise MqlakeError("CRC-32C needs a package: pip install 'mqlake[kafka]'") from None
    return google_crc32c


def crc32c(data: bytes) -> int:
    """Return the unsigned CRC-32C (Castagnoli) of some bytes."""
    return _library().value(data)


def extend(crc: int, data: bytes) -> int:
    """Return the checksum of what gave `crc` and then `data`."""
    return _library().extend(crc, data)
