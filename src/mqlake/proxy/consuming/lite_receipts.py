"""The receipts of popped messages of lite topics, as RocketMQ's proxy builds them.

Upstream: `MQClientAPIImpl.processPopLiteResponse`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mqlake.client.message import ReceivedMessage
from mqlake.formats.properties import MULTI_QUEUE_OFFSET
from mqlake.protocol.handles.receipts import Receipt
from mqlake.protocol.headers.lite import PopLiteAnswerHeader

_MOST_DIGITS = 18


def with_lite_receipts(
    header: PopLiteAnswerHeader, messages: Iterable[ReceivedMessage], broker_name: str
) -> Iterator[tuple[ReceivedMessage, Receipt]]:
    """Yield the messages of an answer with their receipts.

    Args:
        header: of the answer.
        broker_name: the name of the broker that answered.
    """
    counts = (header.order_count_info or "").split(";")
    for number, message in enumerate(messages):
        text = message.properties.get(MULTI_QUEUE_OFFSET, "")
        if not _is_number(text):
            continue
        message.queue_offset = int(text)
        if number < len(counts) and _is_number(counts[number]):
            message.reconsume_times = int(counts[number])
        yield (
            message,
            Receipt(
                start_offset=0,
                pop_time=header.pop_time,
                invisible_time=header.invisible_time,
                revive_queue_id=header.revive_qid,
                broker_name=broker_name,
                queue_id=0,
                queue_offset=message.queue_offset,
            ),
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
