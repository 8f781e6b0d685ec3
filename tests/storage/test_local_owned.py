"""Files that this process owns: by position, through the mapping, and what the disk refuses."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from mqlake.errors import DiskError, StoreError, SyncError
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.owner_lock import LOCK_NAME
from tests import half_full_disk


@pytest.fixture
def directory(tmp_path: Path) -> LocalOwnedDirectory:
    return LocalOwnedDirectory(tmp_path)


def test_position_and_mapping_are_the_same_bytes(directory: LocalOwnedDirectory) -> None:
    file = directory.create("a", 64)
    file.write(8, b"by position")
    mapping = file.mapping()
    assert mapping[8:19] == b"by position"
    file.reserve(32, 11)
    mapping[32:39] = b"through"
    file.written(32, 7)
    file.write(40, b"again")
    file.sync()
    assert file.read(32, 13) == b"through\0again"
    assert directory.open("a").read(32, 7) == b"through"
    assert file.view().readonly
    assert file.view()[40:45] == b"again"


def test_nothing_is_written_outside_of_the_file(directory: LocalOwnedDirectory) -> None:
    file = directory.create("a", 10)
    for offset in (-1, 8, 11):
        with pytest.raises(StoreError, match="a: cannot write 3 bytes"):
            file.write(offset, b"abc")
        with pytest.raises(StoreError, match="a: there is no room for 3 bytes"):
            file.reserve(offset, 3)
    assert file.read(0, 10) == bytes(10)


def test_a_write_that_the_system_cuts_short_goes_on(
    directory: LocalOwnedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = directory.create("a", 10)
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda to, data, at: whole(to, data[:3], at))
    file.write(1, b"12345678")
    assert file.read(0, 10) == b"\x0012345678\0"


def test_a_full_disk_is_an_error_before_the_mapping_is_touched(
    directory: LocalOwnedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = directory.create("a", 64 << 20)
    assert (directory.root / "a").stat().st_blocks == 0

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DiskError, match=r"a: No space left on device; free some space") as refused:
        file.reserve(40 << 20, 1)
    assert refused.value.errno == errno.ENOSPC


def test_room_is_reserved_once(
    directory: LocalOwnedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = directory.create("a", 40 << 20)
    taken: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fallocate", lambda _, at, size: taken.append((at, size)))
    for start, length in [
        (0, 1),
        (5, 100),
        ((16 << 20) - 1, 2),
        ((32 << 20), 0),
        ((40 << 20) - 1, 1),
    ]:
        file.reserve(start, length)
    assert taken == [(0, 16 << 20), (16 << 20, 16 << 20), (32 << 20, 8 << 20)]


def test_a_sync_that_failed_once_has_failed_for_good(
    directory: LocalOwnedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = directory.create("a", 10)
    whole = os.fdatasync

    def broken(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", broken)
    with pytest.raises(DiskError, match="a: Input/output error"):
        file.sync()
    monkeypatch.setattr(os, "fdatasync", whole)
    with pytest.raises(DiskError, match="a: Input/output error") as again:
        file.sync()
    assert again.value.errno == errno.EIO


def test_names_that_failed_to_be_synced_once_have_failed_for_good(
    directory: LocalOwnedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.make_directory("d")
    whole = os.fsync

    def broken(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(DiskError, match="d: Input/output error"):
        directory.sync_directory("d")
    monkeypatch.setattr(os, "fsync", whole)
    directory.make_directory("d/new")
    with pytest.raises(DiskError, match="d: Input/output error") as again:
        directory.sync_directory("d")
    assert again.value.errno == errno.EIO
    directory.sync_directory("")


def test_a_directory_that_could_not_be_opened_may_be_synced_later(
    directory: LocalOwnedDirectory,
) -> None:
    with pytest.raises(DiskError, match="d: "):
        directory.sync_directory("d")
    directory.make_directory("d")
    directory.sync_directory("d")


def test_names_come_and_go(directory: LocalOwnedDirectory) -> None:
    directory.make_directory("d")
    directory.make_directory("d")
    directory.create("d/a", 4).write(0, b"1234")
    directory.truncate("d/a", 2)
    directory.replace("d/a", "d/b")
    directory.sync_directory("d")
    assert directory.names("d") == ["b"]
    assert directory.open("d/b").read(0, 9) == b"12"
    with pytest.raises(DiskError, match="d: "):
        directory.remove_directory("d")
    opened = directory.open_writable("d/b")
    for _ in range(2):
        directory.remove("d/b")
        directory.remove_directory("d")
    assert directory.names("") == []
    assert opened.read(0, 2) == b"12"


def test_creating_empties_what_was_there(directory: LocalOwnedDirectory) -> None:
    directory.create("a", 4).write(0, b"1234")
    assert directory.create("a", 3).read(0, 3) == bytes(3)
    assert directory.modified("a") > 1_600_000_000_000


@pytest.mark.parametrize("path", ["../a", "/a", "d/../../a"])
def test_no_path_leaves_the_tree(directory: LocalOwnedDirectory, path: str) -> None:
    for change in (directory.remove, directory.open_writable, directory.make_directory):
        with pytest.raises(StoreError):
            change(path)
    with pytest.raises(StoreError):
        directory.create(path, 1)


def test_what_is_missing_is_one_line(directory: LocalOwnedDirectory) -> None:
    with pytest.raises(DiskError, match=r"/none: No such file or directory$"):
        directory.open_writable("none")
    with pytest.raises(DiskError, match=r"/no/file: No such file or directory$"):
        directory.create("no/file", 1)


def test_the_disk_has_room(directory: LocalOwnedDirectory) -> None:
    with half_full_disk.real():
        usage = directory.usage()
    assert 0 < usage.free < usage.total


def test_one_owner_at_a_time(directory: LocalOwnedDirectory) -> None:
    refused = pytest.raises(StoreError, match="owns this store")
    with directory.own(LOCK_NAME), refused, directory.own(LOCK_NAME):
        pass
    with directory.own(LOCK_NAME):
        assert directory.exists(LOCK_NAME)


@pytest.mark.parametrize("how", ["file", "directory", "moved", "replaced"])
def test_a_file_that_somebody_else_removes_can_no_longer_be_synced(
    how: str, directory: LocalOwnedDirectory
) -> None:
    directory.make_directory("d")
    file, path = directory.create("d/a", 10), directory.root / "d"
    file.write(0, b"1")
    file.sync()
    if how == "file":
        (path / "a").unlink()
    elif how == "directory":
        shutil.rmtree(path)
    elif how == "moved":
        path.rename(directory.root / "e")
    else:
        (path / "b").write_bytes(bytes(10))
        (path / "b").replace(path / "a")
    file.write(0, b"2")
    word = "replaced" if how == "replaced" else "removed"
    for look in (file.check_linked, file.sync, file.sync):
        with pytest.raises(SyncError, match=f"d/a: the file was {word} while it was in use"):
            look()
    assert file.read(0, 1) == b"2"


def test_a_file_that_another_process_truncates_is_noticed(directory: LocalOwnedDirectory) -> None:
    file = directory.create("a", 10)
    os.truncate(directory.root / "a", 4)
    file.write(6, b"1")
    for look in (file.check_linked, file.sync, file.sync):
        with pytest.raises(SyncError, match="a: the file was truncated while it was in use"):
            look()


def test_a_file_that_is_truncated_by_its_owner_can_be_synced(
    directory: LocalOwnedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, ftruncate = directory.create("a", 10), os.ftruncate

    def synced_meanwhile(descriptor: int, size: int) -> None:
        ftruncate(descriptor, size)
        file.sync()

    monkeypatch.setattr(os, "ftruncate", synced_meanwhile)
    file.truncate(4)
    file.truncate(8)

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "ftruncate", refuse)
    with pytest.raises(DiskError):
        file.truncate(2)
    assert file.size == 8
    file.sync()


def test_what_this_directory_removes_or_replaces_can_be_synced(
    directory: LocalOwnedDirectory,
) -> None:
    removed, replaced, other = (directory.create(name, 10) for name in "abc")
    again = directory.open_writable("a")
    directory.remove("a")
    directory.replace("c", "b")
    for file in (removed, again, replaced, other):
        file.sync()
    anew = directory.create("a", 10)
    removed.sync()
    (directory.root / "a").unlink()
    with pytest.raises(SyncError):
        anew.sync()


def test_a_removal_that_fails_changes_nothing(
    directory: LocalOwnedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = directory.create("a", 10)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(DiskError, match="not permitted"):
        directory.remove("a")
    monkeypatch.undo()
    file.sync()
    (directory.root / "a").unlink()
    with pytest.raises(SyncError):
        file.sync()


def test_a_file_that_cannot_have_its_size_is_not_left_behind(
    directory: LocalOwnedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "ftruncate", full)
    with pytest.raises(DiskError, match="No space left"):
        directory.create("a", 10)
    assert directory.names("") == []


def test_only_a_failed_sync_is_a_sync_error(
    directory: LocalOwnedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.open

    def none_left(path: object, flags: int, *rest: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "open", none_left)
    for act in (lambda: directory.sync_directory(""), lambda: directory.open("a")):
        with pytest.raises(DiskError, match="Too many open files") as refused:
            act()
        assert refused.value.errno == errno.EMFILE
        assert not isinstance(refused.value, SyncError)
    monkeypatch.setattr(os, "open", whole)
    directory.sync_directory("")


def test_a_descriptor_is_closed_once(
    directory: LocalOwnedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, whole, closed = directory.create("a", 10), os.close, list[int]()
    ours = file._descriptor

    def close(descriptor: int) -> None:
        whole(descriptor)
        # What earlier tests left open may be collected, and closed, at any time.
        if descriptor == ours:
            closed.append(descriptor)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "close", close)
    file.close()
    file.close()
    monkeypatch.undo()
    assert len(closed) == 1


def test_a_file_is_written_without_being_kept_open(
    directory: LocalOwnedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.create("a", 10).close()
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda to, data, at: whole(to, data[:2], at))
    assert directory.write_at("a", 10, 1, b"12345")
    assert not directory.write_at("a", 11, 1, b"xyz")
    assert directory.open("a").read(0, 10) == b"\x0012345\0\0\0\0"
    with pytest.raises(DiskError, match="b: No such file") as raised:
        directory.write_at("b", 10, 1, b"12345")
    assert raised.value.errno == errno.ENOENT
    with pytest.raises(StoreError, match="not a path inside"):
        directory.write_at("../a", 10, 1, b"12345")
