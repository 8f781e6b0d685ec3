"""Objects appear whole or not at all, on file systems of both kinds."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import FSSpecHandler, LocalFileSystem, PyFileSystem

from mqlake.errors import StoreError
from mqlake.storage.object_target import ArrowTarget
from mqlake.storage.remote.hdfs import atomic_replace


def target(path: Path, *, is_atomic: bool, **others: Any) -> ArrowTarget:
    return ArrowTarget(LocalFileSystem(), str(path), "place", is_atomic=is_atomic, **others)


def failing() -> Iterator[bytes]:
    yield b"the beginning"
    raise StoreError("the disk failed")


@pytest.mark.parametrize("is_atomic", [True, False])
def test_an_upload_that_fails_leaves_nothing(tmp_path: Path, is_atomic: bool) -> None:
    place = target(tmp_path, is_atomic=is_atomic)
    with pytest.raises(StoreError, match="the disk failed"):
        place.put("object", 100, failing())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreError, match="place/object: only 2 of 3 bytes were stored"):
        place.put("object", 3, [b"ab"])
    assert list(tmp_path.iterdir()) == []
    place.put("object", 2, [b"ab"])
    assert (tmp_path / "object").read_bytes() == b"ab"


@pytest.mark.parametrize("is_atomic", [True, False])
def test_a_refused_upload_leaves_the_old_object(tmp_path: Path, is_atomic: bool) -> None:
    place = target(tmp_path, is_atomic=is_atomic)
    place.put("object", 3, [b"old"])
    place._write = refused  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="place/object: refused"):
        place.put("object", 3, [b"new"])
    assert (tmp_path / "object").read_bytes() == b"old"


def refused(*_: object) -> None:
    raise OSError("refused")


def test_the_old_file_is_there_until_it_is_replaced(tmp_path: Path) -> None:
    found: list[bytes] = []

    def replace(written: str, full: str) -> None:
        found.append(Path(full).read_bytes())
        Path(written).replace(full)

    place = target(tmp_path, is_atomic=False, replace=replace)
    (tmp_path / "manifest").write_bytes(b"old")
    place.put("manifest", 3, [b"new"])
    assert found == [b"old"]
    assert (tmp_path / "manifest").read_bytes() == b"new"


class Client:
    """The part of the HDFS client that moves files."""

    protocol = "hdfs"

    def __init__(self) -> None:
        self.moved: list[tuple[str, str, bool]] = []

    def mv(self, old: str, new: str, overwrite: bool = False) -> None:
        self.moved.append((old, new, overwrite))


def test_hdfs_replaces_atomically() -> None:
    client = Client()
    replace = atomic_replace(PyFileSystem(FSSpecHandler(client)))
    assert replace is not None
    replace("/a", "/b")
    assert client.moved == [("/a", "/b", True)]
    assert atomic_replace(LocalFileSystem()) is None
