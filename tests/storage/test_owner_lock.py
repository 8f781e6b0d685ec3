"""Who owns a store directory, asked and taken without disturbing the owner."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.storage.local import LocalDirectory
from mqlake.storage.owner_lock import OwnerLock

# As Java's FileChannel.tryLock(0, 1, false) does.
OWNER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def owner_process(lock: Path) -> Iterator[int]:
    command = [sys.executable, "-c", OWNER, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        yield process.pid
        process.communicate()


def test_asking_finds_the_owner_and_changes_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    directory = LocalDirectory(tmp_path)
    assert directory.lock_holder("lock") is None
    assert not lock.exists()
    lock.write_bytes(b"lock")
    before = lock.stat()
    assert directory.lock_holder("lock") is None
    with owner_process(lock) as pid:
        assert directory.lock_holder("lock") == pid
        assert directory.lock_holder("lock") == pid
    assert directory.lock_holder("lock") is None
    assert lock.read_bytes() == b"lock"
    assert lock.stat().st_mtime_ns == before.st_mtime_ns


def test_a_store_has_one_owner(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with (
        owner_process(tmp_path / "lock") as pid,
        pytest.raises(StoreError, match=f"process {pid} owns this store"),
        OwnerLock(tmp_path),
    ):
        pass
    with OwnerLock(tmp_path):
        with pytest.raises(StoreError, match="owns this store"), OwnerLock(tmp_path):
            pass
        # The failed attempt, and asking, must not have dropped the lock.
        assert LocalDirectory(tmp_path).lock_holder("lock") is None
        with pytest.raises(AssertionError), owner_process(tmp_path / "lock"):
            pass
    with owner_process(tmp_path / "lock") as pid:
        assert LocalDirectory(tmp_path).lock_holder("lock") == pid


def test_lock_of_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="lock: No such file"), OwnerLock(tmp_path / "missing"):
        pass
