"""The view of a file in which one record can be judged, whichever machine has the file."""

from __future__ import annotations

from mqlake.formats import record
from mqlake.storage.protocol import ReadableFile
from mqlake.storage.remote.remote_file import RemoteFile

_FRAME = record.MAGIC_AT + 4


def record_view(file: ReadableFile, at: int, end: int) -> memoryview:
    """Return the file's view; if a record starts at a position, all of its bytes are there.

    Args:
        end: the position that the record ends at or before.
    """
    if not isinstance(file, RemoteFile):
        return file.view()
    view = file.sparse_view()
    if not 0 <= at < file.size:
        return view
    file.load(at, at + record.FRAME_SIZE)
    size = int.from_bytes(view[at : at + 4], "big")
    magic = int.from_bytes(view[at + record.MAGIC_AT : at + _FRAME], "big")
    if magic in (record.V1_MAGIC, record.V2_MAGIC) and size >= record.MIN_SIZE:
        file.load(at, min(at + size, end))
    return view
