"""Map messages of RocketMQ to records of Kafka, and the reverse (docs/how-to/convert.md).

Both directions lose nothing: fields that the other system lacks become headers, or one property,
with names that begin with mqlake's prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import sys_flag
from mqlake.formats.host import decode_host, encode_host
from mqlake.formats.kafka.batch import Record as KafkaRecord
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.formats.properties import CRC32, KEYS, NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR

PREFIX = "__rocketmq."
"""Prefix of the headers for other fields of a message."""

EXACTLY = "__kafka.record"
"""The property for fields of a record that no other field contains."""

NOWHERE = "0.0.0.0:0"
"""The host of a message that came from Kafka."""

LATEST_STORE_TIME = 253_402_300_799_999
"""The last millisecond of the year 9999: the names of index files contain a year of four digits."""

LATEST_OFFSET = 1 << 62
"""The last offset that a property may name. Any producer can write the property, and Kafka must
have offsets for all messages that come after this one.
"""

_NUMBERS = {
    "flag": 32,
    "sysFlag": 32,
    "reconsumeTimes": 32,
    "preparedTransactionOffset": 64,
    "storeTimestamp": 64,
}
_HOSTS = ("bornHost", "storeHost")


class MappedMessage(msgspec.Struct, frozen=True):
    """The fields of a record of the commit log, without its position: see
    `formats.record.Record`.
    """

    body: bytes
    properties: Mapping[str, str]
    born_timestamp: int
    store_timestamp: int
    born_host: str = NOWHERE
    store_host: str = NOWHERE
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0


class Placed(NamedTuple):
    """A record and its offset."""

    offset: int
    record: NewRecord


class _Exactly(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Fields of a Kafka record that the message cannot represent; bytes are base64."""

    offset: int | None = None
    is_null: bool = False
    key: bytes | msgspec.UnsetType | None = msgspec.UNSET
    headers: list[tuple[str, bytes | None]] | msgspec.UnsetType = msgspec.UNSET


def to_kafka(message: MappedMessage, queue_offset: int) -> Placed:
    """Return the record of a message at a queue offset.

    KEYS is the key, the body the value, the born timestamp the time. Other properties are headers,
    after those for the remaining fields.
    """
    properties = dict(message.properties)
    properties.pop(CRC32, None)
    exactly = _exactly(properties.pop(EXACTLY, None))
    keys = properties.pop(KEYS, None)
    key = None if keys is None else keys.encode()
    headers: list[tuple[str, bytes | None]] = [
        (PREFIX + name, text.encode()) for name, text in _others(message).items()
    ]
    headers += [(name, text.encode()) for name, text in properties.items()]
    record = NewRecord(
        message.born_timestamp,
        key if exactly.key is msgspec.UNSET else exactly.key,
        None if exactly.is_null else message.body,
        headers if exactly.headers is msgspec.UNSET else exactly.headers,
    )
    return Placed(queue_offset if exactly.offset is None else exactly.offset, record)


def to_rocketmq(record: KafkaRecord, queue_offset: int, store_timestamp: int) -> MappedMessage:
    """Return the message of a record, which gets a queue offset and, if it has none, a store time.

    A header is a property of its name if both can be text; headers of `to_kafka` are restored.
    Anything that would come back different is also stored in the property EXACTLY.
    """
    others: dict[str, Any] = {"store_timestamp": store_timestamp}
    properties: dict[str, str] = {}
    if record.key is not None and (keys := _text(record.key)) is not None:
        properties[KEYS] = keys
    for name, value in record.headers:
        known = _known(name, value)
        if known is not None:
            others[known[0]] = known[1]
        elif value is not None and _is_name(name) and (text := _text(value)) is not None:
            properties.setdefault(name, text)
    message = MappedMessage(record.value or b"", properties, record.timestamp, **others)
    exactly = _difference(record, to_kafka(message, queue_offset))
    if exactly == _Exactly():
        return message
    properties[EXACTLY] = msgspec.json.encode(exactly).decode()
    return msgspec.structs.replace(message, properties=properties)


def store_time(record: KafkaRecord) -> int | None:
    """Return the store time (ms) that a record has from RocketMQ, None if it has none."""
    for name, value in record.headers:
        known = _known(name, value)
        if known is not None and known[0] == "store_timestamp":
            return known[1]
    return None


def _others(message: MappedMessage) -> dict[str, str]:
    """Return the fields that differ from those of a message from Kafka."""
    usual = {
        "storeTimestamp": message.born_timestamp,
        **dict.fromkeys(_HOSTS, NOWHERE),
        **dict.fromkeys(("flag", "sysFlag", "reconsumeTimes", "preparedTransactionOffset"), 0),
    }
    return {
        name: str(value)
        for name, expected in usual.items()
        if (value := getattr(message, _field(name))) != expected
    }


def _known(name: str, value: bytes | None) -> tuple[str, Any] | None:
    """Return field and value of a header of `to_kafka`, None for any other."""
    name = name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""
    if value is None or not (name in _NUMBERS or name in _HOSTS):
        return None
    try:
        text = value.decode()
        if name in _HOSTS:
            return (_field(name), text) if decode_host(encode_host(text)) == text else None
        number = int(text)
    except (ValueError, FormatError):
        return None
    most = 1 << _NUMBERS[name] - 1
    if str(number) != text or not -most <= number < most:
        return None
    if name == "sysFlag" and (not sys_flag.is_queued(number) or number & sys_flag.INNER_BATCH):
        return None
    if name == "storeTimestamp" and not 0 <= number <= LATEST_STORE_TIME:
        return None
    return _field(name), number


def _field(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _difference(record: KafkaRecord, back: Placed) -> _Exactly:
    headers = list(record.headers)
    return _Exactly(
        offset=None if back.offset == record.offset else record.offset,
        is_null=record.value is None,
        key=msgspec.UNSET if back.record.key == record.key else record.key,
        headers=msgspec.UNSET if back.record.headers == headers else headers,
    )


def _exactly(text: str | None) -> _Exactly:
    if text is None:
        return _Exactly()
    try:
        found = msgspec.json.decode(text, type=_Exactly)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return _Exactly()
    if found.offset is not None and not 0 <= found.offset <= LATEST_OFFSET:
        return msgspec.structs.replace(found, offset=None)
    return found


def _is_name(name: str) -> bool:
    is_text = bool(name) and NAME_VALUE_SEPARATOR not in name and PROPERTY_SEPARATOR not in name
    return is_text and name not in (KEYS, EXACTLY)


def _text(data: bytes) -> str | None:
    """Return a text that a property can hold."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text and PROPERTY_SEPARATOR not in text else None
