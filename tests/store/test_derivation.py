"""Derived files follow a log that somebody else writes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.verify import verify
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store import BlockingMessageStore, Message
from mqlake.store.derivation import Derivation
from tests.store.log_copies import copy_log, log_of

SETTINGS = {"mappedFileSizeCommitLog": 1 << 14}


def put(path: Path, start: int, end: int) -> None:
    with BlockingMessageStore.open(path, SETTINGS) as store:
        for number in range(start, end):
            store.put(Message(f"T{number % 3}", b"%d" % number, keys=[f"key-{number}"]))


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Path, Path]:
    """A store, and a copy of it whose log has got ahead."""
    source, target = tmp_path / "source", tmp_path / "target"
    put(source, 0, 100)
    shutil.copytree(source, target)
    put(source, 100, 300)
    copy_log(source, target)
    return source, target


def test_derivation_catches_up_and_follows_the_log(stores: tuple[Path, Path]) -> None:
    source, target = stores
    before = log_of(target)
    with Derivation.open(LocalOwnedDirectory(target)) as derivation:
        first = derivation.position
        assert derivation.entries == 200
        assert log_of(target) == before
        with pytest.raises(StoreError, match="owns this store"):
            Derivation.open(LocalOwnedDirectory(target))
        put(source, 300, 500)
        copied = copy_log(source, target)
        with Derivation.open(LocalOwnedDirectory(source)) as ahead:
            end = ahead.position
        assert derivation.advance(first) == 0
        assert derivation.advance(end) == 200
        assert derivation.advance(end) == 0
        assert derivation.position == end
    assert log_of(target) == copied
    assert not (target / "abort").exists()
    assert verify(target, LocalEngine(1)).ok
    put(target, 500, 510)
    assert verify(target, LocalEngine(1)).ok


def test_a_failure_leaves_the_abort_file(stores: tuple[Path, Path]) -> None:
    _, target = stores
    with (
        pytest.raises(StoreError, match="the log has no record at physical offset"),
        Derivation.open(LocalOwnedDirectory(target)) as derivation,
    ):
        derivation.advance(derivation.position + 100)
    assert (target / "abort").exists()
    with Derivation.open(LocalOwnedDirectory(target)) as derivation:
        assert not derivation.report.is_clean
    assert verify(target, LocalEngine(1)).ok


def test_a_torn_copy_waits(stores: tuple[Path, Path]) -> None:
    """What is not there as a whole is left as it is, and dispatched when it is."""
    source, target = stores
    with Derivation.open(LocalOwnedDirectory(target)) as derivation:
        end = derivation.position
    whole = log_of(target)
    last = max(name for name, data in whole.items() if any(data))
    at = end - int(last) - 10
    torn = whole[last][:at] + bytes(len(whole[last]) - at)
    (target / "commitlog" / last).write_bytes(torn)
    for part in ("consumequeue", "index"):
        shutil.rmtree(target / part)
    (target / "checkpoint").unlink()
    with Derivation.open(LocalOwnedDirectory(target)) as derivation:
        assert derivation.entries == 299
        assert (target / "commitlog" / last).read_bytes() == torn
        (target / "commitlog" / last).write_bytes(whole[last])
        assert derivation.advance(end) == 1
    assert source.exists()
    assert verify(target, LocalEngine(1)).ok
