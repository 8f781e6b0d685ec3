"""A store forgets deleted topics of which its log has no records; its archive still has them."""

from __future__ import annotations

import json
from pathlib import Path

import mqlake
from mqlake.formats.config.topics import Topic
from mqlake.jobs.archive.job import archive
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.object_target import LocalTarget
from mqlake.store.append.message import Message
from mqlake.store.archive.opening import open_place
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reader import StoreReader
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock

SMALL = StoreSettings(
    mapped_file_size_commit_log=4096,
    mapped_file_size_consume_queue=2000,
    max_hash_slot_num=16,
    max_index_num=64,
)


def open_store(path: Path) -> OwnedStore:
    return OwnedStore.open(LocalOwnedDirectory.make(path), SMALL, ManualClock())


def fill(store: OwnedStore, topic: str, count: int, body: bytes) -> None:
    if topic not in store.config.topics:
        store.config.topics.put(Topic(topic, 1, 1))
    for _ in range(count):
        assert store.puts.put(Message(topic, body, keys="key")).is_ok


def archived(path: Path) -> None:
    archive(path / "store", LocalTarget(path / "archive"))


def forget(path: Path) -> None:
    """Remove the log's first segments as retention does, and forget what they had."""
    for segment in sorted((path / "commitlog").iterdir())[:-1]:
        segment.unlink()
    store = open_store(path)
    topics = store.config.topics
    store.config.incarnations.prune(store.log.min_offset, topics.__contains__, lambda _: False)
    assert store.log.min_offset > 0
    store.close()


def bodies(path: Path, topic: str, *, is_joined: bool) -> list[list[bytes]]:
    """Return what readers of an archive, alone or with the store, have of a topic."""
    places = (path / "store", path / "archive") if is_joined else (path / "archive", None)
    directory = open_place(str(places[0]), str(places[1]) if places[1] else None)
    reader = StoreReader.open(directory)
    table = mqlake.open(
        places[0], columns=["topic", "body"], **({"archive": str(places[1])} if is_joined else {})
    ).to_arrow()
    rows = zip(table["topic"].to_pylist(), table["body"].to_pylist(), strict=True)
    found = [
        [record.body for record in reader.get(topic, 0, 0, 1000).records],
        [record.body for record in reader.by_key(topic, "key", max=1000).records],
        [body for name, body in rows if name == topic],
    ]
    reader.close()
    return found


def test_a_topic_that_the_store_has_forgotten_stays_dead_in_its_archive(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    fill(store, "Gone", 20, b"old")
    fill(store, "Again", 20, b"old")
    for topic in ("Gone", "Again"):
        store.config.topics.remove(topic)
        store.removal.remove(topic)
    fill(store, "Other", 100, b"other")
    store.close()
    archived(tmp_path)
    for is_joined in (False, True):
        assert bodies(tmp_path, "Gone", is_joined=is_joined) == [[], [], []]

    forget(tmp_path / "store")
    table = json.loads((tmp_path / "store" / "config" / "incarnations.json").read_text())
    assert table["topics"] == {}
    assert bodies(tmp_path, "Gone", is_joined=True) == [[], [], []]
    archived(tmp_path)
    store = open_store(tmp_path / "store")
    fill(store, "Again", 5, b"new")
    fill(store, "Other", 100, b"other")
    store.close()
    for _ in range(2):
        archived(tmp_path)
        for is_joined in (False, True):
            assert bodies(tmp_path, "Gone", is_joined=is_joined) == [[], [], []]
            assert bodies(tmp_path, "Again", is_joined=is_joined) == [[b"new"] * 5] * 3
            (others,) = {len(each) for each in bodies(tmp_path, "Other", is_joined=is_joined)}
            assert others >= 100
