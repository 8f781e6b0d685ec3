"""The receipts of popped messages, from what a broker's answer says of its queues."""

from __future__ import annotations

from mqlake.client.consumer.pop.popped_receipts import with_receipts
from mqlake.client.message import ReceivedMessage
from mqlake.formats.properties import encode_properties
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.handles.receipts import ORDERED, PopInfo
from mqlake.protocol.headers.pop import PopAnswerHeader


def message(
    offset: int, topic: str = "orders", queue_id: int = 1, **properties: str
) -> ReceivedMessage:
    return ReceivedMessage(
        topic="orders",
        body=b"",
        queue=MessageQueue(topic, "", queue_id),
        queue_offset=offset,
        physical_offset=1000 + offset,
        encoded_properties=encode_properties(properties),
        flag=0,
        sys_flag=0,
        born_timestamp=0,
        born_address=b"",
        store_timestamp=0,
        store_address=b"",
        reconsume_times=0,
    )


def header(info: PopInfo) -> PopAnswerHeader:
    return PopAnswerHeader(
        pop_time=7,
        invisible_time=60_000,
        revive_qid=ORDERED,
        rest_num=0,
        start_offset_info=info.start_offset_info,
        msg_offset_info=info.msg_offset_info,
        order_count_info=info.order_count_info,
    )


def test_a_receipt_says_where_the_pop_began_and_where_the_message_is() -> None:
    info = PopInfo()
    info.add("orders", 1, 4, [4, 5])
    found = [receipt.text for _, receipt in with_receipts(header(info), [message(5)], "b", "g")]
    assert found == ["4 7 60000 999 0 b 1 5"]


def test_messages_that_were_popped_in_order_before_know_how_often() -> None:
    info = PopInfo()
    info.add("orders", 1, 4, [4, 5])
    info.add_counts("orders", 1, [(4, 3)], 1)
    messages = [message(4), message(5)]
    found = [each.reconsume_times for each, _ in with_receipts(header(info), messages, "b", "g")]
    assert found == [3, 1]


def test_a_retried_message_is_where_its_own_receipt_says() -> None:
    retried = message(9, POP_CK="2 7 60000 3 1 b 0 2")
    ((found, receipt),) = with_receipts(header(PopInfo()), [retried], "b", "g")
    assert (found.queue, found.queue_offset) == (MessageQueue("%RETRY%g_orders", "b", 0), 2)
    assert receipt.text == "2 7 60000 3 1 b 0 2"


def test_the_receipt_of_an_earlier_pop_is_ignored() -> None:
    retried = message(9, POP_CK="2 6 60000 3 1 b 0 2")
    ((found, receipt),) = with_receipts(header(PopInfo()), [retried], "b", "g")
    assert (found.queue_offset, receipt.queue_offset) == (9, 9)
