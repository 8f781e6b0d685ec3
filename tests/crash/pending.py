"""What of a disk is certain, and what a power cut may leave otherwise.

Between two syncs each sector of a file, its size and each name in a directory may be found as it
was at any moment since the last sync, each independently of the others: file systems and disks
write in the order they like. Only a sector is never a mixture, unless it was changed through a
mapping at the very moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.crash.snapshot import Snapshot
from tests.crash.trace import (
    ROOT,
    MakeFile,
    MakeFolder,
    Remove,
    Rename,
    Resize,
    Step,
    Sync,
    SyncNames,
    Write,
)

SECTOR = 512
PAGE_SECTORS = 8
WORD = 8
"""Bytes that memory takes at once."""


@dataclass
class PendingFile:
    """A file's bytes now, and the values that its size and sectors may have after a power cut.

    Each list of values starts with the one that is certain, and ends with the one of now.
    """

    now: bytearray = field(default_factory=bytearray)
    sizes: list[int] = field(default_factory=lambda: [0])
    sectors: dict[int, list[bytes]] = field(default_factory=dict)
    doubtful: set[int] = field(default_factory=set)
    """Sectors that a failed sync had: no later sync makes them certain, unless written again."""
    _bytes: bytes | None = None

    @classmethod
    def certain(cls, data: bytes) -> PendingFile:
        return cls(bytearray(data), [len(data)], _bytes=data)

    def clone(self) -> PendingFile:
        sectors = {number: values[:] for number, values in self.sectors.items()}
        return PendingFile(self.now[:], self.sizes[:], sectors, set(self.doubtful), self._bytes)

    def whole(self) -> bytes:
        """Return the file as it is now."""
        if self._bytes is None:
            self._bytes = bytes(self.now)
        return self._bytes

    def write(self, offset: int, data: bytes, *, is_mapped: bool) -> None:
        end, self._bytes = offset + len(data), None
        if end > len(self.now):
            self.resize(end)
        self._keep(offset, end)
        if is_mapped:
            self._note_halves(offset, data)
        self.now[offset:end] = data
        self._note(offset, end)

    def _note_halves(self, offset: int, data: bytes) -> None:
        """Note each sector as the system may have written it in the middle of the change."""
        end = offset + len(data)
        for number in _sectors(offset, end):
            start = max(offset, number * SECTOR)
            stop = min(end, (number + 1) * SECTOR)
            if stop - start < 2 * WORD:
                continue
            half = start + (stop - start) // 2
            self.now[start:half] = data[start - offset : half - offset]
            self._note(start, half)

    def resize(self, size: int) -> None:
        old, self._bytes = len(self.now), None
        start, end = min(old, size), max(old, size)
        # Bytes that go are zeros if they come back; bytes that come were zeros already.
        if size < old:
            self._keep(start, end)
            del self.now[size:]
            self._note(start, end)
        else:
            self.now.extend(bytes(size - old))
        if self.sizes[-1] != size:
            self.sizes.append(size)

    def _keep(self, start: int, end: int) -> None:
        """Note what the sectors are before their first change since the last sync."""
        for number in _sectors(start, end):
            if number not in self.sectors:
                self.sectors[number] = [self._sector(number)]

    def _note(self, start: int, end: int) -> None:
        for number in _sectors(start, end):
            values, value = self.sectors[number], self._sector(number)
            if values[-1] != value:
                values.append(value)
                self.doubtful.discard(number)

    def _sector(self, number: int) -> bytes:
        return bytes(self.now[number * SECTOR : (number + 1) * SECTOR]).ljust(SECTOR, b"\0")

    def sync(self, *, failed: bool) -> None:
        if failed:
            self.doubtful.update(self.changed())
            return
        self.sizes = self.sizes[-1:]
        self.sectors = {number: self.sectors[number] for number in self.doubtful}

    def changed(self) -> Iterator[int]:
        """Yield the sectors that have more than one value."""
        return (number for number, values in self.sectors.items() if len(values) > 1)

    @property
    def is_certain(self) -> bool:
        return len(self.sizes) == 1 and not any(self.changed())

    def build(self, size: int, chosen: Mapping[int, bytes]) -> bytes:
        """Return the file of a size, with these sectors, and the certain ones elsewhere."""
        data = bytearray(self.now.ljust(size, b"\0")[:size])
        for number, values in self.sectors.items():
            start = number * SECTOR
            if start < size:
                value = chosen.get(number, values[0])
                data[start : start + SECTOR] = value[: size - start]
        return bytes(data)


@dataclass
class PendingFolder:
    """A directory's names now, and the nodes that each may be found to name after a power cut."""

    now: dict[str, int] = field(default_factory=dict)
    names: dict[str, list[int | None]] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    """Names that a failed sync had."""

    def clone(self) -> PendingFolder:
        names = {name: values[:] for name, values in self.names.items()}
        return PendingFolder(dict(self.now), names, set(self.doubtful))

    def set(self, name: str, node: int | None) -> None:
        values = self.names.setdefault(name, [self.now.get(name)])
        if values[-1] != node:
            values.append(node)
            self.doubtful.discard(name)
        if node is None:
            self.now.pop(name, None)
        else:
            self.now[name] = node

    def sync(self, *, failed: bool) -> None:
        if failed:
            self.doubtful.update(self.changed())
        else:
            self.names = {name: self.names[name] for name in self.doubtful}

    def changed(self) -> Iterator[str]:
        """Yield the names that have more than one value."""
        return (name for name, values in self.names.items() if len(values) > 1)

    def build(self, chosen: Mapping[str, int | None]) -> dict[str, int]:
        """Return the names, these ones as chosen, and the certain ones elsewhere."""
        names: dict[str, int | None] = dict(self.now)
        for name, values in self.names.items():
            names[name] = chosen.get(name, values[0])
        return {name: node for name, node in names.items() if node is not None}


class PendingDisk:
    """A disk to which steps are done one after the other."""

    def __init__(self, content: Snapshot) -> None:
        self.files = {node: PendingFile.certain(data) for node, data in content.contents.items()}
        self.folders = {
            node: PendingFolder(dict(names)) for node, names in content.folders.items()
        } or {ROOT: PendingFolder()}

    def clone(self) -> PendingDisk:
        """Return a disk that goes its own way from here."""
        other = PendingDisk.__new__(PendingDisk)
        other.files = {node: file.clone() for node, file in self.files.items()}
        other.folders = {node: folder.clone() for node, folder in self.folders.items()}
        return other

    def apply(self, step: Step | None) -> None:
        """Do one step."""
        match step:
            case Write(node, offset, data, is_mapped):
                self.files[node].write(offset, data, is_mapped=is_mapped)
            case Sync(node, failed):
                self.files[node].sync(failed=failed)
            case SyncNames(folder, failed):
                self.folders[folder].sync(failed=failed)
            case Resize(node, size):
                self.files[node].resize(size)
            case MakeFile(folder, name, node):
                self.files[node] = PendingFile()
                self.folders[folder].set(name, node)
            case MakeFolder(folder, name, node):
                self.folders[node] = PendingFolder()
                self.folders[folder].set(name, node)
            case Remove(folder, name):
                self.folders[folder].set(name, None)
            case Rename(folder, name, new_folder, new_name):
                node = self.folders[folder].now[name]
                self.folders[new_folder].set(new_name, node)
                self.folders[folder].set(name, None)
            case _:
                pass

    def now(self) -> Snapshot:
        """Return the disk as every process of the machine sees it."""
        return Snapshot(
            {node: dict(folder.now) for node, folder in self.folders.items()},
            {node: file.whole() for node, file in self.files.items()},
        )


def _sectors(start: int, end: int) -> range:
    return range(start // SECTOR, -(-end // SECTOR)) if start < end else range(0)
