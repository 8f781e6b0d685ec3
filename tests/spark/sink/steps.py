"""The steps of a commit, and a death before or after each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mqlake.spark.sink import commit, roll_back
from mqlake.spark.sink.commit import SinkEpoch
from mqlake.store.config_store import ConfigStore
from mqlake.store.core.durability import Durability
from mqlake.store.log.owned_log import OwnedCommitLog
from mqlake.store.owned_store import OwnedStore
from tests.spark.sink.writing import SMALL, write

STEPS: tuple[tuple[Any, str], ...] = (
    (commit, "write_begun"),
    (commit, "write_journal"),
    (commit, "_append"),
    (commit, "forget"),
    (roll_back, "forget"),
    (roll_back, "mark_open"),
    (OwnedCommitLog, "recover_to"),
    (Durability, "sync_log"),
    (OwnedStore, "close"),
    (ConfigStore, "persist"),
)


class Countdown:
    """Calls `die` before or after one of the calls that change the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, die: Callable[[], None]) -> None:
        self._die = die
        self._left: int | None = None
        for owner, name in STEPS:
            monkeypatch.setattr(owner, name, self._counting(getattr(owner, name)))

    def start(self, steps: int | None) -> None:
        self._left = steps

    def _step(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self._left = None
                self._die()

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def counted(*arguments: Any, **named: Any) -> Any:
            self._step()
            result = function(*arguments, **named)
            self._step()
            return result

        return counted


def rows(epoch: int, task: int) -> Any:
    """Return rows of 0.3 to 30 KiB: of several files of the log."""
    bodies = [f"{epoch}-{task}-{row};".encode() * (40 << row % 7) for row in range(30)]
    keys = [[f"key-{epoch}-{task}-{row}"] for row in range(30)]
    return pa.RecordBatch.from_pydict({"body": bodies, "keys": keys})


def write_epoch(path: Path, number: int) -> int:
    tasks = [rows(number, task) for task in range(2)]
    return write(path, tasks, SinkEpoch("query", number), topic="T", **SMALL)
