from __future__ import annotations

from mqlake.formats.own_properties import TIMER_ROLL_TIMES
from mqlake.formats.properties import CANCEL, REAL_TOPIC, UNIQ_KEY
from mqlake.formats.record import Record
from mqlake.formats.timer_log import MAGIC_DELETE, MAGIC_ROLL
from mqlake.formats.topic_names import TIMER_TOPIC
from mqlake.store.delivery.waiting_timers import WaitingTimers

PRECISION = 10


def waiting(key: str, **properties: str) -> Record:
    """Return the record of a waiting message for the topic T."""
    pairs = {REAL_TOPIC: "T", UNIQ_KEY: key, **properties}
    numbers = (0, 0, 0, 100, 0, 0, 0, 1)
    return Record(TIMER_TOPIC, *numbers, "127.0.0.1:1", 2, "127.0.0.1:2", 0, 0, pairs, b"body")


def test_waiting_messages_are_counted_by_topic_until_they_end() -> None:
    timers = WaitingTimers(PRECISION)
    timers.add(0, waiting("A"), 50, 50)
    timers.add(1, waiting("B"), 60, 60)
    timers.note_end(waiting("A"))
    timers.pop()
    assert timers.by_topic == {"T": 1}
    assert timers.wheel.count == 1


def test_the_counts_are_empty_once_no_message_waits() -> None:
    """The topic of a message whose record is gone is unknown when its waiting ends."""
    timers = WaitingTimers(PRECISION)
    timers.add(0, waiting("A"), 50, 50)
    timers.pop()
    assert timers.by_topic == {}


def test_a_cancellation_is_for_one_key_and_one_slot() -> None:
    timers = WaitingTimers(PRECISION)
    timers.add(0, waiting("request", **{CANCEL: "T+A"}), 50, 50)
    assert timers.is_cancelled(waiting("A"), 55)
    assert not timers.is_cancelled(waiting("A"), 60)
    assert not timers.is_cancelled(waiting("B"), 55)


def test_a_message_that_was_put_again_replaces_its_original() -> None:
    timers = WaitingTimers(PRECISION)
    timers.add(0, waiting("A"), 100, 50)
    timers.discard_original(waiting("A", **{TIMER_ROLL_TIMES: "1"}), 100)
    assert timers.wheel.count == 0
    assert timers.flags() == {}


def test_flags_name_messages_to_be_put_again_and_cancellations() -> None:
    timers = WaitingTimers(PRECISION)
    timers.add(0, waiting("A"), 100, 50)
    timers.add(1, waiting("B"), 100, 100)
    timers.add(2, waiting("C", **{CANCEL: "T+A"}), 100, 50)
    assert timers.flags() == {0: MAGIC_ROLL, 2: MAGIC_ROLL | MAGIC_DELETE}
