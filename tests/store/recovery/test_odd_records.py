"""Records that look torn and are not: recovery keeps each of them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from mqlake.formats import record_crc
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore
from mqlake.store.recovery.abort_mark import mark_open
from mqlake.store.settings import FlushDiskType, StoreSettings
from tests.jobs.model import read_log
from tests.odd_messages import STALE_CRC
from tests.store.odd_logs import (
    BODIES,
    PROPERTIES,
    SIZES,
    open_store,
    rocketmq_log,
    stored_properties,
)


@pytest.mark.parametrize("last", range(len(PROPERTIES)))
def test_a_store_that_rocketmq_left_opens_whole(last: int, tmp_path: Path) -> None:
    written = [*PROPERTIES, PROPERTIES[last]]
    end = rocketmq_log(tmp_path, written)
    mark_open(LocalOwnedDirectory(tmp_path))

    found = open_store(tmp_path)

    assert (found.report.log_end, found.report.records) == (end, len(written))
    assert stored_properties(tmp_path) == written
    assert found.report.cut_off == ()
    assert open_store(tmp_path).report.log_end == end


@pytest.mark.parametrize("flush", list(FlushDiskType))
def test_acknowledged_messages_outlive_a_kill(flush: FlushDiskType, tmp_path: Path) -> None:
    settings = StoreSettings(**SIZES, flush_disk_type=flush, sync_flush_timeout=60_000)
    dice = random.Random(flush.value)
    messages = [
        Message("T", body, encoded_properties=each, queue_id=dice.randrange(3))
        for body in BODIES
        for each in PROPERTIES
    ]
    dice.shuffle(messages)
    copies: list[tuple[int, Path]] = []
    with BlockingMessageStore.open(tmp_path / "store", settings) as store:
        for number, message in enumerate(messages):
            assert store.put(message).is_ok
            if dice.random() < 0.05 or message is messages[-1]:
                copies.append((number + 1, tmp_path / f"copy{number}"))
                shutil.copytree(tmp_path / "store", copies[-1][1])

    for count, copy in copies:
        found = open_store(copy, settings)
        kept = list(zip(read_log(copy), stored_properties(copy), strict=True))
        assert len(kept) == count
        assert found.report.cut_off == ()
        for message, (each, properties) in zip(messages, kept, strict=False):
            assert (each.body, each.queue_id) == (message.body, message.queue_id)
            assert _without_checksum(properties) == _as_stored(message.encoded_properties or b"")
        assert open_store(copy, settings).report.records == 0


def _without_checksum(properties: bytes) -> bytes:
    assert record_crc.stated(properties) is not None
    return properties[: -record_crc.SIZE]


def _as_stored(properties: bytes) -> bytes:
    """Return what is stored before the checksum: a property of its name goes, the last one ends."""
    pairs = [each for each in properties.split(b"\2") if not each.startswith(STALE_CRC[:9])]
    stored = b"\2".join(pairs)
    return stored + b"\2" if stored and not stored.endswith(b"\2") else stored
