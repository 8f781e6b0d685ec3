"""What a broker tells a name server about its topics (upstream: `RegisterBrokerBody`)."""

from __future__ import annotations

import struct
import zlib
from typing import Final

import msgspec

from mqlake.formats.config import DataVersion
from mqlake.formats.config.topics import Topic
from mqlake.formats.record import CRC_MASK
from mqlake.remoting.bodies.route import TopicQueueMappingInfo
from mqlake.remoting.body import decode_body, encode_body
from mqlake.remoting.command import Body
from mqlake.remoting.errors import BodyError

MAX_INFLATED: Final = 128 * 1024 * 1024
"""Longest body in bytes after decompression."""

_INT: Final = struct.Struct(">i")


def body_crc(body: Body) -> int:
    """Return what the header of REGISTER_BROKER states as `bodyCrc32`."""
    return zlib.crc32(body) & CRC_MASK


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


def decode_register(data: Body, *, compressed: bool) -> RegisterBody:
    """Return what a broker registers; of an empty body, nothing.

    Raises:
        BodyError: it is no such body, or longer than `MAX_INFLATED` when decompressed.
    """
    if not data:
        return RegisterBody()
    return _Parts(_inflate(data)).read() if compressed else decode_body(RegisterBody, data)


def _inflate(data: Body) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, MAX_INFLATED)
    except zlib.error as error:
        raise BodyError(f"the compressed body: {error}") from None
    if not inflater.eof:
        reason = "is too long" if inflater.unconsumed_tail else "ends too early"
        raise BodyError(f"the compressed body {reason}")
    return inflated


class _Parts:
    """Reads the compressed form, once it is decompressed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self) -> RegisterBody:
        version = decode_body(DataVersion, self._part())
        topics = [_topic(self._part()) for _ in range(self._number())]
        filter_servers = decode_body(list[str], self._part())
        # releases before 5.0 end here
        count = self._number() if self._at < len(self._data) else 0
        mappings = [decode_body(TopicQueueMappingInfo, self._part()) for _ in range(count)]
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
