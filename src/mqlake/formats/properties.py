"""Read and write a record's properties (docs/formats/properties.md).

Upstream: `MessageDecoder.string2messageProperties`, `messageProperties2String`, `MessageConst`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mqlake.errors import FormatError
from mqlake.formats import java_string

NAME_VALUE_SEPARATOR = "\x01"
PROPERTY_SEPARATOR = "\x02"
KEY_SEPARATOR = " "
MAX_LENGTH = 0x7FFF
MAX_PRIORITY = 0x7FFFFFFF
_INT = re.compile(r"\+?0*([0-9]{1,10})")
_EMPTY_NAME = PROPERTY_SEPARATOR + NAME_VALUE_SEPARATOR
_EMPTY_VALUE = NAME_VALUE_SEPARATOR + PROPERTY_SEPARATOR

KEYS = "KEYS"
TAGS = "TAGS"
UNIQ_KEY = "UNIQ_KEY"
DELAY = "DELAY"
DELIVER_MS = "TIMER_DELIVER_MS"
DELAY_MS = "TIMER_DELAY_MS"
DELAY_SEC = "TIMER_DELAY_SEC"
SHARDING_KEY = "__SHARDINGKEY"
PRIORITY = "_SYS_MSG_PRIORITY_"
LITE_TOPIC = "__LITE_TOPIC"
MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
CANCEL = "TIMER_DEL_UNIQKEY"
"""Of a message that takes back another one of the same slot: the UNIQ_KEY of that one."""
WAIT = "WAIT"
RETRY_TOPIC = "RETRY_TOPIC"
REAL_TOPIC = "REAL_TOPIC"
REAL_QID = "REAL_QID"
TRAN_MSG = "TRAN_MSG"
PGROUP = "PGROUP"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
INNER_NUM = "INNER_NUM"
INNER_BASE = "INNER_BASE"
TRANSACTION_ID = "__transactionId__"
CRC32 = "__CRC32#"


def decode_properties(data: bytes | memoryview) -> dict[str, str]:
    """Return name and value pairs; never raises.

    As in Java: malformed UTF-8 is replaced, a pair without a name or without a value is dropped,
    a value may hold further name separators, and the last of equal names wins.
    """
    pairs = [
        pair.partition(NAME_VALUE_SEPARATOR)
        for pair in java_string.decode(data).split(PROPERTY_SEPARATOR)
    ]
    return {name: value for name, _, value in pairs if name and value}


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Return the bytes RocketMQ writes: each pair ends with a separator.

    Raises:
        FormatError: a pair that would not be read back, or more than 32767 bytes.
    """
    data = encode_pairs(properties)
    if len(data) > MAX_LENGTH:
        raise FormatError(f"the properties have {len(data)} bytes; the maximum is {MAX_LENGTH}")
    return data


def encode_pairs(properties: Mapping[str, str]) -> bytes:
    """Return what `encode_properties` does, however long.

    Raises:
        FormatError: a pair that would not be read back.
        TypeError: a name or a value that is no text.
    """
    text = "".join(
        [
            name + NAME_VALUE_SEPARATOR + value + PROPERTY_SEPARATOR
            for name, value in properties.items()
        ]
    )
    if not _is_readable(text, len(properties)):
        _require_readable(properties)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise FormatError(f"a property is not Unicode text: {error.reason}") from None


def _is_readable(text: str, count: int) -> bool:
    """Return whether it is certain that so many pairs can be read back from a text.

    A few searches of the whole text take less time than a look at each pair.
    """
    return (
        text.count(PROPERTY_SEPARATOR) == count
        and text.count(NAME_VALUE_SEPARATOR) == count
        and not text.startswith(NAME_VALUE_SEPARATOR)
        and _EMPTY_NAME not in text
        and _EMPTY_VALUE not in text
    )


def _require_readable(properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        separated = NAME_VALUE_SEPARATOR in name or PROPERTY_SEPARATOR in name + value
        if not name or not value or separated:
            raise FormatError(f"property cannot be stored: {name!r} = {value!r}")


def priority_of(properties: Mapping[str, str]) -> int | None:
    """Return the number that the priority property states, None for no property or no number.

    Upstream: `Message.getPriority`, which returns -1 instead.
    """
    match = _INT.fullmatch(properties.get(PRIORITY, ""))
    if match is None or (number := int(match[1])) > MAX_PRIORITY:
        return None
    return number


def key_list(properties: Mapping[str, str]) -> list[str]:
    """Return the keys of the KEYS property: parted by spaces, empty ones dropped."""
    return [key for key in properties.get(KEYS, "").split(KEY_SEPARATOR) if key]
