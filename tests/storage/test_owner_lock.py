"""Who owns a store directory, asked and taken without disturbing the owner."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.storage import owner_lock
from mqlake.storage.local import LocalDirectory
from mqlake.storage.owner_lock import OwnerLock
from tests.forked import in_child

# As Java's FileChannel.tryLock(0, 1, false) does.
OWNER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
print("locked", flush=True)
sys.stdin.read()
"""

OWNER_OF_OURS = """
import sys
from pathlib import Path
from mqlake.storage.owner_lock import OwnerLock
with OwnerLock(Path(sys.argv[1]).parent):
    print("locked", flush=True)
    sys.stdin.read()
"""

OWNER_THAT_FORKS = """
import os, sys, time
from pathlib import Path
from mqlake.storage.owner_lock import OwnerLock
with OwnerLock(Path(sys.argv[1]).parent):
    if os.fork() == 0:
        print("locked", os.getpid(), flush=True)
        time.sleep(600)
    sys.stdin.read()
"""


@contextmanager
def owner_process(lock: Path, program: str = OWNER) -> Iterator[int]:
    command = [sys.executable, "-c", program, str(lock)]
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
    for program in OWNER, OWNER_OF_OURS:
        with owner_process(lock, program) as pid:
            assert directory.lock_holder("lock") == pid
            assert directory.lock_holder("lock") == pid
        assert directory.lock_holder("lock") is None
    assert lock.read_bytes() == b"lock"
    assert lock.stat().st_mtime_ns == before.st_mtime_ns


def test_a_store_has_one_owner(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    for program in OWNER, OWNER_OF_OURS:
        with (
            owner_process(tmp_path / "lock", program) as pid,
            pytest.raises(StoreError, match=f"process {pid} owns this store"),
            OwnerLock(tmp_path),
        ):
            pass
    with OwnerLock(tmp_path):
        with pytest.raises(StoreError, match="owns this store"), OwnerLock(tmp_path):
            pass
        # The failed attempt, and asking, must not have dropped the lock.
        assert LocalDirectory(tmp_path).lock_holder("lock") is None
        assert_owned(tmp_path)
    with owner_process(tmp_path / "lock") as pid:
        assert LocalDirectory(tmp_path).lock_holder("lock") == pid


def assert_owned(path: Path) -> None:
    """Check that this process keeps RocketMQ out, and another mqlake."""
    with pytest.raises(AssertionError), owner_process(path / "lock"):
        pass
    with pytest.raises(AssertionError), owner_process(path / "lock", OWNER_OF_OURS):
        pass


def test_lock_of_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="lock: No such file"), OwnerLock(tmp_path / "missing"):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="no locks of open file descriptions")
def test_a_copy_of_the_directory_drops_no_lock(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    with OwnerLock(store):
        shutil.copytree(store, tmp_path / "copy")
        (store / "lock").read_bytes()
        assert_owned(store)
        with OwnerLock(tmp_path / "copy"):
            assert_owned(tmp_path / "copy")


def test_without_such_locks_the_directory_is_locked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_such_lock(descriptor: int) -> bool:
        return False

    monkeypatch.setattr(owner_lock, "_lock_description", no_such_lock)
    with OwnerLock(tmp_path):
        assert_owned(tmp_path)
        (tmp_path / "lock").read_bytes()

        def own_as_a_stranger() -> None:
            with OwnerLock(tmp_path):
                pass

        assert "another process owns this store" in in_child(own_as_a_stranger)
    with OwnerLock(tmp_path):
        pass


def test_a_kernel_without_such_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = owner_lock.fcntl.fcntl

    def refuse(descriptor: int, command: int, data: bytes) -> bytes:
        if command == owner_lock._SET_LOCK:
            raise OSError(errno.EINVAL, "Invalid argument")
        return ask(descriptor, command, data)

    monkeypatch.setattr(owner_lock.fcntl, "fcntl", refuse)
    with OwnerLock(tmp_path):
        assert_owned(tmp_path)


def test_a_child_owns_nothing_and_keeps_nobody_out(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    with OwnerLock(tmp_path) as lock:
        (descriptor,) = lock._descriptors

        def leave_and_own() -> str:
            held = Path("/proc/self/fd")
            assert not (held / str(descriptor)).exists()
            assert directory.lock_holder("lock") == os.getppid()
            with pytest.raises(StoreError, match=f"process {os.getppid()} owns this store"):
                OwnerLock(tmp_path).__enter__()
            lock.__exit__()
            lock.check()
            return "may write"

        assert f"this store was opened by process {os.getpid()}; open it" in in_child(leave_and_own)
        lock.check()
        assert_owned(tmp_path)


def test_the_lock_goes_when_the_owner_dies_though_a_child_lives(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER_THAT_FORKS, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline().split()[1])
        try:
            process.kill()
            process.wait()
            with OwnerLock(tmp_path):
                assert_owned(tmp_path)
            os.kill(child, 0)  # it lives
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_lock_file_that_is_replaced_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, replaced, held = tmp_path / "lock", 0, dict(owner_lock._held)
    lock_description = owner_lock._lock_description

    def replace(descriptor: int) -> bool:
        nonlocal replaced
        done = lock_description(descriptor)
        if (replaced := replaced + 1) <= most:
            lock.unlink()
            if replaced % 2:
                lock.touch()
        return done

    monkeypatch.setattr(owner_lock, "_lock_description", replace)
    most = 2
    with OwnerLock(tmp_path):
        assert replaced == 3
        assert_owned(tmp_path)
    most = 1000
    with pytest.raises(StoreError, match="keep replacing this file"), OwnerLock(tmp_path):
        pass
    assert owner_lock._held == held
