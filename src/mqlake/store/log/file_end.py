"""Find where the data of a preallocated file end."""

from __future__ import annotations

from mqlake.storage.protocol import ReadableFile

_CHUNK = 1 << 16


def end_of_data(file: ReadableFile, start: int, end: int) -> int:
    """Return the position after the last byte of [start, end) that is not zero, otherwise `start`.

    Holes are not read.
    """
    for data, hole in reversed(list(file.data_ranges(start, end))):
        while hole > data:
            chunk = max(data, hole - _CHUNK)
            written = file.read(chunk, hole - chunk).rstrip(b"\0")
            if written:
                return chunk + len(written)
            hole = chunk
    return start
