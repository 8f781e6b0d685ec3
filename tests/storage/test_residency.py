"""Which pages of a mapped file are in memory."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from mqlake.storage import residency
from mqlake.storage.residency import is_in_memory

PAGES = 1 << 15  # more than is read ahead


def test_pages_that_were_never_read_are_not_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("w+b") as file:
        file.truncate(PAGES * mmap.PAGESIZE)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    address = np.frombuffer(mapped, np.uint8).ctypes.data
    far = address + (PAGES - 1) * mmap.PAGESIZE
    if is_in_memory(far, 1):
        pytest.skip("this system does not tell")
    assert mapped[PAGES // 2 * mmap.PAGESIZE] == 0
    near = address + PAGES // 2 * mmap.PAGESIZE
    assert is_in_memory(near, 1)
    assert is_in_memory(near + mmap.PAGESIZE - 1, 1)
    assert not is_in_memory(near, far + mmap.PAGESIZE - near)
    assert not is_in_memory(far + mmap.PAGESIZE - 1, 1)


def test_a_system_without_mincore_counts_as_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_in_memory(0, 1), "no such memory"
    monkeypatch.setattr(residency, "_mincore", None)
    assert is_in_memory(1 << 40, 1)
