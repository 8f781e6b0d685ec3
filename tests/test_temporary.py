"""Tests write to memory only where there is enough of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import temporary


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A machine with enough memory, and room for it in files."""
    found = SimpleNamespace(free=temporary.NEEDED, memory=2 * temporary.NEEDED)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=found.free))
    monkeypatch.setattr(temporary, "available_memory", lambda: found.memory)
    return found


def test_memory_is_used_if_there_is_enough(
    room: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporary, "MEMORY", tmp_path)
    monkeypatch.delenv(temporary.VARIABLE, raising=False)
    room.memory -= 1
    temporary.write_to_memory()
    assert temporary.VARIABLE not in os.environ
    room.memory += 1
    room.free -= 1
    temporary.write_to_memory()
    assert temporary.VARIABLE not in os.environ
    room.free += 1
    temporary.write_to_memory()
    assert os.environ[temporary.VARIABLE] == str(tmp_path)


def test_a_directory_that_somebody_has_chosen_is_used(
    room: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(temporary.VARIABLE, "/elsewhere")
    temporary.write_to_memory()
    assert os.environ[temporary.VARIABLE] == "/elsewhere"


def test_a_directory_that_is_missing_has_no_room(room: SimpleNamespace, tmp_path: Path) -> None:
    assert temporary.has_room(tmp_path)
    assert not temporary.has_room(tmp_path / "missing")


def test_available_memory(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  200 kB\nMemAvailable:    12 kB\nCached: 5 kB\n")
    assert temporary.available_memory(tmp_path / "meminfo") == 12 << 10
    assert temporary.available_memory(tmp_path / "missing") == 0
