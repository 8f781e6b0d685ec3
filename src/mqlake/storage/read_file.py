"""Small files, read whole."""

from __future__ import annotations

from mqlake.storage.protocol import Directory


def read_file(directory: Directory, path: str, most: int | None = None) -> bytes | None:
    """Return what is in a file, at most its first `most` bytes; None if there is no file.

    Raises:
        StoreError: it cannot be read.
    """
    if not directory.exists(path):
        return None
    file = directory.open(path)
    try:
        return file.read(0, file.size if most is None else most)
    finally:
        file.close()
