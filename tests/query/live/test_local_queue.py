"""Tasks read the broker's files where they are, and get the rows that they would pull."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.query.live.brokers import Brokers
from mqlake.query.live.local_queue import LocalQueue
from mqlake.storage.local import LocalDirectory
from mqlake.store import BlockingMessageStore, Message
from mqlake.testing import RunningBroker
from tests.query.live.rows import batch_rows
from tests.query.live.topics import NumberedTopic


@pytest.fixture
def topic(running: RunningBroker) -> NumberedTopic:
    made = NumberedTopic(running)
    made.send(60, size=300)
    made.send(20, tags="b")
    return made


@pytest.fixture
def pulled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records each pull has asked for: more than one if it is for rows."""
    counts: list[int] = []
    pull = Brokers.pull

    async def count(self: Brokers, queue: Any, offset: int, most: int, *words: Any) -> Any:
        counts.append(most)
        return await pull(self, queue, offset, most, *words)

    monkeypatch.setattr(Brokers, "pull", count)
    return counts


@pytest.mark.parametrize(
    "narrow", [{}, {"tags": "b"}, {"minPartitions": 7}, {"columns": "keys,physicalOffset"}]
)
def test_the_same_rows(
    running: RunningBroker, topic: NumberedTopic, pulled: list[int], narrow: dict[str, Any]
) -> None:
    asked = {"subscribe": topic.name, **narrow}
    expected = batch_rows(running.name_server, **asked)
    assert set(pulled) != {1}
    pulled.clear()
    stores = f"/nonexistent,{running.store}"
    assert batch_rows(running.name_server, **asked, localStore=stores) == expected
    assert set(pulled) == {1}


def test_another_store_at_the_same_path(
    running: RunningBroker, topic: NumberedTopic, pulled: list[int], tmp_path: Path
) -> None:
    with BlockingMessageStore.open(tmp_path) as store:
        for number in range(100):
            store.put(Message(topic.name, b"of another broker", queue_id=number % 2))
    found = batch_rows(running.name_server, subscribe=topic.name, localStore=tmp_path)
    assert found == batch_rows(running.name_server, subscribe=topic.name)
    assert len(found) == 80
    assert set(pulled) != {1}


def copied(running: RunningBroker, path: Path) -> Path:
    """Return a copy of the broker's store."""
    shutil.copytree(running.store / "commitlog", path / "commitlog")
    shutil.copytree(running.store / "consumequeue", path / "consumequeue")
    return path


def test_a_store_that_went_another_way(
    running: RunningBroker, topic: NumberedTopic, tmp_path: Path
) -> None:
    """As that of a former master, which has records that its group does not have."""
    copy = copied(running, tmp_path / "store")
    with BlockingMessageStore.open(copy) as store:
        for number in range(10):
            store.put(Message(topic.name, b"which nobody confirmed", queue_id=number % 2))
    topic.send(10)
    expected = batch_rows(running.name_server, subscribe=topic.name)
    assert batch_rows(running.name_server, subscribe=topic.name, localStore=copy) == expected


def test_an_entry_that_leads_to_another_queue(
    running: RunningBroker, topic: NumberedTopic, tmp_path: Path
) -> None:
    other = NumberedTopic(running)
    other.send(80)
    copy = copied(running, tmp_path / "store")
    (mine,), (its,) = (
        list((copy / "consumequeue" / name / "0").iterdir()) for name in (topic.name, other.name)
    )
    entry = its.read_bytes()[200:220]
    with mine.open("r+b") as file:
        file.seek(200)
        file.write(entry)
    expected = batch_rows(running.name_server, subscribe=topic.name)
    assert batch_rows(running.name_server, subscribe=topic.name, localStore=copy) == expected


def test_what_is_damaged_in_the_files_is_pulled(
    running: RunningBroker, topic: NumberedTopic, tmp_path: Path
) -> None:
    copy = copied(running, tmp_path / "store")
    expected = batch_rows(running.name_server, subscribe=topic.name)
    (segment,) = (copy / "commitlog").iterdir()
    with segment.open("r+b") as file:
        file.seek(expected[40]["physicalOffset"] + 90)
        file.write(b"!")
    assert batch_rows(running.name_server, subscribe=topic.name, localStore=copy) == expected


def test_a_place_that_cannot_be_read(running: RunningBroker, topic: NumberedTopic) -> None:
    expected = batch_rows(running.name_server, subscribe=topic.name)
    place = f"/{'x' * 300}"
    assert batch_rows(running.name_server, subscribe=topic.name, localStore=place) == expected


@pytest.mark.parametrize("lacking", ["consumequeue", "commitlog"])
def test_what_the_files_lack_is_pulled(
    running: RunningBroker, topic: NumberedTopic, pulled: list[int], tmp_path: Path, lacking: str
) -> None:
    """A copy of the store from before the last messages."""
    copy = copied(running, tmp_path / "store")
    topic.send(10)
    if lacking == "commitlog":
        newer = running.store / "consumequeue" / topic.name
        shutil.copytree(newer, copy / "consumequeue" / topic.name, dirs_exist_ok=True)
    expected = batch_rows(running.name_server, subscribe=topic.name)
    assert len(expected) == 90
    pulled.clear()
    assert batch_rows(running.name_server, subscribe=topic.name, localStore=copy) == expected
    assert set(pulled) != {1}


def test_files_are_closed_after_a_read_that_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a `limit`, the task ends while another thread reads ahead."""
    with BlockingMessageStore.open(tmp_path) as store:
        store.put(Message("Topic", b"body"))
    local = LocalQueue(LocalDirectory(tmp_path), MessageQueue("Topic", "broker", 0))
    begun, released = threading.Event(), threading.Event()
    read = local._records

    def slow(offset: int, most: int) -> list[memoryview]:
        begun.set()
        assert released.wait(60)
        return read(offset, most)

    monkeypatch.setattr(local, "_records", slow)
    with ThreadPoolExecutor(2) as threads:
        reading = threads.submit(local.records, 0, 1)
        assert begun.wait(60)
        closing = threads.submit(local.close)
        assert wait([closing], timeout=0.2).not_done
        released.set()
        assert b"body" in reading.result(60)
        closing.result(60)
    assert local.records(0, 1) == b""
