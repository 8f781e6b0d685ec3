"""Disks that are full, slow, or not writable; few open files."""

from __future__ import annotations

import resource
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from mqlake.doctor import machine
from mqlake.doctor.finding import Severity
from mqlake.doctor.machine import disk, open_files


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(
    ("percent", "state", "mend"),
    [
        (50, Severity.OK, ""),
        (80, Severity.NOTE, "above 75 %"),
        (95, Severity.PROBLEM, "above 90 %"),
    ],
)
def test_the_fuller_a_disk_the_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, percent: int, state: Severity, mend: str
) -> None:
    # As a file system with room for root alone: a broker counts what users may have.
    usage = Usage(120 << 30, percent << 30, (100 - percent) << 30)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(machine, "_sync_seconds", lambda _: 0.001)
    found = disk(tmp_path)
    assert (found.state, mend in found.mend) == (state, True)
    assert found.found.startswith(f"{percent} % used, {100 - percent}.0 GiB free")


def test_a_slow_sync_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100, 10, 90))
    monkeypatch.setattr(machine, "_sync_seconds", lambda _: 0.05)
    assert disk(tmp_path).state is Severity.NOTE


def test_a_store_need_not_exist(tmp_path: Path) -> None:
    found = disk(tmp_path / "a" / "b")
    assert "a sync takes" in found.found
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> float:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(machine, "_sync_seconds", refuse)
    found = disk(tmp_path)
    assert (found.state, found.found) == (
        Severity.PROBLEM,
        "it cannot be written: Permission denied",
    )


@pytest.mark.parametrize(
    ("limit", "state"),
    [(1024, Severity.NOTE), (1 << 20, Severity.OK), (resource.RLIM_INFINITY, Severity.OK)],
)
def test_few_open_files_are_a_note(
    monkeypatch: pytest.MonkeyPatch, limit: int, state: Severity
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, limit))
    assert open_files().state is state
