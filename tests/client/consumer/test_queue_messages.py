"""The unfinished messages of one queue: which offset is committed, and which message is next."""

from __future__ import annotations

from mqlake.client.consumer.queue_messages import QueueMessages
from tests.client.messages import QUEUE, consumed


def test_an_offset_never_passes_an_unfinished_message() -> None:
    held = QueueMessages(QUEUE, lambda: 0.0, in_order=False)
    assert held.committed_offset is None
    messages = [consumed(offset) for offset in (5, 6, 9)]
    held.add(messages, 12)
    assert (held.committed_offset, held.span, held.bytes) == (5, 4, 3)
    assert list(held.take(2)) == messages[:2]
    held.finish(messages[1])
    assert held.committed_offset == 5
    held.finish(messages[0])
    assert held.committed_offset == 9
    held.finish(held.take(9)[0])
    assert (held.committed_offset, len(held), held.bytes, held.take(1)) == (12, 0, 0, ())


def test_a_broker_that_answers_with_other_offsets_moves_nothing_back() -> None:
    held = QueueMessages(QUEUE, lambda: 0.0, in_order=False)
    held.add([consumed(5)], 6)
    (first,) = held.take(1)
    held.finish(first)
    later, late = consumed(8), consumed(7)
    held.add([later, late, consumed(5), consumed(4)], 9)
    assert list(held.take(9)) == [late, later]
    held.finish(later)
    assert held.committed_offset == 7
    held.finish(late)
    assert held.committed_offset == 9


def test_an_ordered_queue_waits_for_its_unfinished_messages() -> None:
    now = 0.0
    held = QueueMessages(QUEUE, lambda: now, in_order=True)
    assert not held.is_locked
    first, second = consumed(0), consumed(1)
    held.add((first, second), 2)
    assert held.take(1) == ()  # not locked
    held.locked_until = 30.0
    assert list(held.take(1)) == [first]
    assert held.take(1) == ()
    held.give_back(first, 1)
    held.suspended_until = 1.0
    assert held.take(1) == ()
    now = 1.0
    again, then = held.take(2)
    assert (again.queue_offset, again.reconsume_times, then) == (0, 1, second)
    assert not held.is_out(first)
    held.finish(again)
    assert not held.is_ready
    held.drop()
    assert not held.is_out(second)
    assert held.committed_offset is None


def test_only_the_latest_delivery_of_a_message_finishes_it() -> None:
    held = QueueMessages(QUEUE, lambda: 0.0, in_order=False)
    held.add([consumed(offset) for offset in range(4)], 4)
    batch = held.take(3)
    for message in batch:  # given back one after the other: they keep their order
        held.give_back(message, 1)
    assert not any(held.is_out(message) for message in batch)
    assert [message.queue_offset for message in held.take(9)] == [0, 1, 2, 3]
    assert not any(held.is_out(message) for message in batch)
    assert held.committed_offset == 0


def test_a_parked_message_belongs_to_nobody() -> None:
    held = QueueMessages(QUEUE, lambda: 0.0, in_order=True)
    held.locked_until = 30.0
    held.add([consumed(0), consumed(1)], 2)
    (first,) = held.take(1)
    held.park(first)
    assert (held.is_out(first), held.is_parked(first)) == (False, True)
    assert (held.has_out, held.is_ready, held.out_since(1.0)) == (True, False, [])
    held.give_back(first, 1)
    (again,) = held.take(1)
    assert (held.is_parked(first), held.is_parked(again), held.is_out(again)) == (
        False,
        False,
        True,
    )
    held.park(again)
    held.finish(again)
    assert (held.committed_offset, held.has_out, held.is_ready) == (1, False, True)


def test_a_restart_waits_for_handlers_in_order() -> None:
    held = QueueMessages(QUEUE, lambda: 0.0, in_order=True)
    held.locked_until = 30.0
    held.add([consumed(5), consumed(6)], 7)
    (old,) = held.take(1)
    held.restart(2, {old})
    assert (held.committed_offset, len(held), held.bytes, held.is_out(old)) == (2, 0, 0, False)
    held.add([consumed(2)], 3)
    assert (held.has_out, held.take(1)) == (True, ())
    assert held.release(old)
    assert not held.release(old)
    assert [message.queue_offset for message in held.take(1)] == [2]
