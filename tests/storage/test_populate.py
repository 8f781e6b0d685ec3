"""Pages that are brought into memory before they are written."""

from __future__ import annotations

import mmap
import threading
from pathlib import Path

import numpy as np
import pytest

from mqlake.storage import populate
from mqlake.storage.populate import populate_soon
from mqlake.storage.residency import is_in_memory

SIZE = 64 << 20
STEP = 16 << 20


def mapped(path: Path) -> mmap.mmap:
    with path.open("w+b") as file:
        file.truncate(SIZE)
        return mmap.mmap(file.fileno(), 0)


def wait() -> None:
    for thread in threading.enumerate():
        if thread.name.endswith("(_populate)"):
            thread.join()


def test_pages_are_there_before_they_are_written(tmp_path: Path) -> None:
    view = memoryview(mapped(tmp_path / "file"))
    address = np.frombuffer(view, np.uint8).ctypes.data
    if is_in_memory(address + 2 * STEP, STEP):
        pytest.skip("this system does not tell")
    view[STEP : STEP + 3] = b"abc"

    populate_soon(view, STEP, STEP)
    wait()

    if not is_in_memory(address + 2 * STEP - 1, 1):
        pytest.skip("this system cannot: Linux 5.14 and later can")
    assert is_in_memory(address + STEP, STEP)
    assert not is_in_memory(address + 2 * STEP, 2 * STEP)
    assert bytes(view[STEP : 2 * STEP]) == b"abc".ljust(STEP, b"\0")


def test_a_system_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view, asked = memoryview(mapped(tmp_path / "file")), list[int]()

    def refuse(_address: object, _size: object, advice: int) -> int:
        asked.append(advice)
        return -1

    monkeypatch.setattr(populate, "_madvise", refuse)
    populate_soon(view, 0, STEP)
    wait()
    assert len(asked) == 1

    monkeypatch.setattr(populate, "_madvise", None)
    populate_soon(view, 0, STEP)
    assert len(asked) == 1
