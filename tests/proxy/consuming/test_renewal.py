"""When the invisible times of received messages are extended."""

from __future__ import annotations

from mqlake.protocol.handles.receipts import Receipt
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.consuming.deliveries import GroupDelivery
from mqlake.proxy.consuming.message_handle import MessageHandle
from mqlake.proxy.consuming.renewal import HandleOwner, RenewalTable, RenewedMessage

MINUTE = 60_000


def handle(pop_time: int, invisible: int = MINUTE) -> MessageHandle:
    return MessageHandle(Receipt(0, pop_time, invisible, 0, "0", "broker-a", 0, 0), 100)


def received(message_id: str = "ID", client_id: str = "c", pop_time: int = 0) -> RenewedMessage:
    caller = Caller(client_id, "127.0.0.1:5000")
    delivery = GroupDelivery(caller, "g", "T", message_id, handle(pop_time))
    return RenewedMessage(delivery, reconsume_times=0, since=pop_time)


def due(table: RenewalTable, now: int) -> list[str]:
    return [message.message_id for message in table.take_due(now)]


def test_a_message_is_renewed_ten_seconds_before_it_is_visible() -> None:
    table = RenewalTable()
    table.add(received())
    assert due(table, 49_999) == []
    assert due(table, 50_000) == ["ID"]
    assert due(table, 50_000) == []  # It is being renewed.


def test_each_renewal_is_longer_than_the_one_before() -> None:
    message, steps = received(), list[int]()
    for number in range(8):
        steps.append(message.next_invisible // MINUTE)
        message.renewed(handle(number))
    assert steps == [1, 3, 5, 10, 30, 60, 60, 60]


def test_a_renewal_that_failed_is_repeated_until_it_has_failed_three_times() -> None:
    table, message = RenewalTable(), received()
    table.add(message)
    for number in range(3):
        assert not message.is_given_up
        assert due(table, 50_000 + 2000 * number) == ["ID"]
        message.failed()
        table.again(message, 50_000 + 2000 * number)
    assert message.is_given_up


def test_a_renewal_that_succeeds_forgives_failures() -> None:
    message = received()
    message.failed()
    message.failed()
    message.renewed(handle(1))
    message.failed()
    assert not message.is_given_up


def test_a_message_is_not_renewed_for_more_than_three_hours() -> None:
    message = received()
    assert not message.is_too_old(3 * 60 * MINUTE - 1)
    assert message.is_too_old(3 * 60 * MINUTE)


def test_a_settled_message_is_not_renewed_but_known_until_it_is_visible() -> None:
    table, message = RenewalTable(), received()
    table.add(message)
    given = message.given
    message.renewed(handle(50_000))
    table.again(message, 50_000)
    table.release(message)
    found = table.find(HandleOwner("c", "g"), "ID", given)
    assert found is message
    assert found.handle == handle(50_000)
    assert due(table, 100_000) == []
    assert table.find(HandleOwner("c", "g"), "ID", given) is message
    assert due(table, 110_000) == []
    assert table.find(HandleOwner("c", "g"), "ID", given) is None
    assert len(table) == 0


def test_a_client_cannot_use_up_the_table() -> None:
    table = RenewalTable(most=3, most_of_client=2)
    table.add(received("1"))
    table.add(received("2"))
    assert not table.has_room(("127.0.0.1", "c"), 1)
    assert table.has_room(("127.0.0.1", "d"), 1)
    assert not table.has_room(("127.0.0.1", "d"), 2)
    table.add(received("3", "d"))
    assert not table.has_room(("127.0.0.1", "e"), 1)
    (found,) = list(table.take_all("d") or ())
    assert found.message_id == "3"
    assert table.has_room(("127.0.0.1", "e"), 1)


def test_messages_of_a_client_that_ends_are_returned_unless_they_are_settled() -> None:
    table, first, second = RenewalTable(), received("1"), received("2")
    table.add(first)
    table.add(second)
    table.release(first)
    assert list(table.take_all("c") or ()) == [second]
    assert table.take_all("c") is None
    assert len(table) == 0
    assert due(table, 10 * MINUTE) == []
    table.again(second, 0)  # A renewal that was under way ends.
    assert due(table, 10 * MINUTE) == []
