"""What a broker tells a name server about its topics (upstream: `RegisterBrokerBody`)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Generator, Iterator
from itertools import chain
from typing import Final

import msgspec

from mqlake.formats.config import DataVersion
from mqlake.formats.config.topics import Topic
from mqlake.formats.record import CRC_MASK
from mqlake.protocol.bodies.route import TopicQueueMappingInfo
from mqlake.protocol.body import MAX_QUOTED, decode_body, encode_body, quoted_keys
from mqlake.protocol.command import Body
from mqlake.protocol.errors import BodyError

MAX_INFLATED: Final = 64 * 1024 * 1024
"""Longest body in bytes after decompression."""
MAX_LENIENT: Final = 65_536
"""Longest part of a body in bytes that may be other than strict JSON."""
_AT_ONCE: Final = 1 << 20

_INT: Final = struct.Struct(">i")


def body_crc(body: Body) -> int:
    """Return what the header of REGISTER_BROKER states as `bodyCrc32`."""
    return zlib.crc32(body) & CRC_MASK


def has_crc(body: Body, stated: int) -> Generator[None, None, bool]:
    """Return whether a body, which may be long, has the CRC that its header states."""
    crc, view = 0, memoryview(body)
    yield  # A long body has just been received and copied.
    for at in range(0, len(view), _CHECKED):
        crc = zlib.crc32(view[at : at + _CHECKED], crc)
        yield
    return crc & CRC_MASK == stated


class TopicConfigs(msgspec.Struct, rename="camel"):
    """A broker's topics, and where it has them, its queues of static topics."""

    topic_config_table: dict[str, Topic] = {}
    data_version: DataVersion = DataVersion()
    topic_queue_mapping_info_map: dict[str, TopicQueueMappingInfo] = {}
    mapping_data_version: DataVersion = DataVersion()


class RegisterBody(msgspec.Struct, rename="camel"):
    """The body of REGISTER_BROKER."""

    topic_config_serialize_wrapper: TopicConfigs = msgspec.field(default_factory=TopicConfigs)
    filter_server_list: list[str] = []

    def encode(self) -> bytes:
        """Return the body as JSON."""
        return encode_body(self)

    def compress(self) -> bytes:
        """Return the body in its compressed form: a sequence of parts with their lengths."""
        topics = self.topic_config_serialize_wrapper
        mappings = topics.topic_queue_mapping_info_map.values()
        return zlib.compress(
            b"".join(
                (
                    _part(encode_body(topics.data_version)),
                    _INT.pack(len(topics.topic_config_table)),
                    *(_part(_topic_text(t)) for t in topics.topic_config_table.values()),
                    _part(encode_body(self.filter_server_list)),
                    _INT.pack(len(mappings)),
                    *(_part(encode_body(mapping)) for mapping in mappings),
                )
            )
        )


_TABLES = (b'"topicConfigTable":{', b'"topicQueueMappingInfoMap":{')
_BETWEEN = b'},"'
_PIECE = 128 << 10
"""Bytes of members that are decoded in a single call."""
_MOST_TRIES = 32
_CHECKED = 1 << 18


class _RawTopics(msgspec.Struct, rename="camel"):
    """`TopicConfigs` whose topics are not decoded yet."""

    topic_config_table: dict[str, msgspec.Raw] = {}
    data_version: DataVersion = DataVersion()
    topic_queue_mapping_info_map: dict[str, msgspec.Raw] = {}
    mapping_data_version: DataVersion = DataVersion()


class _RawBody(msgspec.Struct, rename="camel"):
    topic_config_serialize_wrapper: _RawTopics = msgspec.field(default_factory=_RawTopics)
    filter_server_list: list[str] = []


def decode_register(data: Body, *, compressed: bool) -> Generator[None, None, RegisterBody]:
    """Return what a broker registers; of an empty body, nothing.

    Raises:
        BodyError: it is no such body, or longer than `MAX_INFLATED` when decompressed.
    """
    if not data:
        return RegisterBody()
    if compressed:
        return (yield from _Parts((yield from _inflate(data))).read())
    taken: list[dict[str, msgspec.Raw]] = []
    for key in _TABLES:
        members, data = yield from _take_members(data, key)
        taken.append(members)
    raw = _raw(data)
    if raw is None and len(data) <= MAX_QUOTED:
        raw = _raw(quoted_keys(bytes(data)))
    if raw is None:
        # What fastjson takes, or says what is wrong.
        return decode_body(RegisterBody, data, MAX_LENIENT)
    yield
    topics = raw.topic_config_serialize_wrapper
    table: dict[str, Topic] = {}
    for name, text in chain(_taken_out(taken[0]), topics.topic_config_table.items()):
        table[name] = decode_body(Topic, bytes(text), MAX_LENIENT)
        yield
    mappings: dict[str, TopicQueueMappingInfo] = {}
    for name, text in chain(_taken_out(taken[1]), topics.topic_queue_mapping_info_map.items()):
        mappings[name] = decode_body(TopicQueueMappingInfo, bytes(text), MAX_LENIENT)
        yield
    versions = topics.data_version, topics.mapping_data_version
    return RegisterBody(
        TopicConfigs(table, versions[0], mappings, versions[1]), raw.filter_server_list
    )


def _taken_out(members: dict[str, msgspec.Raw]) -> Iterator[tuple[str, msgspec.Raw]]:
    """Yield the members of an object, and free each: all of them at once would take too long."""
    for name in list(members):
        yield name, members.pop(name)


def _take_members(
    data: Body, key: bytes
) -> Generator[None, None, tuple[dict[str, msgspec.Raw], Body]]:
    """Return most members of a long object in a body, and the body without them.

    Decoding megabytes in a single call would hold the event loop. The text is split where it may be
    between two members, and is so if what is before is valid by itself.
    """
    taken: dict[str, msgspec.Raw] = {}
    if len(data) <= _PIECE:
        return taken, data
    text = bytes(data)
    yield
    start = at = text.find(key) + len(key)
    if start < len(key):
        return taken, data
    cut, tries = at + _PIECE, 0
    while tries < _MOST_TRIES and (cut := text.find(_BETWEEN, cut) + 1) > 0:
        try:
            taken |= _decode_members(b"".join((b"{", text[at:cut], b"}")))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            tries += 1  # This is within a member.
        else:
            at, tries = cut + 1, 0
            cut = at + _PIECE
        yield
    return taken, text[:start] + text[at:]


def _raw(data: Body) -> _RawBody | None:
    try:
        return _decode_raw(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _inflate(data: Body) -> Generator[None, None, bytes]:
    inflater = zlib.decompressobj()
    pieces: list[bytes] = []
    size, rest = 0, bytes(data)
    try:
        while not inflater.eof and size <= MAX_INFLATED:
            pieces.append(inflater.decompress(rest, _AT_ONCE))
            size += len(pieces[-1])
            rest = inflater.unconsumed_tail
            if not pieces[-1] and not rest:
                break
            yield
    except zlib.error as error:
        raise BodyError(f"the compressed body: {error}") from None
    if size > MAX_INFLATED:
        raise BodyError(f"the compressed body is too long: over {MAX_INFLATED} bytes")
    if not inflater.eof:
        raise BodyError("the compressed body ends too early")
    return b"".join(pieces)


_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_raw = msgspec.json.Decoder(_RawBody, strict=False).decode


class _Parts:
    """Reads the compressed form, once it is decompressed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self) -> Generator[None, None, RegisterBody]:
        version = decode_body(DataVersion, self._part(), MAX_LENIENT)
        topics: list[Topic] = []
        for _ in range(self._number()):
            topics.append(_topic(self._part()))
            yield
        filter_servers = decode_body(list[str], self._part(), MAX_LENIENT)
        # releases before 5.0 end here
        count = self._number() if self._at < len(self._data) else 0
        mappings: list[TopicQueueMappingInfo] = []
        for _ in range(count):
            mappings.append(decode_body(TopicQueueMappingInfo, self._part(), MAX_LENIENT))
            yield
        return RegisterBody(
            TopicConfigs(
                {topic.topic_name: topic for topic in topics},
                version,
                {mapping.topic: mapping for mapping in mappings},
            ),
            filter_servers,
        )

    def _number(self) -> int:
        if self._at + _INT.size > len(self._data):
            raise BodyError("the compressed body ends within a length")
        number: int = _INT.unpack_from(self._data, self._at)[0]
        self._at += _INT.size
        return number

    def _part(self) -> bytes:
        length = self._number()
        start, self._at = self._at, self._at + length
        if length < 0 or self._at > len(self._data):
            raise BodyError(f"the compressed body has a part of {length} bytes")
        return self._data[start : self._at]


def _part(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


def _topic_text(topic: Topic) -> bytes:
    """Write a topic as `TopicConfig.encode` does: values separated by blanks."""
    attributes = encode_body(topic.attributes).decode()
    words = (
        topic.topic_name,
        topic.read_queue_nums,
        topic.write_queue_nums,
        topic.perm,
        topic.topic_filter_type,
        attributes,
    )
    return " ".join(map(str, words)).encode()


def _topic(data: bytes) -> Topic:
    words = data.decode("utf-8", "replace").split(" ", 5)
    try:
        name, read, write, perm, filter_type = words[:5]
        topic = Topic(name, int(read), int(write), int(perm), filter_type)
    except ValueError:
        raise BodyError(f"the compressed body has no topic in {data[:80]!r}") from None
    if len(words) == 5 or not words[5]:
        return topic
    return msgspec.structs.replace(topic, attributes=decode_body(dict[str, str], words[5].encode()))
