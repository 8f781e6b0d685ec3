"""What is checked of a message before it is appended, and how it is refused.

Upstream: `HookUtils.checkBeforePutMessage`, `DefaultMessageStore.asyncPutMessage`,
`MessageExtEncoder.encode`.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats import properties, record, sys_flag
from mqlake.formats.file_name import MAX_NAME_BYTES, is_safe_topic
from mqlake.formats.properties import MAX_LENGTH
from mqlake.store.message import Message
from mqlake.store.put_result import PutResult, PutStatus

_INNER_NUM = properties.INNER_NUM.encode()
_PAIR_END = properties.PROPERTY_SEPARATOR
# Bytes besides the body that a record may have: the encoder's buffer upstream.
MOST_BESIDES_BODY = 64 << 10


class Refusal(Exception):  # noqa: N818
    """A message is not taken."""

    def __init__(self, status: PutStatus, reason: str) -> None:
        super().__init__(reason)
        self.result = PutResult(status, reason=reason)


class TopicPart(NamedTuple):
    """A topic as a record holds it."""

    magic: int
    data: bytes
    """The length, in one byte or (version 2) two, and the topic."""


def encode_topic(topic: str, *, allow_v2: bool) -> TopicPart:
    """Return the topic's part of a record; version 2 where it has more than 127 bytes.

    Raises:
        Refusal: MESSAGE_ILLEGAL: too long, or nothing that a queue's directory can be called.
    """
    data = topic.encode("utf-8", "surrogatepass")
    longest = MAX_NAME_BYTES if allow_v2 else record.MAX_TOPIC_V1
    if len(data) > longest:
        raise illegal(f"the topic has {len(data)} bytes, more than {longest}")
    if not is_safe_topic(data):
        raise illegal(f"not usable as a topic: {topic!r}")
    if len(data) > record.MAX_TOPIC_V1:
        return TopicPart(record.V2_MAGIC, len(data).to_bytes(2, "big") + data)
    return TopicPart(record.V1_MAGIC, len(data).to_bytes(1, "big") + data)


def encode_properties(message: Message) -> bytes:
    """Return a message's properties as they are stored.

    Raises:
        Refusal: MESSAGE_ILLEGAL: not storable, or those of an inner batch, which needs another
            kind of queue; PROPERTIES_SIZE_EXCEEDED: more than 32767 bytes.
    """
    data = message.encoded_properties
    try:
        if data is None:
            data = _encode_attributes(message)
    except (FormatError, UnicodeEncodeError) as error:
        raise illegal(f"properties: {error}") from None
    if message.sys_flag & sys_flag.INNER_BATCH or (
        _INNER_NUM in data and properties.INNER_NUM in properties.decode_properties(data)
    ):
        raise illegal("inner batches need a batch consume queue, which this store does not have")
    if len(data) > MAX_LENGTH:
        raise Refusal(
            PutStatus.PROPERTIES_SIZE_EXCEEDED,
            f"the properties take {len(data)} bytes, more than {MAX_LENGTH}",
        )
    return data


def _encode_attributes(message: Message) -> bytes:
    text, pairs = "", 0
    keys, tags = message.keys, message.tags
    if keys:
        keys = keys if isinstance(keys, str) else properties.KEY_SEPARATOR.join(keys)
    if keys:
        text, pairs = f"{properties.KEYS}\x01{keys}\x02", 1
    if tags:
        text, pairs = f"{text}{properties.TAGS}\x01{tags}\x02", pairs + 1
    if message.delay_level:
        text, pairs = f"{text}{properties.DELAY}\x01{message.delay_level}\x02", pairs + 1
    if text.count(_PAIR_END) != pairs:
        raise FormatError("neither tags nor keys can hold the byte 02")
    # Of equal names readers take the last.
    before = properties.encode_pairs(message.properties) if message.properties else b""
    return before + text.encode()


def check_size(body: int, size: int, *, longest_body: int, largest_record: int) -> None:
    """Check a body and its record, or all records of a batch, in bytes.

    Raises:
        Refusal: MESSAGE_ILLEGAL: too large.
    """
    if body > longest_body:
        raise illegal(f"the body has {body} bytes, more than maxMessageSize, {longest_body}")
    if size > largest_record:
        raise illegal(f"{size} bytes do not fit in a commit-log file beside a blank record")


def illegal(reason: str) -> Refusal:
    """Return the refusal of a message that no store would take."""
    return Refusal(PutStatus.MESSAGE_ILLEGAL, reason)
