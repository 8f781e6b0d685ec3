"""Locks of Java's FileChannel and ours keep each other out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.spark.launch import QUICK_START
from mqlake.storage.local import LocalDirectory
from mqlake.storage.owner_lock import OwnerLock

PROGRAM = Path(__file__).with_name("java_lock") / "TakeLock.java"

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        shutil.which("javac") is None,
        reason="javac is not installed (apt-get install default-jdk-headless)",
    ),
]


@contextmanager
def java_owner(lock: Path, part: str) -> Generator[tuple[str, int]]:
    """Try to take the lock in Java; yield the answer and the process id."""
    command = ["java", *QUICK_START, str(PROGRAM), str(lock), part]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip(), process.pid
        process.communicate()


@pytest.mark.parametrize(("name", "part"), [("lock", "first byte"), (".lock", "whole")])
def test_java_and_mqlake_keep_each_other_out(tmp_path: Path, name: str, part: str) -> None:
    store = tmp_path / "store"
    store.mkdir()
    with OwnerLock(store, name):
        shutil.copytree(store, tmp_path / "copy")
        with java_owner(store / name, part) as (answer, _):
            assert answer == "refused"
    with java_owner(store / name, part) as (answer, process):
        assert answer == "locked"
        assert LocalDirectory(store).lock_holder(name) == process
        with pytest.raises(StoreError, match=f"process {process} owns"), OwnerLock(store, name):
            pass
    with OwnerLock(store, name):
        pass
