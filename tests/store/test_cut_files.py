"""Somebody cuts files underneath a running store, or a reader: each read comes to its end."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store import Message, StoreReader
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.store.small_stores import SMALL, fill

COUNT = 120
SETTINGS = StoreSettings(**SMALL)


def stopped(path: Path) -> None:
    store = OwnedStore.open(LocalOwnedDirectory.make(path), SETTINGS, ManualClock())
    fill(store, COUNT)
    store.close()


def cut(path: Path, folder: str, dice: random.Random) -> Path:
    """Cut a file that the log, or the queue, continues after."""
    files = sorted(file for file in (path / folder).iterdir() if file.stat().st_size)
    file = dice.choice(files[:-2])
    os.truncate(file, dice.choice((0, 1, 19, 20, dice.randrange(file.stat().st_size))))
    return file


def bodies_of(read: Callable[[int], tuple[list[bytes], int]]) -> set[bytes]:
    """Read a queue as a consumer does; it must come to its end."""
    found, offset = set[bytes](), 0
    for _ in range(2 * COUNT):
        if offset >= COUNT:
            return found
        bodies, after = read(offset)
        found |= {*bodies}
        assert after > offset, "a consumer would ask for the same offset for ever"
        offset = after
    raise AssertionError("a consumer does not come to the end")


@pytest.mark.parametrize("folder", ["commitlog", "consumequeue/Topic/0"])
@pytest.mark.parametrize("seed", range(6))
def test_reads_of_a_file_that_was_cut_end(folder: str, seed: int, tmp_path: Path) -> None:
    stopped(tmp_path)
    store = OwnedStore.open(LocalOwnedDirectory.make(tmp_path), SETTINGS, ManualClock())
    dice = random.Random(f"{folder}/{seed}")
    reader = StoreReader.open(tmp_path)
    cut(tmp_path, folder, dice)
    most = dice.choice((1, 7, 1000))

    def live(offset: int) -> tuple[list[bytes], int]:
        result = store.reads.get("Topic", 0, offset, most, max_bytes=1 << 20)
        return [record.body for record in result.records], result.next_offset

    def offline(offset: int) -> tuple[list[bytes], int]:
        result = reader.get("Topic", 0, offset, most)
        return [record.body for record in result.records], result.next_offset

    everything = {b"%d" % number for number in range(COUNT)}
    for read in (live, offline):
        found = bodies_of(read)
        assert found <= everything
        # A reader derives lost queue entries from the log.
        is_lost = folder == "commitlog" or read is live
        assert (found < everything) == is_lost
        assert len(found) > COUNT // 2
    for number in range(0, COUNT, 7):
        key = f"k{number}"
        for record in store.reads.by_key("Topic", key).records:
            assert record.body == b"%d" % number
        for record in reader.by_key("Topic", key).records:
            assert record.body == b"%d" % number
    for offset in range(0, store.log.end, 1000):
        assert store.reads.raw_at(offset) is None or offset < store.log.end
    try:
        store.close()
    except StoreError:
        store.abandon()


@pytest.mark.parametrize("seed", range(4))
def test_keys_are_found_though_index_files_are_missing(seed: int, tmp_path: Path) -> None:
    """A record whose keys lie in two index files is found by each, whichever file is lost."""
    dice = random.Random(seed)
    store = OwnedStore.open(LocalOwnedDirectory.make(tmp_path), SETTINGS, ManualClock())
    keys: dict[int, list[str]] = {}
    for number in range(40):
        keys[number] = [f"k{number}.{key}" for key in range(dice.randrange(1, 9))]
        assert store.puts.put(Message("Topic", b"%d" % number, keys=keys[number])).is_ok
    store.close()
    files = sorted((tmp_path / "index").iterdir())
    assert len(files) > 4
    for lost in ([files[0]], dice.sample(files[1:-1], 2)):
        for file in lost:
            file.unlink(missing_ok=True)
        reader = StoreReader.open(tmp_path)
        for number, its_keys in keys.items():
            for key in its_keys:
                found = [record.body for record in reader.by_key("Topic", key).records]
                assert found == [b"%d" % number], (key, lost)
