"""The files that a log writes."""

from __future__ import annotations

from pathlib import Path

from mqlake.formats.file_name import segment_name
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.log.owned_segment_files import OwnedSegmentFiles

SIZE = 4096


def names(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "commitlog").iterdir())


def test_a_prepared_file_is_used_only_at_its_physical_offset(tmp_path: Path) -> None:
    files = OwnedSegmentFiles(LocalOwnedDirectory(tmp_path), SIZE)
    files.prepare(0)
    assert files.following(0) is files.following(0)
    assert names(tmp_path) == [segment_name(0)]
    files.following(SIZE)
    assert names(tmp_path) == [segment_name(0), segment_name(SIZE)]


def test_closing_removes_the_prepared_file_only(tmp_path: Path) -> None:
    files = OwnedSegmentFiles(LocalOwnedDirectory(tmp_path), SIZE)
    files.use(0, files.following(0))
    files.prepare(SIZE)
    files.close()
    assert names(tmp_path) == [segment_name(0)]
