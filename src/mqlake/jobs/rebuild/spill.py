"""Index keys between the scan and the index files, in a scratch file of one task's attempt.

A file is a row of windows; a window of n keys is three arrays in the machine's byte order:
n physical offsets (i8), n store timestamps (i8, milliseconds), n key hashes (i4).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

KEY_SIZE = 8 + 8 + 4

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]


class Spill(msgspec.Struct, frozen=True):
    """A finished scratch file, and how many keys each of its windows has."""

    path: str
    windows: list[int]


class WindowKeys(msgspec.Struct, frozen=True):
    """`take` keys of one window, after its first `skip`; `position` in bytes, `keys` in all."""

    path: str
    position: int
    keys: int
    skip: int
    take: int


class SpilledKeys(NamedTuple):
    """Some index keys in order: hashes, physical offsets (bytes), store times (milliseconds)."""

    hashes: Ints
    offsets: Longs
    timestamps: Longs


class SpillWriter:
    """Write windows of keys to a new file in `directory`, under a unique name."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / uuid.uuid4().hex
        self._file = self._path.open("xb")
        self._windows: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        self._file.close()
        if kind is not None:
            self._path.unlink(missing_ok=True)

    def write(self, keys: SpilledKeys) -> None:
        """Append one window."""
        if len(keys.hashes) == 0:
            return
        for column in (keys.offsets, keys.timestamps, keys.hashes):
            self._file.write(np.ascontiguousarray(column).data)
        self._windows.append(len(keys.hashes))

    def finish(self) -> Spill:
        """Return the file's description; nothing can be written after that."""
        self._file.close()
        return Spill(str(self._path), self._windows)


def divide(spills: Sequence[Spill], share: int) -> list[list[WindowKeys]]:
    """Divide the keys of all spills, in order, into shares of `share` keys; the last has fewer."""
    shares: list[list[WindowKeys]] = []
    room = 0
    for spill in spills:
        position = 0
        for keys in spill.windows:
            skip = 0
            while skip < keys:
                if room == 0:
                    shares.append([])
                    room = share
                take = min(room, keys - skip)
                shares[-1].append(WindowKeys(spill.path, position, keys, skip, take))
                skip, room = skip + take, room - take
            position += keys * KEY_SIZE
    return shares


def last_key(share: Sequence[WindowKeys]) -> WindowKeys:
    """Return the last key of a share that is not empty."""
    last = share[-1]
    return WindowKeys(last.path, last.position, last.keys, last.skip + last.take - 1, 1)


def read(pieces: Sequence[WindowKeys]) -> Iterator[SpilledKeys]:
    """Yield the keys of each piece."""
    for piece in pieces:
        descriptor = os.open(piece.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(descriptor, piece.keys * KEY_SIZE, piece.position)
        finally:
            os.close(descriptor)
        chosen = slice(piece.skip, piece.skip + piece.take)
        yield SpilledKeys(
            _column(data, np.int32, piece.keys, 16 * piece.keys)[chosen],
            _column(data, np.int64, piece.keys, 0)[chosen],
            _column(data, np.int64, piece.keys, 8 * piece.keys)[chosen],
        )


def _column(data: bytes, kind: type[Any], count: int, at: int) -> NDArray[Any]:
    return np.frombuffer(data, kind, count, at)
