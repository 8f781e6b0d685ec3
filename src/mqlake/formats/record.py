"""Check, read and write commit-log records (docs/formats/record.md).

Upstream: `MessageExtEncoder`, `MessageDecoder`, `CommitLog.checkMessageAndReturnSize`.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Mapping
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import NamedTuple

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import consume_queue, host, record_crc
from mqlake.formats.file_name import is_safe_topic
from mqlake.formats.host import decode_host, encode_host
from mqlake.formats.message_id import encode_message_id
from mqlake.formats.properties import (
    MAX_LENGTH,
    TAGS,
    UNIQ_KEY,
    decode_properties,
    encode_properties,
    key_list,
)
from mqlake.formats.sys_flag import BORN_HOST_V6, STORE_HOST_V6

V1_MAGIC = 0xDAA320A7  # Upstream: MESSAGE_MAGIC_CODE
V2_MAGIC = 0xDAA320AB  # Upstream: MESSAGE_MAGIC_CODE_V2
BLANK_MAGIC = 0xCBD43194  # Upstream: BLANK_MAGIC_CODE

Buffer = bytes | bytearray | memoryview

_FRAME = Struct(
    ">"
    "i"  # total size
    "I"  # magic
)


def _head(born_host_size: int, store_host_size: int) -> Struct:
    return Struct(
        ">"
        "i"  # total size
        "I"  # magic
        "i"  # body CRC
        "i"  # queue id
        "i"  # flag
        "q"  # queue offset
        "q"  # physical offset
        "i"  # sys flag
        "q"  # born timestamp
        f"{born_host_size}s"  # born host
        "q"  # store timestamp
        f"{store_host_size}s"  # store host
        "i"  # reconsume times
        "q"  # prepared transaction offset
        "i"  # body length
    )


# By bits 4 and 5 of the sys flag: BORN_HOST_V6, STORE_HOST_V6.
HEADS = tuple(
    _head(born, store)
    for store in (host.V4_SIZE, host.V6_SIZE)
    for born in (host.V4_SIZE, host.V6_SIZE)
)
HEAD_SIZES = tuple(head.size for head in HEADS)
# Without the total size, for writers that write it last.
_HEADS_BEHIND_SIZE = tuple(Struct(head.format.replace("i", "", 1)) for head in HEADS)
_LENGTH = Struct(">H")
_OFFSET = Struct(">q")
_BODY = _SIZE = Struct(">i")

FRAME_SIZE = _FRAME.size
MAGIC_AT = 4
BODY_CRC_AT = MAGIC_AT + 4
QUEUE_ID_AT = BODY_CRC_AT + 4
FLAG_AT = QUEUE_ID_AT + 4
QUEUE_OFFSET_AT = FLAG_AT + 4
PHYSICAL_OFFSET_AT = QUEUE_OFFSET_AT + 8
SYS_FLAG_AT = PHYSICAL_OFFSET_AT + 8
BORN_TIMESTAMP_AT = SYS_FLAG_AT + 4
BORN_HOST_AT = BORN_TIMESTAMP_AT + 8
MIN_SIZE = HEAD_SIZES[0] + 1 + 2

MAX_TOPIC_V1 = 0x7F
MAX_TOPIC_V2 = 0x7FFF
MAX_PROPERTIES = MAX_LENGTH
CRC_MASK = 0x7FFFFFFF

_TOPIC_LENGTHS = {1: (Struct(">B"), MAX_TOPIC_V1), 2: (_LENGTH, MAX_TOPIC_V2)}


class Fault(enum.IntEnum):
    """What the bytes at a position of the log are: a valid record, or the reason why not."""

    GOOD = 0
    UNWRITTEN = 1
    BLANK = 2
    MAGIC = 3
    SIZE = 4
    LENGTHS = 5
    OFFSET = 6
    CRC = 7
    SHORT = 8
    TOPIC = 9
    TORN = 10


FAULT_REASONS: dict[Fault, str] = {
    Fault.GOOD: "a valid record",
    Fault.UNWRITTEN: "nothing was written here",
    Fault.BLANK: "the blank record that ends a file",
    Fault.MAGIC: "no record starts here: unknown magic number",
    Fault.SIZE: "the record's size is too small, or runs past the end",
    Fault.LENGTHS: "the lengths inside the record disagree with its size",
    Fault.OFFSET: "the physical offset in the record is not the record's own",
    Fault.CRC: "the body's checksum is wrong",
    Fault.SHORT: "fewer than 8 bytes are left",
    Fault.TOPIC: "the topic is not usable as a directory name",
    Fault.TORN: "the checksum of the whole record is wrong or lost",
}


class Layout(NamedTuple):
    """Where the parts of one record are: positions in the buffer, lengths in bytes."""

    size: int
    version: int
    body_at: int
    body_length: int
    topic_at: int
    topic_length: int
    properties_at: int
    properties_length: int
    store_timestamp_at: int


def check(
    buffer: Buffer, at: int, end: int, physical_offset: int | None = None, *, crc: bool = True
) -> tuple[Fault, Layout | None]:
    """Check the bytes from `at` to `end`; never raises.

    Returns:
        The first of these that applies: SHORT, UNWRITTEN, BLANK, MAGIC, SIZE, LENGTHS, OFFSET (if
        `physical_offset` is given), TOPIC, CRC (if `crc`), GOOD. And the layout, with the last
        four: the record's lengths agree with its size.
    """
    end = min(end, len(buffer))
    if at < 0 or end - at < FRAME_SIZE:
        return Fault.SHORT, None
    size, magic = _FRAME.unpack_from(buffer, at)
    if size == 0:
        return Fault.UNWRITTEN, None
    if magic == BLANK_MAGIC:
        return Fault.BLANK, None
    if magic not in (V1_MAGIC, V2_MAGIC):
        return Fault.MAGIC, None
    if not MIN_SIZE <= size <= end - at:
        return Fault.SIZE, None
    layout = _layout(buffer, at, size, version=1 if magic == V1_MAGIC else 2)
    if layout is None:
        return Fault.LENGTHS, None
    return _check_content(buffer, at, layout, physical_offset, crc=crc), layout


def _layout(buffer: Buffer, at: int, size: int, version: int) -> Layout | None:
    """Return the positions of the parts, or None if they do not fill `size` bytes exactly."""
    v6 = buffer[at + SYS_FLAG_AT + 3] >> 4 & 3
    body_at = at + HEAD_SIZES[v6]
    topic_length_size = version
    left = at + size - body_at - topic_length_size - _LENGTH.size
    if left < 0:
        return None
    (body_length,) = _BODY.unpack_from(buffer, body_at - _BODY.size)
    if not 0 <= body_length <= left:
        return None
    left -= body_length
    topic_at = body_at + body_length + topic_length_size
    topic_length_field, longest = _TOPIC_LENGTHS[version]
    (topic_length,) = topic_length_field.unpack_from(buffer, topic_at - topic_length_size)
    if topic_length > left or topic_length > longest:
        return None
    left -= topic_length
    properties_at = topic_at + topic_length + _LENGTH.size
    (properties_length,) = _LENGTH.unpack_from(buffer, properties_at - _LENGTH.size)
    if properties_length != left or properties_length > MAX_PROPERTIES:
        return None
    store_timestamp_at = at + BORN_HOST_AT + (host.V6_SIZE if v6 & 1 else host.V4_SIZE)
    return Layout(
        size,
        version,
        body_at,
        body_length,
        topic_at,
        topic_length,
        properties_at,
        properties_length,
        store_timestamp_at,
    )


def _check_content(
    buffer: Buffer, at: int, layout: Layout, physical_offset: int | None, *, crc: bool
) -> Fault:
    if physical_offset is not None:
        (stated,) = _OFFSET.unpack_from(buffer, at + PHYSICAL_OFFSET_AT)
        if stated != physical_offset:
            return Fault.OFFSET
    topic_end = layout.topic_at + layout.topic_length
    if not is_safe_topic(bytes(buffer[layout.topic_at : topic_end])):
        return Fault.TOPIC
    if crc and layout.body_length:
        body = memoryview(buffer)[layout.body_at : layout.body_at + layout.body_length]
        (stated,) = _BODY.unpack_from(buffer, at + BODY_CRC_AT)
        if stated != zlib.crc32(body) & CRC_MASK:
            return Fault.CRC
    return Fault.GOOD


def is_torn(data: memoryview, properties_length: int) -> bool:
    """Return whether a record that was written with a checksum of all its bytes has lost some.

    Bytes of a new file that never reached the disk are zero. A record that has neither the
    checksum nor a zero in its place was written without a checksum, and counts as whole.

    Args:
        data: the record, whose lengths agree.
        properties_length: bytes of its properties, which end the record.
    """
    if properties_length < record_crc.SIZE:
        return False
    tail = data[-record_crc.SIZE :].tobytes()
    stated = record_crc.stated(tail)
    if stated is None:
        return b"\0" in tail
    return stated != zlib.crc32(data[: -record_crc.SIZE]) & record_crc.MASK


class Record(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One message of the commit log.

    Offsets and sizes are in bytes, except `queue_offset`, which counts entries. Timestamps are
    milliseconds since 1970. `body` is as stored: compressed if `sys_flag` says so.
    """

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    size: int
    body_crc: int
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: str
    store_timestamp: int
    store_host: str
    reconsume_times: int
    prepared_transaction_offset: int
    properties: dict[str, str]
    body: bytes

    @property
    def tags(self) -> str | None:
        """Return the TAGS property."""
        return self.properties.get(TAGS)

    @property
    def keys(self) -> list[str]:
        """Return the keys of the KEYS property."""
        return key_list(self.properties)

    @property
    def unique_key(self) -> str | None:
        """Return the UNIQ_KEY property: the message id that producers and consumers show."""
        return self.properties.get(UNIQ_KEY)

    @property
    def message_id(self) -> str:
        """Return the offset message id: store host and physical offset, upper-case hex."""
        return encode_message_id(encode_host(self.store_host), self.physical_offset)

    @property
    def tags_code(self) -> int:
        """Return the tags code of the consume-queue entry, with the default delay levels."""
        return consume_queue.entry_tags_code(self.topic, self.properties, self.store_timestamp)


def decode(buffer: Buffer, at: int = 0, end: int | None = None, *, crc: bool = True) -> Record:
    """Return the record at byte `at`, which must end at or before `end`.

    Raises:
        FormatError: `check` finds that it is not valid; the message contains the reason.
    """
    fault, layout = check(buffer, at, len(buffer) if end is None else end, crc=crc)
    if fault or layout is None:
        raise FormatError(f"byte {at}: {FAULT_REASONS[fault]}")
    (
        size,
        _magic,
        body_crc,
        queue_id,
        flag,
        queue_offset,
        physical_offset,
        flags,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
        body_length,
    ) = HEADS[buffer[at + SYS_FLAG_AT + 3] >> 4 & 3].unpack_from(buffer, at)
    topic_end = layout.topic_at + layout.topic_length
    properties_end = layout.properties_at + layout.properties_length
    return Record(
        str(buffer[layout.topic_at : topic_end], "utf-8"),
        queue_id,
        queue_offset,
        physical_offset,
        size,
        body_crc,
        flag,
        flags,
        born_timestamp,
        decode_host(born_host),
        store_timestamp,
        decode_host(store_host),
        reconsume_times,
        prepared_transaction_offset,
        decode_properties(bytes(buffer[layout.properties_at : properties_end])),
        bytes(buffer[layout.body_at : layout.body_at + body_length]),
    )


def encode(
    *,
    topic: str,
    body: bytes = b"",
    properties: Mapping[str, str] | bytes = b"",
    queue_id: int = 0,
    queue_offset: int = 0,
    physical_offset: int = 0,
    flag: int = 0,
    sys_flag: int = 0,
    born_timestamp: int = 0,
    born_host: str = "127.0.0.1:0",
    store_timestamp: int = 0,
    store_host: str = "127.0.0.1:10911",
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
    append_crc: bool = False,
) -> bytes:
    """Return the bytes of a record; the arguments are `Record`'s fields.

    Computes the size, the body CRC and the two IPv6 bits of the sys flag. Writes version 2 if the
    topic has more than 127 bytes. `properties` given as bytes are written unchanged.

    Args:
        append_crc: write the CRC of the whole record as its last property, and drop properties of
            that name (`mqlake.formats.record_crc`).

    Raises:
        FormatError: a value does not fit into its field.
    """
    topic_bytes = topic.encode("utf-8", "surrogatepass")
    version, longest = (1, MAX_TOPIC_V1) if len(topic_bytes) <= MAX_TOPIC_V1 else (2, MAX_TOPIC_V2)
    property_bytes = properties if isinstance(properties, bytes) else encode_properties(properties)
    if append_crc:
        property_bytes = record_crc.drop(property_bytes)
        property_bytes += record_crc.missing_separator(property_bytes)
    crc_size = append_crc * record_crc.SIZE
    if len(topic_bytes) > longest or len(property_bytes) + crc_size > MAX_PROPERTIES:
        raise FormatError("the topic or the properties are longer than a record can hold")
    head = RecordHead(
        magic=V1_MAGIC if version == 1 else V2_MAGIC,
        queue_id=queue_id,
        flag=flag,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        sys_flag=sys_flag,
        born_timestamp=born_timestamp,
        born_host=encode_host(born_host),
        store_timestamp=store_timestamp,
        store_host=encode_host(store_host),
        reconsume_times=reconsume_times,
        prepared_transaction_offset=prepared_transaction_offset,
    )
    topic_part = len(topic_bytes).to_bytes(version, "big") + topic_bytes
    parts = encode_around(head, body, topic_part, property_bytes, crc_size)
    data = b"".join((parts.size_field, parts.head, body, parts.tail))
    return data + record_crc.encode(zlib.crc32(data)) if append_crc else data


class RecordHead(NamedTuple):
    """The fields of a record's head that do not follow from others; the hosts as encoded."""

    magic: int
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_timestamp: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int


class AroundBody(NamedTuple):
    """What is before and after the body of a record.

    Attributes:
        size_field: the first field, which a writer of a log writes last.
        head: the other fields before the body.
        tail: what follows the body, without the record's own CRC.
        body_crc: the CRC-32 of the body.
        size: bytes of the whole record.
    """

    size_field: bytes
    head: bytes
    tail: bytes
    body_crc: int
    size: int


def encode_around(
    head: RecordHead, body: Buffer, topic: bytes, properties: bytes, crc_size: int
) -> AroundBody:
    """Return the bytes of a record around its body.

    Sets the two IPv6 bits of the system flag, as the hosts have it.

    Args:
        topic: as in the record: its length, in one byte or (version 2) two, and its text.
        crc_size: bytes of the record's CRC, which follows the tail; 0 if it has none. The
            properties then end with a separator.

    Raises:
        FormatError: a value does not fit into its field.
    """
    (
        magic,
        queue_id,
        flag,
        queue_offset,
        physical_offset,
        flags,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
    ) = head
    v6 = (len(born_host) == host.V6_SIZE) | (len(store_host) == host.V6_SIZE) << 1
    body_crc = zlib.crc32(body)
    tail = b"".join((topic, _LENGTH.pack(len(properties) + crc_size), properties))
    size = HEAD_SIZES[v6] + len(body) + len(tail) + crc_size
    try:
        packed = _HEADS_BEHIND_SIZE[v6].pack(
            magic,
            body_crc & CRC_MASK,
            queue_id,
            flag,
            queue_offset,
            physical_offset,
            flags & ~(BORN_HOST_V6 | STORE_HOST_V6) | v6 << 4,
            born_timestamp,
            born_host,
            store_timestamp,
            store_host,
            reconsume_times,
            prepared_transaction_offset,
            len(body),
        )
        return AroundBody(_SIZE.pack(size), packed, tail, body_crc, size)
    except StructError as error:
        raise FormatError(f"a value does not fit into its field: {error}") from None


def encode_blank(length: int) -> bytes:
    """Return the blank record that fills the last `length` (at least 8) bytes of a file.

    Raises:
        FormatError: `length` is below 8, or above what a signed 32-bit number can hold.
    """
    return encode_blank_head(length).ljust(length, b"\0")


def encode_blank_head(length: int) -> bytes:
    """Return the first 8 bytes of a blank record, the only ones that RocketMQ writes.

    Raises:
        FormatError: for the same lengths as `encode_blank`.
    """
    if not FRAME_SIZE <= length <= 0x7FFFFFFF:
        raise FormatError(f"a blank record has 8 to 2147483647 bytes, not {length}")
    return _FRAME.pack(length, BLANK_MAGIC)
