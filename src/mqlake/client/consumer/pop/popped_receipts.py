"""The receipts of popped messages, as clients build them from a broker's answer.

Upstream: `MQClientAPIImpl.processPopResponse`, `ExtraInfoUtil`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from mqlake.client.message import ReceivedMessage
from mqlake.formats.own_properties import POP_RECEIPT
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.handles.receipts import Receipt, parse_receipt
from mqlake.protocol.headers.pop import PopAnswerHeader
from mqlake.protocol.retry_topics import mark_of, marked, normal_topic

_ANY_REVIVE_QUEUE: Final = 2**31
_MOST_DIGITS: Final = 19

M = TypeVar("M", bound=ReceivedMessage)


def with_receipts(
    header: PopAnswerHeader, messages: Iterable[M], broker_name: str, group: str
) -> Iterator[tuple[M, Receipt]]:
    """Yield the messages of an answer with their receipts.

    Args:
        header: of the answer.
        broker_name: the name of the broker that answered.
        group: the group that popped.
    """
    starts = _numbers(header.start_offset_info)
    counts = _numbers(header.order_count_info)
    for message in messages:
        given = _given_receipt(message, header.pop_time)
        if given is not None:
            topic = marked(given.mark, normal_topic(message.topic, group), group)
            message.queue = MessageQueue(topic, broker_name, given.queue_id)
            message.queue_offset = given.queue_offset
            yield message, given
            continue
        queue, mark = message.queue, mark_of(message.queue.topic)
        place = mark, str(queue.queue_id)
        if counts:
            # Of messages that were popped in order, the record does not say how often.
            times = counts.get((mark, f"qo{queue.queue_id}%{message.queue_offset}"))
            times = counts.get(place, 0) if times is None else times
            message.reconsume_times = max(message.reconsume_times, times)
        yield (
            message,
            Receipt(
                start_offset=starts.get(place, message.queue_offset),
                pop_time=header.pop_time,
                invisible_time=header.invisible_time,
                revive_queue_id=header.revive_qid,
                mark=mark,
                broker_name=broker_name,
                queue_id=queue.queue_id,
                queue_offset=message.queue_offset,
            ),
        )


def _numbers(text: str | None) -> dict[tuple[str, str], int]:
    """Return the numbers of "mark place number;mark place number" by mark and place."""
    found: dict[tuple[str, str], int] = {}
    for part in (text or "").split(";"):
        mark, _, rest = part.partition(" ")
        place, _, number = rest.partition(" ")
        if number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS:
            found[mark, place] = int(number)
    return found


def _given_receipt(message: ReceivedMessage, pop_time: int) -> Receipt | None:
    """Return the receipt that a broker of RocketMQ 5 adds to a retried message.

    It gives such a message its original topic, and the receipt says where the message is. A receipt
    of an earlier pop is ignored.
    """
    text = message.properties.get(POP_RECEIPT)
    if text is None:
        return None
    try:
        receipt = parse_receipt(text, _ANY_REVIVE_QUEUE)
    except RemotingError:
        return None
    return receipt if receipt.pop_time == pop_time else None
