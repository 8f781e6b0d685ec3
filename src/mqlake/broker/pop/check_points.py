"""Popped and acknowledged messages, as stored in the revive topic.

Upstream: `PopCheckPoint`, `AckMsg`, `BatchAckMsg`. A check point says which messages of a queue are
out and until when; acknowledgements that come after it was put are put after it. Both wait as timer
messages until the time is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from mqlake.errors import FormatError
from mqlake.formats.properties import DELIVER_MS, UNIQ_KEY
from mqlake.formats.record import Record
from mqlake.protocol.body import decode_body
from mqlake.store.append.message import Message

REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
BEFORE_ACKS = 1000
"""Milliseconds by which the check point leaves the timer before the acknowledgements."""

_CHECK_POINT, _ACK, _BATCH_ACK = "ck", "ack", "bAck"
MOST_MESSAGES = 64
"""Maximum number of messages of a check point: its bits for acknowledgements."""


class Key(NamedTuple):
    """What a check point and its acknowledgements have in common."""

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time: int


class CheckPoint(msgspec.Struct, omit_defaults=True):
    """Popped messages; `count` of them, at `start_offset` plus each of `distances`.

    Attributes:
        bits: which are acknowledged; the lowest is for the first.
        puts: how often it was put again, as text; None if never.
        is_suspended: whether the redelivery is not counted.
        log_end: physical offset of the log's end at the pop; 0 if unknown. A message after it was
            not popped then, although it has the same queue offset: the topic was deleted and
            created again. RocketMQ ignores this field, and does not write it.
    """

    start_offset: int = msgspec.field(name="so")
    pop_time: int = msgspec.field(name="pt")
    invisible_time: int = msgspec.field(name="it")
    count: int = msgspec.field(name="n")
    queue_id: int = msgspec.field(name="q")
    topic: str = msgspec.field(name="t")
    group: str = msgspec.field(name="c")
    distances: list[int] = msgspec.field(name="d", default=[])
    broker_name: str | None = msgspec.field(name="bn", default=None)
    bits: int = msgspec.field(name="bm", default=0)
    revive_offset: int = msgspec.field(name="ro", default=0)
    puts: str | None = msgspec.field(name="rp", default=None)
    is_suspended: bool = msgspec.field(name="sp", default=False)
    log_end: int = msgspec.field(name="le", default=0)

    @property
    def key(self) -> Key:
        """Return the key that its acknowledgements contain."""
        return Key(self.topic, self.group, self.queue_id, self.start_offset, self.pop_time)

    @property
    def revive_time(self) -> int:
        """Return until when the messages are invisible."""
        return self.pop_time + self.invisible_time

    @property
    def offsets(self) -> list[int]:
        """Return the queue offsets of the messages."""
        distances = self.distances or range(max(0, min(self.count, MOST_MESSAGES)))
        return [self.start_offset + distance for distance in distances]

    @property
    def missing(self) -> list[int]:
        """Return the queue offsets of those that are not acknowledged."""
        return [offset for number, offset in enumerate(self.offsets) if not self.bits >> number & 1]

    def expire(self) -> None:
        """Let the messages be redelivered now, without counting this delivery."""
        self.invisible_time, self.is_suspended = 0, True

    def acknowledge(self, queue_offset: int) -> None:
        """Note that a message was consumed; do nothing if it is not one of these."""
        distance = queue_offset - self.start_offset
        if not self.distances and 0 <= distance < min(self.count, MOST_MESSAGES):
            self.bits |= 1 << distance
        elif distance in self.distances:
            self.bits |= 1 << self.distances.index(distance)


class Ack(msgspec.Struct, omit_defaults=True):
    """An acknowledgement of one message of a check point (`ack_offset`), or of several."""

    start_offset: int = msgspec.field(name="so")
    group: str = msgspec.field(name="c")
    topic: str = msgspec.field(name="t")
    queue_id: int = msgspec.field(name="q")
    pop_time: int = msgspec.field(name="pt")
    broker_name: str | None = msgspec.field(name="bn", default=None)
    ack_offset: int = msgspec.field(name="ao", default=-1)
    ack_offsets: list[int] = msgspec.field(name="aol", default=[])

    @property
    def key(self) -> Key:
        """Return the key of its check point."""
        return Key(self.topic, self.group, self.queue_id, self.start_offset, self.pop_time)

    @property
    def offsets(self) -> list[int]:
        """Return the queue offsets that are acknowledged."""
        return self.ack_offsets or [self.ack_offset]


def point_message(point: CheckPoint, topic: str, queue_id: int) -> Message:
    """Return the message of the revive topic that stores a check point."""
    parts = (point.topic, point.queue_id, point.start_offset, point.group, point.pop_time)
    key = "@".join(map(str, (*parts, point.broker_name, _CHECK_POINT)))
    due = point.revive_time - BEFORE_ACKS
    return _message(point, _CHECK_POINT, key, due, topic, queue_id)


def ack_message(
    key: Key, offsets: Sequence[int], broker_name: str, due: int, topic: str, queue_id: int
) -> Message:
    """Return the message of the revive topic that stores an acknowledgement of messages.

    Args:
        due: until when they were invisible, milliseconds.
    """
    ack = Ack(key.start_offset, key.group, key.topic, key.queue_id, key.pop_time, broker_name)
    if len(offsets) == 1:
        (ack.ack_offset,) = offsets
        kind, what = _ACK, str(ack.ack_offset)
    else:
        ack.ack_offsets = list(offsets)
        kind, what = _BATCH_ACK, str(ack.ack_offsets)
    parts = (key.topic, key.queue_id, what, key.group, key.pop_time, broker_name, kind)
    return _message(ack, kind, "@".join(map(str, parts)), due, topic, queue_id)


def _message(
    body: CheckPoint | Ack, tag: str, key: str, due: int, topic: str, queue_id: int
) -> Message:
    return Message(
        topic=topic,
        body=msgspec.json.encode(body, order="sorted"),
        tags=tag,
        properties={DELIVER_MS: str(due), UNIQ_KEY: key},
        queue_id=queue_id,
    )


def read(record: Record) -> CheckPoint | Ack | None:
    """Return the content of a message of the revive topic, None if it has none."""
    kind = {_CHECK_POINT: CheckPoint, _ACK: Ack, _BATCH_ACK: Ack}.get(record.tags or "")
    if kind is None:
        return None
    try:
        found = decode_body(kind, record.body)
    except FormatError:
        return None
    return None if isinstance(found, CheckPoint) and len(found.distances) > MOST_MESSAGES else found
