"""One at a time edits a file that is replaced."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mqlake.errors import DiskError, StoreError
from mqlake.storage.file_lock import locked

HOLDER = """
import sys
from pathlib import Path
from mqlake.storage.file_lock import locked
with locked(Path(sys.argv[1]), 1):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_waits_and_then_gives_up(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(StoreError, match="file: another process has been changing this file"),
            locked(path, 0.05),
        ):
            pass
        holder.kill()
        holder.wait()
        with locked(path, 30):
            pass


def test_whoever_waited_has_the_file_that_took_the_place(tmp_path: Path) -> None:
    path, new = tmp_path / "file", tmp_path / "new"
    path.write_text("old")
    found: list[str] = []

    def read() -> None:
        with locked(path, 60):
            found.append(path.read_text())

    with locked(path, 0):
        reader = threading.Thread(target=read)
        reader.start()
        new.write_text("new")
        new.replace(path)
        # Only the reader may have locked the file that is there now, for a moment; but nobody was
        # asked to leave the old one.
        with locked(path, 60):
            path.write_text("newer")
    reader.join()
    assert found in (["new"], ["newer"])


def test_a_lock_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="file: No such file"), locked(tmp_path / "file", 1):
        pass


def test_a_file_system_without_locks_excludes_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "file"
    path.write_text("kept")
    with locked(path, 0):
        assert path.read_text() == "kept"
