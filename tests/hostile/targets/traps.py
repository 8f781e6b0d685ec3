"""Segments made to be slow: candidates for records inside of each other, each with a large body.

What counts is not time but bytes of bodies that are read to check a CRC.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from mqlake.dispatch import kernel
from mqlake.dispatch.answers import SEARCH_ALLOWANCE, SEARCH_ALLOWANCE_RATE, SearchEnd
from mqlake.dispatch.batch import Window
from mqlake.dispatch.reference import scan_records
from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.formats import record
from mqlake.formats.file_name import segment_name
from mqlake.storage.memory import MemoryDirectory, MemoryFile
from mqlake.store.reader import StoreReader
from tests.hostile.cases import Case, Target, require, same

_TAIL = record.encode(topic="T")[-4:]
_PASSES = 8
"""How often a reader may go through the log for one report."""


def nested(case: Case) -> None:
    """Scan and inspect a segment in which every few bytes a record starts that fails."""
    size = case.dice.choice((1 << 18, 1 << 20))
    data = trap(case.dice, size, good_after=case.dice.choice((1, 30, 1 << 30)))
    case.tell(f"a trap of {size} bytes")
    case.feed(size)
    bound = SEARCH_ALLOWANCE + (SEARCH_ALLOWANCE_RATE + 2) * size
    counting = _Counting()
    scan = SegmentScan(MemoryFile(data), 0, 0, size, exact=True, want=Want.LOCATE, kernel=counting)
    found = [offset for batch in scan for offset in batch.records["physical_offset"].tolist()]
    require(counting.spent <= bound, f"the compiled scan read {counting.spent} bytes of bodies")
    with _counted_crc() as read:
        plain = [offset for offset, _, _ in scan_records(MemoryFile(data), 0, 0, size, exact=True)]
    require(read[0] <= bound, f"the plain scan read {read[0]} bytes of bodies")
    same(found, plain, "records found")
    with _counted_crc() as read:
        files = {f"commitlog/{segment_name(0)}": data}
        StoreReader.open(MemoryDirectory(files)).inspect()
    require(read[0] <= _PASSES * bound, f"the reader read {read[0]} bytes of bodies")
    case.seen["records"] += len(found)


def trap(dice: random.Random, size: int, good_after: int) -> bytes:
    """Return records that reach to the segment's end and fail; a good one after so many of them."""
    data, at, count = bytearray(dice.randbytes(size)), 1, 0
    while at < size - 1000:
        count += 1
        is_good = count % (good_after + 1) == 0
        whole = record.encode(topic="T", physical_offset=at, body=b"good" if is_good else b"")
        end = len(whole) if is_good else size - at
        new = bytearray(whole if is_good else whole[: -len(_TAIL)])
        if not is_good:
            new[:4] = end.to_bytes(4, "big")
            new[-4:] = (end - len(whole)).to_bytes(4, "big")
        data[at : at + len(new)] = new
        at += len(new) + is_good  # a byte that is no record sends the scan searching
    data[-len(_TAIL) :] = _TAIL
    return bytes(data)


class _Counting(SimpleNamespace):
    """The compiled kernels, adding up what searches read in vain."""

    def __init__(self) -> None:
        compiled = kernel.load("compiled")
        super().__init__(spent=0, walk=compiled.walk, describe=compiled.describe)

    def search(self, window: Window, at: int, stop: int, allowance: int) -> SearchEnd:
        found = kernel.load("compiled").search(window, at, stop, allowance)
        self.spent += found.spent
        return found


@contextmanager
def _counted_crc() -> Iterator[list[int]]:
    """Add up the bytes of bodies whose CRC `formats.record` computes."""
    read = [0]

    def crc32(body: memoryview) -> int:
        read[0] += len(body)
        return zlib.crc32(body)

    record.zlib = SimpleNamespace(crc32=crc32)
    try:
        yield read
    finally:
        record.zlib = zlib


TARGETS = (
    Target(
        "traps",
        "Segments in which, every few bytes, an invalid record starts whose body extends to the "
        "end: the bytes that `SegmentScan`, the plain scan and `inspect` read for nothing grow "
        "with the segment, not with its square.",
        nested,
        0.0001,
    ),
)
