"""Messages that wait while their topic is deleted, in every kind of waiting: they are dropped."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mqlake.formats.config.topics import Topic
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.formats.topic_names import HALF_TOPIC, TIMER_TOPIC
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutResult
from mqlake.store.delivery.transactions import EndStatus
from tests.store.delivery.test_put_again import KINDS, Again


def delete_topic(again: Again) -> None:
    """Delete the topic of the messages."""
    again.store.removal.remove("T")


def commit(again: Again, put: PutResult) -> EndStatus:
    offsets = put.physical_offset, put.queue_offset
    return again.store.transactions.end(*offsets, "producers", commit=True).status


@settings(deadline=None, max_examples=4, phases=(Phase.generate,))
@pytest.mark.parametrize("kind", KINDS)
@given(
    old=st.integers(1, 3),
    new=st.integers(0, 3),
    waited=st.integers(0, 80),
    is_restarted=st.booleans(),
)
def test_a_topic_that_is_created_again_gets_no_message_of_the_deleted_one(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    old: int,
    new: int,
    waited: int,
    is_restarted: bool,
) -> None:
    again = Again(tmp_path_factory.mktemp("store"))
    dead = [again.send(kind, b"", b"old%d" % number) for number in range(old)]
    assert all(put.is_ok for put in dead)
    # A timer message is put again meanwhile, and a half message with each check.
    again.pass_time(0 if kind == "half" else waited)
    arrived = len(again.records())
    again.asked.clear()
    delete_topic(again)
    if is_restarted:
        again.reopen()
    puts = [again.send(kind, b"", b"new%d" % number) for number in range(new)]
    if kind == "half":
        for put in dead:
            assert commit(again, put) is EndStatus.TOPIC_DELETED
        for put in puts:
            again.settle(kind, put)
    else:
        again.settle(kind, dead[0])

    assert [record.body for record in again.records()] == [b"new%d" % each for each in range(new)]
    assert again.store.redelivery.dead == old - arrived
    assert again.store.redelivery.set_aside == 0
    log = [record for topic in (HALF_TOPIC, TIMER_TOPIC) for record in again.records(topic, 0)]
    log += again.records(SCHEDULE_TOPIC, 0)
    bodies = {record.body for record in log}
    assert bodies >= {b"old%d" % each for each in range(old)}


@pytest.mark.parametrize("is_answer", [False, True])
def test_a_transaction_of_a_deleted_topic_is_not_committed(tmp_path: Path, is_answer: bool) -> None:
    again = Again(tmp_path)
    put = again.send("half", b"")
    delete_topic(again)
    offsets = put.physical_offset, put.queue_offset
    end = again.store.transactions.end
    ended = end(*offsets, "producers", commit=True, is_answer=is_answer)
    assert ended == (EndStatus.TOPIC_DELETED, None)
    assert commit(again, put) is EndStatus.ALREADY_ENDED
    again.pass_time(200)
    assert again.asked == again.records() == []
    assert again.store.redelivery.dead == 1


def test_a_transaction_of_a_deleted_topic_can_be_rolled_back(tmp_path: Path) -> None:
    again = Again(tmp_path)
    put = again.send("half", b"")
    delete_topic(again)
    offsets = put.physical_offset, put.queue_offset
    ended = again.store.transactions.end(*offsets, "producers", commit=False)
    assert ended.status is EndStatus.OK
    assert again.store.redelivery.dead == 0
    assert dict(again.store.transactions.rolled_back) == {}


def test_drops_are_reported_with_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    again = Again(tmp_path)
    for _ in range(3):
        again.send("delay", b"")
    delete_topic(again)
    with caplog.at_level(logging.WARNING):
        again.pass_time(5)
    (line,) = [text for text in caplog.messages if "was deleted" in text]
    assert line == (
        "topic T was deleted after messages were sent that waited for it; dropped, but still in "
        "the log: 3"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_that_waits_for_a_topic_without_queues_and_settings_outlives_a_lost_table(
    tmp_path: Path, kind: str
) -> None:
    again = Again(tmp_path)
    again.store.config.topics.put(Topic("Other", 1, 1))
    put = again.send(kind, b"", b"first")
    again.store.puts.put(Message("Other", b"later"))
    again.store.close()
    for path in (tmp_path / "config").glob("incarnations.json*"):
        path.unlink()
    again.reopen()
    assert again.store.config.incarnations.others > put.physical_offset
    again.settle(kind, put)
    assert [record.body for record in again.records()] == [b"first"]
    assert again.store.redelivery.dead == 0
