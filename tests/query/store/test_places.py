"""Stores elsewhere are read by the same code; no store, or half of one, is one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from mqlake.errors import StoreError
from mqlake.query.reading.conditions import AnyText, HasKey
from mqlake.query.reading.directory import Location, open_directory
from mqlake.query.store import place, read
from mqlake.storage.local import LocalDirectory
from mqlake.storage.remote.arrow_fs import ArrowDirectory
from mqlake.store import BlockingMessageStore, StoreReader
from tests.golden import store
from tests.query.store.rows import batch_rows
from tests.query.store.truth import comparable, expected_rows


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> str:
    """Let a URL mean the golden store, through pyarrow's file systems."""
    files = SubTreeFileSystem(str(store("rmq5-clean").path), LocalFileSystem())

    def open_remote(location: Location) -> ArrowDirectory:
        return ArrowDirectory(files, "", location.path)

    monkeypatch.setattr(place, "open_location", open_remote)
    monkeypatch.setattr(read, "open_location", open_remote)
    return "s3://bucket/store"


def test_a_store_behind_a_url(remote: str) -> None:
    rows = batch_rows(remote, minPartitions=3)
    assert expected_rows(store("rmq5-clean")) == [comparable(row) for row in rows]


@pytest.mark.parametrize("path", ["queues", "index"])
def test_push_down_behind_a_url(remote: str, path: str) -> None:
    selection = (AnyText("topic", ("TopicB",)), HasKey(("键-16", "dup-3")))
    rows = batch_rows(remote, selection, accessPath=path, columns="keys,physicalOffset,topic")
    assert rows
    local = str(store("rmq5-clean").path)
    scanned = batch_rows(remote, selection, accessPath="scan", columns="keys,physicalOffset,topic")
    assert rows == scanned
    assert local != remote


def test_which_paths_are_of_this_machine(tmp_path: Path) -> None:
    directory = tmp_path / "a b"
    for path in (str(directory), directory.as_uri()):
        opened = open_directory(path)
        assert isinstance(opened, LocalDirectory)
        assert opened.root == directory
    with pytest.raises(StoreError, match="gopher"):
        open_directory("gopher://host/store")


def test_a_directory_that_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no commitlog/ in it, so it is not"):
        batch_rows(tmp_path)
    (tmp_path / "checkpoint").touch()
    (tmp_path / "consumequeue" / "A").mkdir(parents=True)  # a store that lost its log
    with pytest.raises(StoreError, match="there is no commitlog/ in it, so it is not"):
        batch_rows(tmp_path)


def test_an_empty_store_is_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "log" / "commitlog").mkdir(parents=True)
    assert batch_rows(tmp_path / "log") == []
    BlockingMessageStore.open(tmp_path / "opened").close()
    assert batch_rows(tmp_path / "opened") == []
    with StoreReader.open(tmp_path / "opened") as reader:
        assert (reader.min_offset, reader.max_offset) == (0, 0)


def test_a_missing_segment_is_a_loss(tmp_path: Path) -> None:
    golden = store("rmq5-clean")
    path = golden.copy(tmp_path / "store")
    segments = sorted((path / "commitlog").iterdir())
    segments[1].unlink()
    with pytest.raises(StoreError, match="the log lacks 1048576 bytes from 1048576 on"):
        batch_rows(path)
    rows = batch_rows(path, failOnDataLoss=False)
    first, last = int(segments[1].name), int(segments[2].name)
    assert [comparable(row) for row in rows] == [
        row for row in expected_rows(golden) if not first <= row["physicalOffset"] < last
    ]


def test_a_segment_deleted_since_planning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from mqlake.query.store.plan import plan_batch
    from tests.query.store.rows import options_of, task_rows

    path = store("rmq5-clean").copy(tmp_path / "store")
    strict = options_of(path)
    tolerant = options_of(path, failOnDataLoss=False)
    (lost,), (skipped,) = plan_batch(strict).tasks, plan_batch(tolerant).tasks
    first = min((path / "commitlog").iterdir())
    first.unlink()
    with pytest.raises(StoreError, match=f"{first.name}: .*No such file"):
        list(task_rows(lost, strict))
    rows = list(task_rows(skipped, tolerant))
    assert min(row["physicalOffset"] for row in rows) == 1 << 20
    assert "skipped damage in 1 places, 1048576 bytes" in caplog.text
