"""Memory that tests have freed."""

from __future__ import annotations

import pytest

from tests import memory
from tests.memory import FreedMemory, resident


@pytest.mark.skipif(memory._trim is None, reason="the C library gives nothing back on demand")
def test_what_a_test_has_freed_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "GROWTH", 32 << 20)
    memory._trim(0)  # What earlier tests have freed would be used again: nothing would grow.
    freed, before = FreedMemory(), resident()
    # Blocks too small to be mapped one by one; the last one keeps the heap from shrinking.
    blocks = [bytearray(60_000) for _ in range(2_000)]
    last = bytearray(60_000)
    grown = resident()
    assert grown > before + (64 << 20)
    blocks.clear()
    freed.look()
    assert resident() < grown - (64 << 20)
    assert last


def test_a_process_that_has_grown_little_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    trims: list[int] = []
    monkeypatch.setattr(memory, "_trim", trims.append)
    freed = FreedMemory()
    freed.look()
    monkeypatch.setattr(memory, "resident", lambda: resident() + memory.GROWTH + 1)
    freed.look()
    assert trims == [0]
    freed.look()
    assert trims == [0], "it is measured from the last time on"
