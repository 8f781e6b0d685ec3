"""A disk in memory that writes down what is done to it."""

from __future__ import annotations

import errno
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from mqlake.errors import DiskError, StoreError, SyncError
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import Buffer, DiskUsage
from mqlake.storage.relative_path import check_path
from tests.crash.clock import ManualClock
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


class FileNode:
    """A file's bytes as every process of the machine sees them."""

    def __init__(self, number: int, data: bytearray, modified: int) -> None:
        self.number, self.data, self.modified = number, data, modified
        self.announced: bytearray | None = None
        """The bytes without the changes of the mapping that were not announced."""
        self.reserved: list[tuple[int, int]] = []

    def check_announced(self) -> None:
        assert self.announced is None or self.announced == self.data, (
            f"file {self.number}: its mapping was changed and `written` was not called"
        )


class FolderNode:
    """A directory's names."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.names: dict[str, FileNode | FolderNode] = {}


class RecordedFile:
    """A file of a `RecordedDisk`, open for reading or for writing; `WritableFile`."""

    is_watched = True

    def __init__(self, disk: RecordedDisk, node: FileNode, path: str, *, writable: bool) -> None:
        self._disk, self._node, self._path, self._writable = disk, node, path, writable
        self._size = len(node.data)

    @property
    def size(self) -> int:
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        if offset < 0:
            raise StoreError(f"cannot read at position {offset}")
        return bytes(self._node.data[offset : min(self._size, offset + max(0, length))])

    def read_into(self, buffer: Buffer, offset: int) -> int:
        data = self.read(offset, len(buffer))
        memoryview(buffer).cast("B")[: len(data)] = data
        return len(data)

    def view(self) -> memoryview:
        return memoryview(self._node.data)[: self._size].toreadonly()

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        start, end = max(0, start), min(end, self._size)
        if start < end:
            yield start, end

    def close(self) -> None:
        self._node.check_announced()

    def write(self, offset: int, data: bytes | Buffer) -> None:
        assert self._writable
        source = bytes(data)
        if offset < 0 or offset + len(source) > self._size:
            raise StoreError(f"cannot write {len(source)} bytes at position {offset}")
        self._change(offset, source, is_mapped=False)

    def append(self, data: bytes | Buffer) -> None:
        assert self._writable
        source, node = bytes(data), self._node
        if not source:
            return
        # A bytearray that somebody has a view of refuses to grow, and a real mapping would not.
        if (missing := self._size + len(source) - len(node.data)) > 0:
            node.data = node.data + bytes(missing)
            node.announced = None
        self._change(self._size, source, is_mapped=False)
        self._size += len(source)

    def truncate(self, size: int) -> None:
        assert self._writable
        self._disk.resize(self._node, size)
        self._size = size

    def _change(self, offset: int, data: bytes, *, is_mapped: bool) -> None:
        if not data:
            return  # It does not even make a file longer that ends before.
        node, end = self._node, offset + len(data)
        if not is_mapped:
            node.data[offset:end] = data
        if node.announced is not None:
            node.announced[offset:end] = data
        node.modified = self._disk.clock.milliseconds()
        self._disk.record(Write(node.number, offset, data, is_mapped))

    def mapping(self) -> memoryview:
        assert self._writable
        if self._node.announced is None:
            self._node.announced = bytearray(self._node.data)
        return memoryview(self._node.data)

    def reserve(self, offset: int, length: int) -> None:
        if length <= 0:
            return
        if offset < 0 or offset + length > self._size:
            raise StoreError(f"no room for {length} bytes at position {offset}")
        merged = [
            part
            for part in self._node.reserved
            if not offset <= part[0] <= part[1] <= offset + length
        ]
        self._node.reserved = [*merged, (offset, offset + length)]

    def written(self, offset: int, length: int) -> None:
        assert self._is_reserved(offset, offset + length), (
            f"bytes [{offset}, {offset + length}) were changed without room for them"
        )
        data = bytes(self._node.data[offset : offset + length])
        self._change(offset, data, is_mapped=True)

    def _is_reserved(self, start: int, end: int) -> bool:
        for part_start, part_end in sorted(self._node.reserved):
            if part_start <= start < part_end:
                start = part_end
        return start >= end

    def sync(self) -> None:
        self._node.check_announced()
        self._disk.record(Sync(self._node.number))
        self.check_linked()

    def check_linked(self) -> None:
        if not self._disk.leads_to(self._path, self._node):
            where = self._disk.describe(self._path)
            raise SyncError(f"{where}: the file was removed while it was in use", errno.ENOENT)


class RecordedDisk:
    """A directory tree in memory; `OwnedDirectory`.

    Attributes:
        trace: what was done to it, in order.
        clock: gives files their time.
        total, others: bytes of the disk, and of it what others than this tree use.
    """

    def __init__(self, content: Snapshot | None = None, clock: Clock | None = None) -> None:
        self.trace: list[Step] = []
        self.clock = clock or ManualClock()
        self.total, self.others = 1 << 40, 0
        self._owned: set[str] = set()
        self._given_up: set[int] = set()
        content = content or Snapshot({ROOT: {}}, {})
        self._next = max([*content.folders, *content.contents]) + 1
        self._root = FolderNode(ROOT)
        self._fill(self._root, content, {})

    def _fill(self, folder: FolderNode, content: Snapshot, files: dict[int, FileNode]) -> None:
        for name, number in content.folders[folder.number].items():
            if number in content.folders:
                below = folder.names[name] = FolderNode(number)
                self._fill(below, content, files)
            else:
                # After a power cut during a rename, a file may have both names.
                if number not in files:
                    data = bytearray(content.contents[number])
                    files[number] = FileNode(number, data, self.clock.milliseconds())
                folder.names[name] = files[number]

    def record(self, step: Step) -> None:
        """Add a step to the trace."""
        self.trace.append(step)

    def bystander(self) -> RecordedDisk:
        """Return the same tree for somebody who looks at it, and has no part in its trace."""
        other = RecordedDisk(None, self.clock)
        other._root = self._root
        return other

    def abandon(self) -> None:
        """End the process that had the tree: its locks are gone, its files stay as they are."""
        self._owned.clear()
        for _, node in self._walk(self._root, ""):
            # A copy: what the dead process still has a view of is no longer the file.
            node.data = bytearray(node.data)
            node.announced, node.reserved = None, []

    def snapshot(self) -> Snapshot:
        """Return the tree as it is."""
        folders: dict[int, dict[str, int]] = {}
        contents: dict[int, bytes] = {}

        def visit(folder: FolderNode) -> None:
            folders[folder.number] = {name: node.number for name, node in folder.names.items()}
            for node in folder.names.values():
                if isinstance(node, FolderNode):
                    visit(node)
                else:
                    contents[node.number] = bytes(node.data)

        visit(self._root)
        return Snapshot(folders, contents)

    def check_announced(self) -> None:
        """Assert that every change of a mapping was announced."""
        for _, node in self._walk(self._root, ""):
            node.check_announced()

    def _walk(self, folder: FolderNode, prefix: str) -> Iterator[tuple[str, FileNode]]:
        for name, node in folder.names.items():
            if isinstance(node, FolderNode):
                yield from self._walk(node, f"{prefix}{name}/")
            else:
                yield f"{prefix}{name}", node

    # Directory

    def describe(self, path: str = "") -> str:
        return f"disk:{path}"

    def names(self, path: str) -> list[str]:
        node = self._find(path)
        return sorted(node.names) if isinstance(node, FolderNode) else []

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), FolderNode)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def size(self, path: str) -> int:
        node = self._find(path)
        if node is None:
            raise _refused(path, errno.ENOENT, "No such file or directory")
        return len(node.data) if isinstance(node, FileNode) else 0

    def open(self, path: str) -> RecordedFile:
        return RecordedFile(self, self._file(path), path, writable=False)

    def lock_holder(self, path: str) -> int | None:
        return None

    # OwnedDirectory

    @contextmanager
    def own(self, name: str) -> Generator[None]:
        if name in self._owned:
            raise StoreError(f"{self.describe(name)}: process 1 owns this store")
        if not self.exists(name):
            self.create(name, 0)
        self._owned.add(name)
        try:
            yield
        finally:
            self._owned.discard(name)

    def create(self, path: str, size: int) -> RecordedFile:
        folder, name = self._place(path)
        node = folder.names.get(name)
        if isinstance(node, FolderNode):
            raise _refused(path, errno.EISDIR, "Is a directory")
        if node is None:
            node = FileNode(self._number(), bytearray(), self.clock.milliseconds())
            folder.names[name] = node
            self.record(MakeFile(folder.number, name, node.number))
        self.resize(node, 0)
        self.resize(node, size)
        return RecordedFile(self, node, path, writable=True)

    def open_writable(self, path: str) -> RecordedFile:
        return RecordedFile(self, self._file(path), path, writable=True)

    def write_at(self, path: str, size: int, offset: int, data: bytes | Buffer) -> bool:
        file = self.open_writable(path)
        try:
            if file.size != size:
                return False
            file.write(offset, data)
        finally:
            file.close()
        return True

    def truncate(self, path: str, size: int) -> None:
        self.resize(self._file(path), size)

    def resize(self, node: FileNode, size: int) -> None:
        """Give a file another size."""
        if size == len(node.data):
            return
        # A bytearray that somebody has a view of refuses to change its size, as it should.
        if size < len(node.data):
            del node.data[size:]
        else:
            node.data.extend(bytes(size - len(node.data)))
        node.announced, node.reserved = None, []
        node.modified = self.clock.milliseconds()
        self.record(Resize(node.number, size))

    def make_directory(self, path: str) -> None:
        folder, name = self._place(path)
        if isinstance(folder.names.get(name), FileNode):
            raise _refused(path, errno.EEXIST, "File exists")
        if name not in folder.names:
            folder.names[name] = FolderNode(self._number())
            self.record(MakeFolder(folder.number, name, folder.names[name].number))

    def replace(self, source: str, target: str) -> None:
        old_folder, old_name = self._place(source)
        new_folder, new_name = self._place(target)
        node = old_folder.names.get(old_name)
        if node is None:
            raise _refused(source, errno.ENOENT, "No such file or directory")
        there = new_folder.names.get(new_name)
        if there is node:
            return
        if target.startswith(f"{source}/"):
            raise _refused(target, errno.EINVAL, "Invalid argument")
        if isinstance(there, FolderNode) and (there.names or isinstance(node, FileNode)):
            raise _refused(target, errno.ENOTEMPTY, "Directory not empty")
        if isinstance(there, FileNode) and isinstance(node, FolderNode):
            raise _refused(target, errno.ENOTDIR, "Not a directory")
        self._given_up |= {node.number, *([there.number] if there else [])}
        del old_folder.names[old_name]
        new_folder.names[new_name] = node
        self.record(Rename(old_folder.number, old_name, new_folder.number, new_name))

    def remove(self, path: str) -> None:
        self._remove(path, FileNode, _refused(path, errno.EISDIR, "Is a directory"))

    def remove_directory(self, path: str) -> None:
        if self.names(path):
            raise _refused(path, errno.ENOTEMPTY, "Directory not empty")
        self._remove(path, FolderNode, _refused(path, errno.ENOTDIR, "Not a directory"))

    def _remove(self, path: str, kind: type, refusal: DiskError) -> None:
        node = self._find(path)
        if node is None:
            above = path.split("/")[:-1]
            if any(isinstance(self._find("/".join(above[:n])), FileNode) for n in range(1, 9)):
                raise _refused(path, errno.ENOTDIR, "Not a directory")
            return
        if not isinstance(node, kind):
            raise refusal
        folder, name = self._place(path)
        self._given_up.add(node.number)
        del folder.names[name]
        self.record(Remove(folder.number, name))

    def sync_directory(self, path: str) -> None:
        self.record(SyncNames(self._folder(path).number))

    def sync_together(self, paths: Sequence[str]) -> list[str]:
        return list(paths)

    def modified(self, path: str) -> int:
        return self._file(path).modified

    def usage(self) -> DiskUsage:
        used = sum(len(node.data) for _, node in self._walk(self._root, ""))
        return DiskUsage(self.total, max(0, self.total - self.others - used))

    def leads_to(self, path: str, node: FileNode) -> bool:
        """Say whether a path leads to a file, or no longer does because this tree's owner said so.

        What a `bystander` removes is removed by somebody else.
        """
        return node.number in self._given_up or self._find(path) is node

    @property
    def is_owned(self) -> bool:
        """Whether somebody holds a lock."""
        return bool(self._owned)

    # Paths

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _find(self, path: str) -> FileNode | FolderNode | None:
        node: FileNode | FolderNode | None = self._root
        for part in _parts(path):
            if not isinstance(node, FolderNode):
                return None
            node = node.names.get(part)
        return node

    def _file(self, path: str) -> FileNode:
        node = self._find(path)
        if isinstance(node, FileNode):
            return node
        reason = "not a regular file" if node else "No such file or directory"
        raise _refused(path, errno.EISDIR if node else errno.ENOENT, reason)

    def _folder(self, path: str) -> FolderNode:
        node = self._find(path)
        if isinstance(node, FolderNode):
            return node
        raise _refused(path, errno.ENOENT, "No such file or directory")

    def _place(self, path: str) -> tuple[FolderNode, str]:
        above, _, name = check_path(path).rpartition("/")
        return self._folder(above), name


@lru_cache(4096)
def _parts(path: str) -> tuple[str, ...]:
    return tuple(check_path(path).split("/")) if path else ()


def _refused(path: str, number: int, reason: str) -> DiskError:
    return DiskError(f"disk:{path}: {reason}", number)
