"""Stores and archives on a real HDFS."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.jobs.archive.check import check
from mqlake.jobs.archive.job import archive
from mqlake.jobs.local import LocalEngine
from mqlake.storage.object_target import open_target
from mqlake.storage.remote.arrow_fs import open_url
from tests.peer.hdfs_cluster import Hdfs
from tests.peer.java_build import JavaMissingError
from tests.query.store.growing import GrowingStore
from tests.query.store.rows import batch_rows
from tests.until import PATIENCE

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    pytest.importorskip("hdfs_native")
    try:
        started = Hdfs(tmp_path_factory.mktemp("hdfs") / "cluster")
    except JavaMissingError as reason:
        pytest.skip(f"without HDFS: {reason}")
    yield started
    started.close()


def test_an_archive_and_the_live_directory(hdfs: Hdfs, tmp_path: Path) -> None:
    growing, place = GrowingStore(tmp_path / "store"), f"{hdfs.url}/archives/broker-a"
    growing.grow(60)
    archive(growing.path, open_target(place))
    growing.grow(60)
    target = open_target(place)
    end = archive(growing.path, target).max_offset
    assert check(target.directory, LocalEngine(1)).damage == []
    for segment in sorted((growing.path / "commitlog").iterdir()):
        if int(segment.name) < end:
            segment.unlink()
    options = {"columns": "keys,physicalOffset"}
    both = batch_rows(growing.path, archive=place, **options)
    assert [row["keys"][0] for row in both] == growing.keys
    closed = batch_rows(place, **options)
    assert closed == [row for row in both if row["physicalOffset"] < end]


def test_a_plain_store_directory(hdfs: Hdfs, tmp_path: Path) -> None:
    growing, place = GrowingStore(tmp_path / "store"), f"{hdfs.url}/stores/broker-b"
    growing.grow(20)
    target = open_target(place)
    for path in growing.path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            target.put(path.relative_to(growing.path).as_posix(), len(data), [data])
    rows = batch_rows(place, columns="keys,physicalOffset")
    assert [row["keys"][0] for row in rows] == growing.keys


def test_what_is_not_there_is_one_line(hdfs: Hdfs) -> None:
    with pytest.raises(StoreError, match="no commitlog/ in it"):
        batch_rows(f"{hdfs.url}/nothing")
    with pytest.raises(StoreError, match="the name node is missing"):
        open_url("hdfs:///archives")


def test_a_child_of_a_process_that_used_hdfs_starts(hdfs: Hdfs) -> None:
    """A client is not dropped in it, where that would wait for the parent's threads."""
    with pytest.raises(StoreError):
        batch_rows(f"{hdfs.url}/nothing")
    child = os.fork()
    if child == 0:
        os._exit(0)
    deadline = time.monotonic() + PATIENCE
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            pytest.fail("the child hangs")
        time.sleep(0.05)
