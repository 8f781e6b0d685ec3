"""Durable writes: what can be seen of them without cutting the power."""

from __future__ import annotations

from pathlib import Path

from mqlake.storage.local_write import fsync_directory, fsync_file, rename_durably


def test_rename_replaces_a_file_across_directories(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "to").mkdir()
    (tmp_path / "from" / "new").write_bytes(b"new")
    (tmp_path / "to" / "file").write_bytes(b"old")
    fsync_file(tmp_path / "from" / "new")
    rename_durably(tmp_path / "from" / "new", tmp_path / "to" / "file")
    fsync_directory(tmp_path / "from")
    assert (tmp_path / "to" / "file").read_bytes() == b"new"
    assert list((tmp_path / "from").iterdir()) == []


def test_rename_moves_a_directory(tmp_path: Path) -> None:
    (tmp_path / "index.new").mkdir()
    (tmp_path / "index.new" / "file").write_bytes(b"x")
    rename_durably(tmp_path / "index.new", tmp_path / "index")
    assert (tmp_path / "index" / "file").read_bytes() == b"x"
