"""A directory tree in memory, for tests and for bytes that came from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mqlake.errors import StoreError
from mqlake.storage.protocol import Buffer, ReadableFile
from mqlake.storage.relative_path import check_path


class MemoryFile:
    """Bytes as a file."""

    def __init__(self, data: bytes | bytearray) -> None:
        self._data = bytes(data)

    @property
    def size(self) -> int:
        return len(self._data)

    def read(self, offset: int, length: int) -> bytes:
        if offset < 0:
            raise StoreError(f"cannot read at position {offset}")
        return self._data[offset : offset + max(0, length)]

    def read_into(self, buffer: Buffer, offset: int) -> int:
        data = self.read(offset, len(buffer))
        memoryview(buffer).cast("B")[: len(data)] = data
        return len(data)

    def view(self) -> memoryview:
        return memoryview(self._data)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        start, end = max(0, start), min(end, self.size)
        if start < end:
            yield start, end

    def close(self) -> None:
        pass


class MemoryDirectory:
    """A tree given as path → bytes; the mapping may be changed between calls, as a disk may."""

    def __init__(
        self, files: Mapping[str, bytes | bytearray], lock_holder: int | None = None
    ) -> None:
        self._files = files
        self._lock_holder = lock_holder

    def describe(self, path: str = "") -> str:
        return f"memory:{path}"

    def names(self, path: str) -> list[str]:
        start = f"{check_path(path)}/" if path else ""
        return sorted(
            {file[len(start) :].split("/")[0] for file in self._files if file.startswith(start)}
        )

    def is_directory(self, path: str) -> bool:
        return not path or bool(self.names(path))

    def exists(self, path: str) -> bool:
        return check_path(path) in self._files or self.is_directory(path)

    def size(self, path: str) -> int:
        return len(self._bytes(path))

    def open(self, path: str) -> ReadableFile:
        return MemoryFile(self._bytes(path))

    def lock_holder(self, path: str) -> int | None:
        return self._lock_holder if check_path(path) in self._files else None

    def _bytes(self, path: str) -> bytes | bytearray:
        try:
            return self._files[check_path(path)]
        except KeyError:
            raise StoreError(f"{self.describe(path)}: the file does not exist") from None
