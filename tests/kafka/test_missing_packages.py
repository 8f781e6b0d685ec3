"""Without the packages of `mqlake[kafka]`: an error that says so, and not a word of damage."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqlake.errors import FormatError, MqlakeError
from mqlake.formats.kafka import compression, crc32c
from mqlake.kafka.log.partition import Partition
from mqlake.kafka.log.partition_path import find_partitions
from mqlake.kafka.repair.recover import recover
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.summary import inspect
from mqlake.kafka.verify.partitions import verify_partitions
from mqlake.storage.local import LocalDirectory
from tests.golden_kafka import GoldenPartition


@pytest.fixture(autouse=True)
def without(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MQLAKE_KERNEL", "reference")
    for name in ("google_crc32c", "cramjam"):
        monkeypatch.setitem(sys.modules, name, None)
    caches = (crc32c._library, compression._cramjam)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@contextmanager
def missing() -> Iterator[None]:
    with pytest.raises(MqlakeError, match=r"pip install 'mqlake\[kafka\]'") as caught:
        yield
    assert not isinstance(caught.value, FormatError)


def test_a_recovery_changes_nothing(tmp_path: Path) -> None:
    path = GoldenPartition("plain-none-0").copy(tmp_path / "plain-none-0")
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    for named in (path, min(path.glob("*.log"))):
        with missing():
            recover(named, find_partitions(named), LogSettings())
        assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_reading_and_checking() -> None:
    path = GoldenPartition("c-gzip-0").path
    with missing():
        verify_partitions(str(path), find_partitions(path).partitions)
    with Partition(LocalDirectory(path)) as partition, missing():
        next(partition.records(on_damage=lambda damage: None))
    with missing():
        inspect(str(path), find_partitions(path))


def test_codecs() -> None:
    for codec in compression.Compression:
        if codec is not compression.Compression.NONE:
            with missing():
                compression.decompress(codec, b"x")
            with missing():
                compression.compress(codec, b"x")
