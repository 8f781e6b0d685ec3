"""Without the table of incarnations, readers of a stopped store and its recovery agree."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqlake.formats.config.topics import Topic
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import verify
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reader import StoreReader
from tests.store.incarnations.test_older_log import fill, open_store


def put(store: OwnedStore, topic: str, queue_id: int, body: bytes) -> None:
    assert store.puts.put(Message(topic, body, keys="key", queue_id=queue_id)).is_ok


def lose_table(path: Path) -> None:
    for file in (path / "config").glob("incarnations.json*"):
        file.unlink()


@pytest.mark.parametrize("lives_after", [False, True])
def test_the_newest_messages_of_a_log_are_those_of_a_deleted_topic(
    tmp_path: Path, lives_after: bool
) -> None:
    store = open_store(tmp_path)
    store.config.topics.put(Topic("Other", 1, 1))
    fill(store, "Other", 2)
    for _ in range(3):
        put(store, "T", 0, b"dead")
    store.removal.remove("T")
    if lives_after:
        fill(store, "Other", 1)
    store.close()
    lose_table(tmp_path)

    with StoreReader.open(tmp_path) as reader:
        assert reader.get("T", 0, 0, 10).records == []
        assert reader.by_key("T", "key").records == []
        assert list(reader.topics()) == ["Other"]
    assert verify(tmp_path, LocalEngine(1)).deleted_topic_records == 3
    report = rebuild(tmp_path, LocalEngine(1), out=tmp_path / "built")
    assert report.deleted_topic_records == 3
    store = open_store(tmp_path)
    assert store.reads.topics() == ["Other"]
    store.close()


def test_a_queue_that_the_topic_has_lost_does_not_stand_for_one_that_was_lost(
    tmp_path: Path,
) -> None:
    store = open_store(tmp_path)
    store.config.topics.put(Topic("T", 3, 3))
    put(store, "T", 2, b"lives")
    for queue_id in (0, 1):
        put(store, "T", queue_id, b"lives")
    store.config.topics.put(Topic("T", 4, 4))
    put(store, "T", 3, b"lives")
    store.config.topics.put(Topic("T", 3, 3))
    store.close()
    lose_table(tmp_path)
    shutil.rmtree(tmp_path / "consumequeue" / "T" / "2")

    store = open_store(tmp_path)
    bodies = [record.body for record in store.reads.get("T", 2, 0, 10).records]
    store.close()

    assert bodies == [b"lives"]
