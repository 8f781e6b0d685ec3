"""Messages that wait while their topic loses queues, in every kind of waiting."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mqlake.formats.config.topics import Topic
from mqlake.store.delivery.put_again import readable_queue
from tests.store.delivery.test_put_again import KINDS, Again

MOST = 6


def topic(read: int, write: int) -> Topic:
    return Topic(topic_name="T", read_queue_nums=read, write_queue_nums=write)


@settings(deadline=None, max_examples=4, phases=(Phase.generate,))
@pytest.mark.parametrize("kind", KINDS)
@given(
    before=st.integers(1, MOST),
    read=st.integers(1, MOST),
    write=st.integers(0, MOST),
    is_restarted=st.booleans(),
)
def test_a_waiting_message_is_put_where_consumers_read(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    before: int,
    read: int,
    write: int,
    is_restarted: bool,
) -> None:
    again = Again(tmp_path_factory.mktemp("store"))
    topics = again.store.config.topics
    topics.put(topic(before, before))
    puts = [again.send(kind, b"", b"%d" % queue, queue_id=queue) for queue in range(before)]
    assert all(put.is_ok for put in puts)
    topics.put(topic(read, write))
    if is_restarted:
        again.reopen()
    for put in puts if kind == "half" else puts[:1]:
        again.settle(kind, put)

    topics = again.store.config.topics
    count = min(read, write) or read
    found = {queue: [record.body for record in again.records("T", queue)] for queue in range(MOST)}
    assert {queue for queue, bodies in found.items() if bodies} <= set(range(count))
    for queue in range(before):
        assert found[queue % count].count(b"%d" % queue) == 1
    assert again.store.redelivery.moved == max(0, before - count)
    assert again.store.redelivery.set_aside == 0


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_a_queue_that_is_there_keeps_its_messages(read: int, write: int, queue: int) -> None:
    found = readable_queue(topic(read, write), queue)
    if queue < min(read, write):
        assert found == queue
    elif read:
        assert 0 <= found < read
    else:
        assert found == queue  # Nobody reads the topic.
    assert readable_queue(None, queue) == queue


def test_moves_are_reported_with_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    again = Again(tmp_path)
    again.store.config.topics.put(topic(4, 4))
    for _ in range(3):
        again.send("delay", b"", queue_id=3)
    again.store.config.topics.put(topic(2, 2))
    with caplog.at_level(logging.WARNING):
        again.pass_time(5)
    (line,) = [text for text in caplog.messages if "no longer has" in text]
    assert line == (
        "topic T no longer has queue 3; messages that waited for it and were put to queue 1: 3"
    )
