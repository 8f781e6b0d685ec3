"""Inner batches: batches of clients that are stored as one record each (RIP-26).

Upstream: `SendMessageProcessor.sendBatchMessage`, `HookUtils.checkInnerBatch`,
`BatchConsumeQueue.assignQueueOffset`, `CommitLog.getMessageNum`.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlake.errors import FormatError
from mqlake.formats import properties, record_crc, sys_flag
from mqlake.formats.batch_consume_queue import MOST_MESSAGES
from mqlake.formats.message_batch import decode_batch
from mqlake.formats.properties import INNER_BASE, INNER_NUM
from mqlake.formats.property_edits import edit
from mqlake.store.append.checks import Refusal, illegal
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutStatus

_FLAGS = sys_flag.INNER_BATCH | sys_flag.NEED_UNWRAP
_DELAY = properties.DELAY.encode()


class InnerBatches:
    """Checks inner batches, and makes one message of each.

    Args:
        has_batches: returns whether a topic's queues are batch consume queues.
    """

    def __init__(self, has_batches: Callable[[str], bool]) -> None:
        self._has_batches = has_batches

    def check(self, batch: MessageBatch) -> int:
        """Return how many messages a batch has.

        Raises:
            Refusal: MESSAGE_ILLEGAL: the batch cannot be an inner batch of its topic;
                PROPERTIES_SIZE_EXCEEDED: the properties of a message are too long.
        """
        if not self._has_batches(batch.topic):
            raise illegal(f"topic {batch.topic} has no batch consume queues")
        if batch.sys_flag & sys_flag.TRANSACTION_MASK:
            raise illegal("a batch cannot be part of a transaction")
        data = batch.encoded_properties or b""
        if _DELAY in data and properties.DELAY in properties.decode_properties(data):
            raise illegal("a batch cannot be delayed")
        return _count(batch)

    def message(self, batch: MessageBatch, count: int, queue_offset: int) -> Message:
        """Return the message that stores a batch of so many messages, from a queue offset on."""
        numbers = {INNER_NUM: str(count), INNER_BASE: str(queue_offset)}
        data = edit(record_crc.drop(batch.encoded_properties or b""), add=numbers)
        return Message(
            topic=batch.topic,
            body=batch.body,
            queue_id=batch.queue_id,
            sys_flag=batch.sys_flag | _FLAGS,
            born_timestamp=batch.born_timestamp,
            born_host=batch.born_host,
            reconsume_times=batch.reconsume_times,
            encoded_properties=data,
        )


def _count(batch: MessageBatch) -> int:
    count = 0
    try:
        for part in decode_batch(batch.body):
            count += 1
            if part.properties_length > batch.longest_properties:
                most = batch.longest_properties
                reason = f"the properties of a message exceed {most} bytes"
                raise Refusal(PutStatus.PROPERTIES_SIZE_EXCEEDED, reason)
    except FormatError as error:
        raise illegal(str(error)) from None
    if not 0 < count <= MOST_MESSAGES:
        raise illegal(f"an inner batch has 1 to {MOST_MESSAGES} messages, not {count}")
    return count
