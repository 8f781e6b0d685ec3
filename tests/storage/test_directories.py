"""All kinds of directory answer alike; what only some have is tested below."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from mqlake.errors import StoreError
from mqlake.storage.local import LocalDirectory
from mqlake.storage.memory import MemoryDirectory
from mqlake.storage.protocol import Directory
from mqlake.storage.remote.arrow_fs import ArrowDirectory, open_url

FILES = {"a/one": b"0123456789", "a/b/two": b"", "top": b"x" * 5000}


@pytest.fixture(params=["local", "memory", "arrow"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Directory:
    if request.param == "memory":
        return MemoryDirectory(FILES)
    for path, data in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    if request.param == "arrow":
        return ArrowDirectory(SubTreeFileSystem(str(tmp_path), LocalFileSystem()), "")
    return LocalDirectory(tmp_path)


def test_names_and_kinds_of_entries(directory: Directory) -> None:
    assert directory.names("") == ["a", "top"]
    assert directory.names("a") == ["b", "one"]
    assert directory.names("missing") == []
    assert directory.names("top") == []
    assert directory.is_directory("a/b")
    assert not directory.is_directory("top")
    assert directory.exists("a/one")
    assert not directory.exists("a/three")
    assert directory.size("a/one") == 10


def test_reads_stop_at_the_end(directory: Directory) -> None:
    file = directory.open("a/one")
    assert file.size == 10
    assert file.read(2, 3) == b"234"
    assert file.read(8, 100) == b"89"
    assert file.read(10, 1) == b""
    assert file.read(1 << 40, 1) == b""
    assert file.read(2, -1) == b""
    buffer = bytearray(4)
    assert file.read_into(buffer, 8) == 2
    assert buffer == b"89\0\0"
    assert bytes(file.view()) == FILES["a/one"]
    assert list(file.data_ranges(3, 1 << 40)) == [(3, 10)]
    assert list(file.data_ranges(11, 12)) == []
    with pytest.raises(StoreError, match="position -1"):
        file.read(-1, 1)
    file.close()


def test_views_are_read_only_and_outlive_the_file(directory: Directory) -> None:
    file = directory.open("top")
    view = file.view()
    file.close()
    file.close()
    assert view.readonly
    assert bytes(view[-2:]) == b"xx"


def test_an_empty_file_is_read_as_no_bytes(directory: Directory) -> None:
    file = directory.open("a/b/two")
    assert file.size == len(file.view()) == 0
    assert file.read(0, 10) == b""
    file.close()


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a\0b"])
def test_paths_stay_inside(directory: Directory, path: str) -> None:
    for ask in (directory.names, directory.exists, directory.size, directory.open):
        with pytest.raises(StoreError, match="not a path inside"):
            ask(path)


def test_missing_file_is_one_line(directory: Directory) -> None:
    for ask in (directory.size, directory.open):
        with pytest.raises(StoreError, match=r"a/three.*(o such file|does not exist)") as caught:
            ask("a/three")
        assert "\n" not in str(caught.value)


def test_holes_are_left_out(tmp_path: Path) -> None:
    hole = 4 << 20
    with (tmp_path / "sparse").open("wb") as out:
        out.write(b"head")
        out.seek(hole)
        out.write(b"tail")
        out.truncate(2 * hole)
    file = LocalDirectory(tmp_path).open("sparse")
    ranges = list(file.data_ranges(0, file.size))
    data = bytes(file.view())
    assert ranges[0][0] == 0
    assert sum(end - start for start, end in ranges) < hole
    at = 0
    for start, end in [*ranges, (file.size, file.size)]:
        assert not any(data[at:start])
        at = end
    assert list(file.data_ranges(hole + 1, hole + 3)) == [(hole + 1, hole + 3)]
    file.close()


def test_deleted_file_stays_readable(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    file = LocalDirectory(tmp_path).open("file")
    (tmp_path / "file").unlink()
    assert file.read(0, 3) == bytes(file.view()) == b"abc"
    file.close()


def test_growth_after_opening_is_not_seen(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    file = LocalDirectory(tmp_path).open("file")
    with (tmp_path / "file").open("ab") as out:
        out.write(b"def")
    assert file.size == 3
    assert file.read(0, 10) == bytes(file.view()) == b"abc"
    file.close()


def test_only_regular_files_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ""):
        with pytest.raises(StoreError, match="not a regular file"):
            LocalDirectory(tmp_path).open(name)


def test_a_file_behind_a_url_is_brought_here_once(tmp_path: Path) -> None:
    zeros = bytes(20 << 20)
    (tmp_path / "file").write_bytes(b"head" + zeros + b"tail")
    directory = open_url(f"file://{tmp_path}")
    file = directory.open("file")
    view = file.view()
    (tmp_path / "file").write_bytes(b"other")
    assert bytes(view) == b"head" + zeros + b"tail"
    assert file.view() is view
    file.close()
    assert bytes(view[-4:]) == b"tail"
    assert directory.describe("file") == f"file://{tmp_path}/file"
    assert directory.lock_holder("lock") is None


def test_what_a_url_cannot_open_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"^gopher://host/x: \S.*$"):
        open_url("gopher://host/x")
    with pytest.raises(StoreError, match="not a regular file"):
        open_url(f"file://{tmp_path}").open("")
