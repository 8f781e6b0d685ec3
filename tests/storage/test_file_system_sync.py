"""One call that makes many files durable, and when it is not trusted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlake.storage import file_system_sync
from mqlake.storage.file_system_sync import FileSystemSync
from mqlake.storage.local_owned import LocalOwnedDirectory

PATHS = ["a/file", "a"]


class System:
    """What the system says; `syncfs` fails with `result`."""

    def __init__(self) -> None:
        self.calls, self.result = 0, 0

    def syncfs(self, descriptor: int) -> int:
        assert os.fstat(descriptor)
        self.calls += 1
        return self.result


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").touch()
    system = System()
    monkeypatch.setattr(file_system_sync, "_syncfs", system.syncfs)
    monkeypatch.setattr(file_system_sync, "_is_known", lambda _: True)
    return system


def test_one_call_is_enough(tmp_path: Path, system: System) -> None:
    with FileSystemSync(tmp_path) as opened:
        assert opened.sync(PATHS) == []
        assert system.calls == 1
    # Nobody knows what failed while it was not open.
    assert opened.sync(PATHS) == PATHS
    assert system.calls == 1


def test_what_does_not_exist_is_left(tmp_path: Path, system: System) -> None:
    with FileSystemSync(tmp_path) as opened:
        assert opened.sync([*PATHS, "a/none"]) == ["a/none"]


def test_what_is_elsewhere_is_left(
    tmp_path: Path, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    device_of = file_system_sync._device_of

    def elsewhere(path: str) -> int:
        return device_of(path) + path.endswith("file")

    with FileSystemSync(tmp_path) as opened:
        monkeypatch.setattr(file_system_sync, "_device_of", elsewhere)
        assert opened.sync(PATHS) == ["a/file"]


def _fails(system: System, _: pytest.MonkeyPatch) -> None:
    system.result = -1


def _is_read_only(_: System, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(file_system_sync, "_is_read_only", lambda _: True)


def _is_missing(_: System, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(file_system_sync, "_syncfs", None)


def _is_unknown(_: System, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(file_system_sync, "_is_known", lambda _: False)


@pytest.mark.parametrize("change", [_fails, _is_read_only, _is_missing, _is_unknown])
def test_all_is_left_otherwise(
    tmp_path: Path,
    system: System,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[System, pytest.MonkeyPatch], None],
) -> None:
    change(system, monkeypatch)
    with FileSystemSync(tmp_path) as opened:
        assert opened.sync(PATHS) == PATHS


@pytest.mark.parametrize(
    ("mounts", "is_known"),
    [
        ("1 2 8:1 / / rw - ext4 /dev/a rw\n", True),
        ("1 2 8:1 / / rw shared:1 master:2 - xfs /dev/a rw\n1 2 8:2 / /b rw - nfs b rw\n", True),
        ("1 2 8:1 / / rw - ext4 /dev/a rw\n1 2 8:1 / / rw - overlay overlay rw\n", False),
        ("1 2 8:2 / / rw - ext4 /dev/a rw\n", False),
        ("1 2 8:1 / / rw - tmpfs tmpfs rw\n", False),
        ("odd\n\n1 2\n", False),
        ("", False),
    ],
)
def test_few_file_systems_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, is_known: bool
) -> None:
    (tmp_path / "mounts").write_text(mounts)
    monkeypatch.setattr(file_system_sync, "_MOUNTS", tmp_path / "mounts")
    assert file_system_sync._is_known(os.makedev(8, 1)) == is_known
    monkeypatch.setattr(file_system_sync, "_MOUNTS", tmp_path / "none")
    assert not file_system_sync._is_known(os.makedev(8, 1))


def test_a_directory_syncs_together_while_it_is_owned(tmp_path: Path, system: System) -> None:
    directory = LocalOwnedDirectory(tmp_path)
    assert directory.sync_together(PATHS) == PATHS
    with directory.own("lock"):
        assert directory.sync_together(PATHS) == []
    assert directory.sync_together(PATHS) == PATHS
    assert system.calls == 1
