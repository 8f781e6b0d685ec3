"""The records of one pull, to be finished together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.subscriptions import Wanted
from mqlake.client.message import ReceivedMessage
from mqlake.client.received import decode_messages
from mqlake.errors import FormatError
from mqlake.formats.plain_record import Plain, any_at, plain_at
from mqlake.formats.properties import RETRY_TOPIC, TAGS, decode_properties
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.command import Body
from mqlake.protocol.namespace import Namespace


class RecordRun(ConsumedMessage, eq=False):
    """The records of one pull that are wanted; to who counts and finishes messages, one of them.

    Attributes:
        topic: that was subscribed to, which is that of all its records; see `topics`.
        body: the bytes of the pull.
        queue_offset: the lowest of its records.
        at, sizes: where its records are in the body, bytes.
        topics: of its records where they may differ, as in a retry topic; else none.
        faults: why the body of a record is damaged, by its number in the run.
    """

    at: Sequence[int] = ()
    sizes: Sequence[int] = ()
    topics: Sequence[str] = ()
    faults: dict[int, str] = msgspec.field(default_factory=dict[int, str])

    def message_count(self) -> int:
        """Return how many records it has."""
        return len(self.at)

    def messages(self) -> Iterator[ReceivedMessage]:
        """Yield its records as messages."""
        for at, size in zip(self.at, self.sizes, strict=True):
            data = self.body[at : at + size]
            yield from decode_messages(data, self.queue.broker_name, ReceivedMessage)


class _Found(NamedTuple):
    record: Plain
    at: int
    fault: str | None


def read_run(
    data: Body, queue: MessageQueue, wanted: Wanted, first: int, namespace: Namespace
) -> RecordRun | None:
    """Return the records of a pull that are wanted; None if none are.

    Args:
        first: the queue offset that was asked for: what comes before it is left out.

    Raises:
        FormatError: the first bytes are no record.
    """
    data = bytes(data)
    found = [each for each in _records(data) if each.record[0][5] >= first]
    if wanted.tags:
        found = [each for each in found if _properties(data, each).get(TAGS) in wanted.tags]
    if not found:
        return None
    head = found[0].record[0]
    topics: list[str] = []
    if queue.topic.startswith(RETRY_PREFIX):
        names = (_properties(data, each).get(RETRY_TOPIC) or queue.topic for each in found)
        topics = [namespace.unwrap(name) for name in names]
    return RecordRun(
        namespace.unwrap(queue.topic),
        data,
        queue,
        min(each.record[0][5] for each in found),
        head[6],  # physical offset
        b"",
        head[4],  # flag
        0,  # sys flag: the body is no message's
        head[8],  # born timestamp
        head[9],  # born host
        head[10],  # store timestamp
        head[11],  # store host
        max(each.record[0][12] for each in found),  # reconsume times
        at=[each.at for each in found],
        sizes=[each.record[0][0] for each in found],
        topics=topics,
        faults={row: each.fault for row, each in enumerate(found) if each.fault},
    )


def _records(data: bytes) -> Iterator[_Found]:
    """Yield records, one behind the other, up to the first bytes that are none.

    Raises:
        FormatError: the first bytes are none.
    """
    at, end = 0, len(data)
    while at < end:
        record, fault = plain_at(data, at, end), None
        if record is None:
            try:
                record, fault = any_at(data, at, end)
            except FormatError:
                if at:
                    return  # what comes before is good, and is not held up
                raise
        yield _Found(record, at, fault)
        at += record[0][0]


def _properties(data: bytes, found: _Found) -> dict[str, str]:
    properties_at, size = found.record[3], found.record[0][0]
    return decode_properties(data[properties_at : found.at + size])
