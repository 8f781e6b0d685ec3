"""The records of one pull, which are finished together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.subscriptions import SelectedTopic
from mqlake.client.message import ReceivedMessage
from mqlake.client.received import decode_messages
from mqlake.dispatch.adjacent import (
    AT,
    FAULT,
    QUEUE_OFFSET,
    SIZE,
    SYS_FLAG,
    TAGS_AT,
    TAGS_LENGTH,
    find_records,
)
from mqlake.dispatch.batch import Flags, Longs
from mqlake.errors import FormatError
from mqlake.formats import java_string, record
from mqlake.formats.inner_batch import FLAGS
from mqlake.formats.record import FAULT_REASONS, HEADS, MIN_SIZE, SYS_FLAG_AT, Fault
from mqlake.formats.topic_names import RETRY_PREFIX
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.command import Body
from mqlake.protocol.messages.inner_batches import messages_of
from mqlake.protocol.namespace import Namespace

_NONE: Longs = np.empty(0, np.int64)

MOST_BYTES = 64 << 20
"""Bytes of messages after which no further inner batch of a pull is split."""


class RecordRun(ConsumedMessage, eq=False):
    """The selected records of one pull, which are counted and finished as one message.

    Attributes:
        topic: the subscribed topic, which is that of all its records; see `topics`.
        body: the bytes of the pull.
        queue_offset: the lowest of its records.
        at, sizes: positions and sizes of its records in the body, in bytes, i8[n].
        topics: the topics of its records if they may differ, as in a retry topic; otherwise empty.
        faults: why the body of a record is damaged, by its number in the run.
        sent_back: the numbers of records that a broker already redelivers.
    """

    at: Longs = _NONE
    sizes: Longs = _NONE
    topics: Sequence[str] = ()
    faults: dict[int, str] = msgspec.field(default_factory=dict[int, str])

    sent_back: set[int] = msgspec.field(default_factory=set[int])

    def message_count(self) -> int:
        """Return the number of records."""
        return len(self.at)

    def messages(self) -> Iterator[ReceivedMessage]:
        """Yield its records as messages."""
        for number in range(len(self.at)):
            yield self.message(number)

    def message(self, number: int) -> ReceivedMessage:
        """Return one of its records as a message."""
        at, size = int(self.at[number]), int(self.sizes[number])
        data = self.body[at : at + size]
        return decode_messages(data, self.queue.broker_name, ReceivedMessage)[0]


def read_run(
    data: Body, queue: MessageQueue, wanted: SelectedTopic, first: int, namespace: Namespace
) -> tuple[RecordRun | None, int | None]:
    """Return the selected records of a pull, or None without any; and where valid records end.

    The latter is the queue offset of the last record before bytes that are not a record, or None
    if there are no such bytes.

    Args:
        first: the requested queue offset: records before it are left out.

    Raises:
        FormatError: there are bytes that are not a record, and no requested record before them.
    """
    data, rows, end = find_messages(bytes(data))
    if data and not rows.size:
        raise FormatError(f"byte 0: {FAULT_REASONS[end]}")
    last = None if is_whole(data, rows, end) else int(rows[QUEUE_OFFSET, -1])
    rows = rows[:, rows[QUEUE_OFFSET] >= first]
    if last is not None and not rows.size:
        raise FormatError(f"no record at queue offset {first}: {FAULT_REASONS[end]}")
    if wanted.tags:
        rows = rows[:, _are_wanted(data, rows, wanted)]
    if not rows.size:
        return None, last
    at, sizes = rows[AT], rows[SIZE]
    start = int(at[0])
    head = HEADS[data[start + SYS_FLAG_AT + 3] >> 4 & 3].unpack_from(data, start)
    run = RecordRun(
        topic=namespace.unwrap(queue.topic),
        body=data,
        queue=queue,
        queue_offset=int(rows[QUEUE_OFFSET].min()),
        physical_offset=head[6],
        encoded_properties=b"",
        flag=head[4],
        sys_flag=0,  # The body is not that of a message.
        born_timestamp=head[8],
        born_address=head[9],
        store_timestamp=head[10],
        store_address=head[11],
        reconsume_times=head[12],
        at=at,
        sizes=sizes,
        faults=dict.fromkeys(np.flatnonzero(rows[FAULT]).tolist(), FAULT_REASONS[Fault.CRC]),
    )
    if queue.topic.startswith(RETRY_PREFIX):
        run.topics = [namespace.unwrap(message.topic) for message in run.messages()]
    return run, last


def find_messages(data: bytes) -> tuple[bytes, Longs, Fault]:
    """Return what `find_records` finds in a pull, with the messages of inner batches as records.

    The first part of the result is the bytes that the positions refer to. If messages of inner
    batches exceed `MOST_BYTES`, the bytes end within the next batch, as if it were torn: a later
    pull begins with it.
    """
    rows, end = find_records(data)
    if are_wrapped(rows).any():
        data = _unwrapped(data, rows)
        rows, end = find_records(data)
    return data, rows, end


def is_whole(data: bytes, rows: Longs, end: Fault) -> bool:
    """Return whether the last record that was found ends at the end of the data."""
    if end is not Fault.SHORT:
        return False
    return not rows.size or int(rows[AT, -1] + rows[SIZE, -1]) == len(data)


def are_wrapped(rows: Longs) -> Flags:
    """Return for each good record whether it is an inner batch that must be split."""
    return (rows[SYS_FLAG] & FLAGS == FLAGS) & (rows[FAULT] == Fault.GOOD)


def _unwrapped(data: bytes, rows: Longs) -> bytes:
    """Return the bytes of a pull with each inner batch replaced by the records of its messages.

    An inner batch that cannot be split stays as it is.
    """
    pieces, done, size_of_all = list[bytes](), 0, 0
    for start, size in zip(*rows[[AT, SIZE]][:, are_wrapped(rows)].tolist(), strict=True):
        pieces.append(data[done:start])
        if size_of_all > MOST_BYTES:
            return b"".join((*pieces, data[start : start + MIN_SIZE - 1]))
        try:
            found = messages_of(record.decode(data, start))
        except FormatError:
            found = [data[start : start + size]]
        pieces += found
        size_of_all += sum(map(len, found))
        done = start + size
    return b"".join((*pieces, data[done:]))


def _are_wanted(data: bytes, rows: Longs, wanted: SelectedTopic) -> Flags:
    tags = zip(rows[TAGS_AT].tolist(), rows[TAGS_LENGTH].tolist(), strict=True)
    found = [java_string.decode(data[at : at + length]) in wanted.tags for at, length in tags]
    return np.array(found, np.bool_)
