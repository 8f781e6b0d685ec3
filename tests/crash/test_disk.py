"""The recorded disk behaves as a real one, and what it recorded makes the same tree again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mqlake.errors import StoreError
from mqlake.storage.durable import create_file, make_directories, replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import OwnedDirectory
from tests.crash.disk import RecordedDisk
from tests.crash.images import Limits, PowerCuts
from tests.crash.pending import PendingDisk
from tests.crash.simulator import EMPTY
from tests.crash.trace import MakeFile, Resize, Sync, SyncNames, Write
from tests.hostile.disk import sandbox, tree

Operation = Callable[[OwnedDirectory], object]

PATHS = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/d", "d/d/a", "missing/a"])
SIZES = st.integers(0, 3000)


def _write(path: str, offset: int, data: bytes) -> Operation:
    def run(directory: OwnedDirectory) -> None:
        file = directory.open_writable(path)
        file.write(offset, data)
        file.sync()
        file.close()

    return run


def _append(path: str, data: bytes) -> Operation:
    def run(directory: OwnedDirectory) -> object:
        file = directory.open_writable(path)
        before = bytes(file.view())
        file.append(data)
        answer = before, file.size, file.read(0, file.size), bytes(file.view())
        file.close()
        return answer

    return run


def _change(path: str, offset: int, data: bytes) -> Operation:
    def run(directory: OwnedDirectory) -> bytes:
        file = directory.open_writable(path)
        file.reserve(offset, len(data))
        view = file.mapping()
        view[offset : offset + len(data)] = data
        file.written(offset, len(data))
        file.close()
        return bytes(view)

    return run


def _read(path: str, offset: int, length: int) -> Operation:
    def run(directory: OwnedDirectory) -> object:
        file = directory.open(path)
        buffer = bytearray(length)
        done = file.read_into(buffer, offset)
        answer = file.size, file.read(offset, length), done, bytes(buffer), bytes(file.view())
        file.close()
        return answer

    return run


def _look(path: str) -> Operation:
    return lambda directory: (
        directory.exists(path),
        directory.is_directory(path),
        directory.names(path),
        directory.names(""),
    )


def _cut(path: str, size: int, data: bytes) -> Operation:
    def run(directory: OwnedDirectory) -> object:
        file = directory.open_writable(path)
        file.truncate(size)
        file.append(data)
        answer = file.size, file.read(0, 3000), bytes(file.view())
        file.close()
        return answer

    return run


OPERATIONS = st.one_of(
    st.builds(_look, PATHS),
    st.builds(_write, PATHS, st.integers(0, 1500), st.binary(max_size=1500)),
    st.builds(_append, PATHS, st.binary(max_size=1500)),
    st.builds(_change, PATHS, st.integers(0, 1500), st.binary(max_size=1500)),
    st.builds(_read, PATHS, SIZES, SIZES),
    st.builds(lambda path, size: lambda to: to.create(path, size).close(), PATHS, SIZES),
    st.builds(lambda path, size: lambda to: to.truncate(path, size), PATHS, SIZES),
    st.builds(_cut, PATHS, SIZES, st.binary(max_size=600)),
    st.builds(lambda path: lambda to: to.make_directory(path), PATHS),
    st.builds(lambda path: lambda to: to.remove(path), PATHS),
    st.builds(lambda path: lambda to: to.remove_directory(path), PATHS),
    st.builds(lambda path: lambda to: to.sync_directory(path), PATHS),
    st.builds(lambda path: lambda to: to.is_directory(path) or to.size(path), PATHS),
    st.builds(lambda old, new: lambda to: to.replace(old, new), PATHS, PATHS),
    st.builds(lambda path: lambda to: make_directories(to, path), PATHS),
    st.builds(lambda path, size: lambda to: create_file(to, path, size).close(), PATHS, SIZES),
    st.builds(
        lambda path, data: lambda to: replace_file(to, path, data, backup=f"{path}.bak"),
        PATHS,
        st.binary(max_size=600),
    ),
)


def _answer(directory: OwnedDirectory, operation: Operation) -> object:
    try:
        return operation(directory)
    except StoreError:
        return "refused"


@settings(max_examples=150)
@example([lambda to: to.create("a", 0).close(), _change("a", 1, b"")])
@given(st.lists(OPERATIONS, max_size=25))
def test_like_a_real_directory(operations: list[Operation]) -> None:
    recorded = RecordedDisk()
    with sandbox() as root:
        local = LocalOwnedDirectory(root)
        for operation in operations:
            assert str(_answer(recorded, operation)) == str(_answer(local, operation))
        content = recorded.snapshot()
        folders = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir())
        assert content.files() == tree(root)
        assert content.directories() == folders
    replayed = PendingDisk(EMPTY)
    for step in recorded.trace:
        replayed.apply(step)
    assert replayed.now().files() == content.files()
    assert replayed.now().directories() == content.directories()


@settings(max_examples=80)
@given(st.lists(OPERATIONS, max_size=25), st.randoms(use_true_random=False))
def test_each_image_is_made_of_what_was_there(operations: list[Operation], dice: object) -> None:
    """Sizes, sectors and names of a power cut were those of some moment."""
    recorded = RecordedDisk()
    for operation in operations:
        _answer(recorded, operation)
    disk = PendingDisk(EMPTY)
    sizes: dict[int, set[int]] = {}
    sectors: dict[int, set[bytes]] = {}
    for step in recorded.trace:
        disk.apply(step)
        for node, file in disk.files.items():
            sizes.setdefault(node, {0}).add(len(file.now))
            found = sectors.setdefault(node, {bytes(512)})
            for values in file.sectors.values():
                found.update(values)
            found.update(file._sector(number) for number in range(-(-len(file.now) // 512)))
    for image in PowerCuts(disk).images(dice, Limits(exhaustive=16, single=4, samples=4)):
        for node, data in image.contents.items():
            assert len(data) in sizes[node]
            for at in range(0, len(data), 512):
                part = data[at : at + 512]
                assert any(sector.startswith(part) for sector in sectors[node])


def test_what_is_synced_is_certain() -> None:
    disk = RecordedDisk()
    make_directories(disk, "d")
    create_file(disk, "d/file", 2000).close()
    replace_file(disk, "config", b"one")
    replace_file(disk, "config", b"two", backup="config.bak")
    pending = PendingDisk(EMPTY)
    for step in disk.trace:
        pending.apply(step)
    assert PowerCuts(pending).combinations == 1
    disk.open_writable("d/file").write(100, b"x" * 1000)
    disk.remove("config.bak")
    for step in disk.trace[-2:]:
        pending.apply(step)
    assert PowerCuts(pending).combinations == 2**3 * 2


def test_a_failed_sync_stays_in_doubt() -> None:
    """Linux takes pages for clean whose writing failed: no later sync writes them."""
    pending = PendingDisk(EMPTY)
    start = [MakeFile(0, "file", 1), Resize(1, 1024), Sync(1), SyncNames(0)]
    for step in (*start, Write(1, 0, b"x", False), Sync(1, failed=True), Sync(1)):
        pending.apply(step)
    assert PowerCuts(pending).combinations == 2
    for step in (Write(1, 1, b"y", False), Sync(1)):
        pending.apply(step)
    assert PowerCuts(pending).combinations == 1


def test_changes_must_be_announced_and_have_room() -> None:
    disk = RecordedDisk()
    file = disk.create("file", 100)
    file.mapping()[3] = 1
    with pytest.raises(AssertionError, match="without room"):
        file.written(3, 1)
    with pytest.raises(AssertionError, match="was not called"):
        file.sync()
    view = file.view()
    with pytest.raises(BufferError):
        disk.truncate("file", 10)
    assert len(view) == 100


def test_one_owner(tmp_path: Path) -> None:
    for directory in (RecordedDisk(), LocalOwnedDirectory(tmp_path)):
        with (
            directory.own("lock"),
            pytest.raises(StoreError, match="owns this store"),
            directory.own("lock"),
        ):
            pass
        with directory.own("lock"):
            assert directory.exists("lock")
