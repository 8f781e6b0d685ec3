"""Find the unique key and the lite topic in the properties of a typical send."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.lane.compiled.spans import begins, text_bytes
from mqlake.broker.state.lite.names import LONGEST_LITE_TOPIC
from mqlake.formats import properties
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import load_u8

PAIR_END = ord(properties.PROPERTY_SEPARATOR)
_UNIQUE_KEY = text_bytes(f"{properties.UNIQ_KEY}{properties.NAME_VALUE_SEPARATOR}")
_WAIT = text_bytes(f"{properties.WAIT}{properties.NAME_VALUE_SEPARATOR}")
_TRUE = text_bytes("true")
# Names, or their beginnings, of properties that need more than to be stored.
_DELAY, _TIMER, _HALF, _POP, _PRIORITY, _INNER, _CRC = (
    text_bytes(name)
    for name in (
        properties.DELAY,
        "TIMER_DEL",
        properties.TRAN_MSG,
        "POP_CK",
        properties.PRIORITY,
        "INNER_",
        properties.CRC32,
    )
)
_LITE_NAME = text_bytes(properties.LITE_TOPIC)
_LITE = text_bytes(f"{properties.LITE_TOPIC}{properties.NAME_VALUE_SEPARATOR}")
_HYPHEN, _UNDERSCORE = ord("-"), ord("_")


@inlined
def _is_plain(byte):
    return 48 <= byte <= 57 or 65 <= byte <= 90 or 97 <= byte <= 122


@inlined
def _waits_not(data, at, end):
    """Return whether a property begins at a position that asks for an answer before slaves have the
    message.
    """
    if not begins(data, at, end, _WAIT):
        return False
    at += len(_WAIT)
    after = at + len(_TRUE)
    return not begins(data, at, end, _TRUE) or (after < end and load_u8(data, after) != PAIR_END)


@inlined
def _lite_topic_end(data, at, end):
    """Return where the name of the lite topic ends whose property begins at a position; -1 without
    a valid name.
    """
    if not begins(data, at, end, _LITE):
        return np.int64(-1)
    at += len(_LITE)
    begin = at
    while at < end:
        byte = load_u8(data, at)
        if not _is_plain(byte) and byte not in (_HYPHEN, _UNDERSCORE):
            break
        at += 1
    is_whole = at == end or load_u8(data, at) == PAIR_END
    return at if is_whole and 0 < at - begin <= LONGEST_LITE_TOPIC else np.int64(-1)


@inlined
def find_key(data, at, end):
    """Return (position, length) of the unique key in properties, and of the lite topic to which the
    message is sent; a length of 0 if it is sent to none, and -1, ... if they are not typical.

    Typical properties are ASCII, have such a key of letters and digits, name at most one lite
    topic, and ask for nothing but to wait for slaves.
    """
    key_at, key_length = np.int64(-1), np.int64(0)
    lite_at, lite_length = np.int64(0), np.int64(0)
    nothing = np.int64(-1), np.int64(0), np.int64(0), np.int64(0)
    while at < end:
        if (
            begins(data, at, end, _DELAY)
            or begins(data, at, end, _TIMER)
            or begins(data, at, end, _HALF)
            or begins(data, at, end, _POP)
            or begins(data, at, end, _PRIORITY)
            or begins(data, at, end, _INNER)
            or begins(data, at, end, _CRC)
            or _waits_not(data, at, end)
        ):
            return nothing
        if begins(data, at, end, _LITE_NAME):
            lite_end = _lite_topic_end(data, at, end)
            if lite_end < 0 or lite_length > 0:
                return nothing
            lite_at = at + len(_LITE)
            lite_length, at = lite_end - lite_at, lite_end + 1
            continue
        is_key = begins(data, at, end, _UNIQUE_KEY)
        start = at + len(_UNIQUE_KEY) if is_key else at
        at = start
        plain = True
        while at < end:
            byte = load_u8(data, at)
            if byte == PAIR_END:
                break
            if byte >= 128:
                return nothing
            plain &= _is_plain(byte)
            at += 1
        if is_key:
            if not plain or at == start:
                return nothing
            key_at, key_length = start, at - start
        at += 1
    return key_at, key_length, lite_at, lite_length
