"""Steps that leave the old or the new, whatever fails in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.errors import DiskError
from mqlake.storage.durable import create_file, make_directories, parent, replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory, LocalOwnedFile


class Observed(LocalOwnedDirectory):
    """Notes what is done to names, and fails where it is told to."""

    def __init__(self, root: Path, fails_at: str = "") -> None:
        super().__init__(root)
        self.steps: list[str] = []
        self._fails_at = fails_at

    def _note(self, step: str) -> None:
        self.steps.append(step)
        if step == self._fails_at:
            raise DiskError(f"{step}: refused")

    def create(self, path: str, size: int) -> LocalOwnedFile:
        self._note(f"create {path}")
        return super().create(path, size)

    def make_directory(self, path: str) -> None:
        self._note(f"make {path}")
        super().make_directory(path)

    def replace(self, source: str, target: str) -> None:
        self._note(f"{source} → {target}")
        super().replace(source, target)

    def sync_directory(self, path: str) -> None:
        self._note(f"sync {path or '.'}")
        super().sync_directory(path)


def test_each_new_directory_is_synced_into_the_one_above(tmp_path: Path) -> None:
    directory = Observed(tmp_path)
    make_directories(directory, "a/b")
    make_directories(directory, "a/b/c")
    make_directories(directory, "a/b/c")
    assert directory.steps == ["make a", "sync .", "make a/b", "sync a", "make a/b/c", "sync a/b"]


def test_a_new_file_is_synced_with_its_name(tmp_path: Path) -> None:
    directory = Observed(tmp_path)
    create_file(directory, "a", 7).close()
    assert directory.steps == ["create a", "sync ."]
    assert directory.size("a") == 7


def test_replacing_keeps_the_old_content_aside(tmp_path: Path) -> None:
    directory = Observed(tmp_path)
    replace_file(directory, "a", b"one", backup="a.bak")
    assert directory.names("") == ["a"]
    replace_file(directory, "a", b"two", backup="a.bak")
    assert directory.open("a").read(0, 9) == b"two"
    assert directory.open("a.bak").read(0, 9) == b"one"
    assert directory.names("") == ["a", "a.bak"]
    assert directory.steps[-4:] == ["create a.bak.tmp", "a.bak.tmp → a.bak", "a.tmp → a", "sync ."]


@pytest.mark.parametrize(
    "step", ["create a.tmp", "create a.bak.tmp", "a.bak.tmp → a.bak", "a.tmp → a"]
)
def test_a_step_that_fails_leaves_the_old_content(tmp_path: Path, step: str) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(DiskError, match="refused"):
        replace_file(Observed(tmp_path, step), "a", b"new", backup="a.bak")
    assert (tmp_path / "a").read_bytes() == b"old"
    replace_file(LocalOwnedDirectory(tmp_path), "a", b"new", backup="a.bak")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "a.bak").read_bytes() == b"old"


def test_an_empty_file_is_content_too(tmp_path: Path) -> None:
    replace_file(LocalOwnedDirectory(tmp_path), "a", b"")
    assert (tmp_path / "a").read_bytes() == b""


def test_parent_directory_of_a_path() -> None:
    assert [parent(path) for path in ("a", "a/b", "a/b/c")] == ["", "a", "a/b"]
