"""A commit that dies at any step: what is run again neither loses nor doubles a message."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.spark.sink.commit import SinkEpoch
from mqlake.spark.sink.journal import Journal, read_journal
from mqlake.storage import owner_lock
from mqlake.storage.local import LocalDirectory
from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore
from tests.golden import ROOT
from tests.jobs.model import read_log
from tests.spark.sink.derived_files import check_derived_files
from tests.spark.sink.steps import Countdown, rows, write_epoch
from tests.spark.sink.writing import SMALL, write


class Killed(BaseException):
    """The process is gone."""


def bodies(path: Path) -> list[bytes]:
    return [one.body.partition(b";")[0] for one in read_log(path)]


def expected(epochs: int) -> list[bytes]:
    return [
        f"{epoch}-{task}-{row}".encode()
        for epoch in range(epochs)
        for task in range(2)
        for row in range(30)
    ]


def die() -> None:
    for lock in list(owner_lock._held.values()):  # as the end of the process would
        lock.let_go()
    raise Killed


def test_killed_at_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    countdown = Countdown(monkeypatch, die)
    before = tmp_path / "before"
    write_epoch(before, 0)
    step = 0
    while True:
        path = tmp_path / f"store-{step}"
        shutil.copytree(before, path)
        countdown.start(step)
        try:
            write_epoch(path, 1)
            break
        except Killed:
            pass
        countdown.start(2 * step)  # the roll-back dies, too
        try:
            write_epoch(path, 1)
        except Killed:
            write_epoch(path, 1)
        countdown.start(None)
        assert bodies(path) == expected(2), step
        assert write_epoch(path, 1) == 0
        write_epoch(path, 2)
        assert bodies(path) == expected(3), step
        check_derived_files(path)
        assert read_journal(LocalDirectory(path)) == Journal({"query": 2})
        step += 1
    assert step > 20


def test_killed_when_the_store_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    countdown = Countdown(monkeypatch, die)
    for step in range(0, 24, 3):
        path = tmp_path / f"store-{step}"
        countdown.start(step)
        with pytest.raises(Killed):
            write_epoch(path, 0)
        countdown.start(None)
        write_epoch(path, 0)
        assert bodies(path) == expected(1), step
        check_derived_files(path)


def test_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "store"
    for epoch, step in enumerate((9, 17)):
        command = [sys.executable, "-m", "tests.spark.sink.killed", path, str(epoch), str(step)]
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        write_epoch(path, epoch)
    assert bodies(path) == expected(2)
    check_derived_files(path)


def test_a_write_that_is_not_repeated_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    write_epoch(path, 0)
    with monkeypatch.context() as patch:
        countdown = Countdown(patch, die)
        countdown.start(6)
        with pytest.raises(Killed):
            write_epoch(path, 1)
    write(path, [rows(1, 0)], topic="T", **SMALL)
    assert bodies(path) == expected(2)[:90]
    check_derived_files(path)


def test_what_others_have_written_since_is_not_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    write_epoch(path, 0)
    with monkeypatch.context() as patch:
        countdown = Countdown(patch, die)
        countdown.start(6)
        with pytest.raises(Killed):
            write_epoch(path, 1)
    with BlockingMessageStore.open(path, SMALL) as store:
        store.put(Message("T", b"other"))
    found = bodies(path)
    with pytest.raises(StoreError, match=r"another process has written at \d+ since"):
        write_epoch(path, 1)
    assert bodies(path) == found
    assert found[-1] == b"other"


def test_epochs_of_other_queries(tmp_path: Path) -> None:
    path = tmp_path / "store"
    write_epoch(path, 0)
    assert write(path, [rows(0, 0)], SinkEpoch("other", 0), topic="T", **SMALL) == 30
    assert write(path, [rows(0, 0)], SinkEpoch("other", 0), topic="T", **SMALL) == 0
    assert write_epoch(path, 1) == 60


def test_a_store_that_is_in_use(tmp_path: Path) -> None:
    path = tmp_path / "store"
    write_epoch(path, 0)
    with (
        BlockingMessageStore.open(path, SMALL),
        pytest.raises(StoreError, match="owns this store; stop it first"),
    ):
        write_epoch(path, 1)
    assert write_epoch(path, 1) == 60
