"""A rebuild moves nothing into place that is not on the disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.swap import Exchange
from tests.golden import store


@pytest.mark.parametrize("in_place", [False, True])
def test_all_is_synced_before_it_moves(
    in_place: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[int, tuple[int, int]] = {}

    def noting(sync: Callable[[int], None]) -> Callable[[int], None]:
        def wrapper(descriptor: int) -> None:
            status = os.fstat(descriptor)
            sync(descriptor)
            synced[status.st_ino] = state(status)

        return wrapper

    unsynced: list[str] = []
    seen: list[str] = []
    commit = Exchange.commit

    def checking(exchange: Exchange) -> Any:
        new = (tmp_path / ("store" if in_place else "out")) / Exchange.new
        for path in new.rglob("*"):
            status = path.stat()
            seen.append(path.name)
            if synced.get(status.st_ino) != state(status):
                unsynced.append(str(path.relative_to(new)))
        return commit(exchange)

    monkeypatch.setattr(os, "fsync", noting(os.fsync))
    monkeypatch.setattr(os, "fdatasync", noting(os.fdatasync))
    monkeypatch.setattr(Exchange, "commit", checking)
    golden = store("rmq5-clean")
    source = golden.copy(tmp_path / "store") if in_place else golden.path

    rebuild(source, LocalEngine(2), out=None if in_place else tmp_path / "out")

    assert {"consumequeue", "index", "checkpoint"} <= set(seen)
    assert not unsynced


def state(status: os.stat_result) -> tuple[int, int]:
    """Return what a write to a file, or a new name in a directory, changes."""
    return status.st_size, status.st_mtime_ns
