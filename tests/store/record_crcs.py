"""Look whether all records of a log state a CRC of themselves."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from mqlake.formats import record_crc
from mqlake.formats.record import Fault
from mqlake.storage.local import LocalDirectory
from mqlake.store.log.segments import open_log


def record_bytes(store: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the bytes of each record of a store, and those of its properties."""
    log = open_log(LocalDirectory(store))
    at = log.min_offset
    while True:
        fault, layout = log.check(at)
        place = log.place(at)
        if fault is Fault.BLANK and place:
            at = place.segment.end
        elif fault is Fault.GOOD and layout and place:
            data = bytes(place.view[place.at : place.at + layout.size])
            start = layout.properties_at - place.at
            yield data, data[start : start + layout.properties_length]
            at += layout.size
        else:
            log.close()
            return


def without_crc(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties without the record CRC, which depends on where and when it was stored."""
    return {name: value for name, value in properties.items() if name != record_crc.NAME}


def check_crcs(store: Path) -> int:
    """See that each record states its own CRC, and no other one; return how many records."""
    count = 0
    for data, properties in record_bytes(store):
        expected = zlib.crc32(data[: -record_crc.SIZE]) & record_crc.MASK
        assert record_crc.stated(properties) == expected, properties
        own = properties[: -record_crc.SIZE]
        assert record_crc.drop(own) == own
        count += 1
    return count
