"""Stores of small files, filled and served."""

from __future__ import annotations

from mqlake.errors import SyncError
from mqlake.store import Message
from mqlake.store.owned_store import OwnedStore

SMALL = {
    "mapped_file_size_commit_log": 4096,
    "mapped_file_size_consume_queue": 200,
    "max_hash_slot_num": 16,
    "max_index_num": 32,
}

WIRE = {
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
}


def fill(store: OwnedStore, count: int = 60) -> None:
    for number in range(count):
        assert store.puts.put(Message("Topic", b"%d" % number, keys=f"k{number}")).is_ok
    store.tick()


def run_services(store: OwnedStore) -> None:
    while (job := store.services.due()) is not None:
        try:
            job.run()
        except SyncError as error:
            store.health.fail(error)
        else:
            job.done()
