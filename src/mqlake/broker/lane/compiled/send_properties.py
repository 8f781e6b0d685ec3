"""Find the unique key in the properties of a typical send."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.lane.compiled.spans import begins, text_bytes
from mqlake.formats import properties
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import load_u8

PAIR_END = ord(properties.PROPERTY_SEPARATOR)
_UNIQUE_KEY = text_bytes(f"{properties.UNIQ_KEY}{properties.NAME_VALUE_SEPARATOR}")
_WAIT = text_bytes(f"{properties.WAIT}{properties.NAME_VALUE_SEPARATOR}")
_TRUE = text_bytes("true")
# Names, or their beginnings, of properties that need more than to be stored.
_DELAY, _TIMER, _HALF, _POP, _PRIORITY, _LITE, _INNER, _CRC = (
    text_bytes(name)
    for name in (
        properties.DELAY,
        "TIMER_DEL",
        properties.TRAN_MSG,
        "POP_CK",
        properties.PRIORITY,
        properties.LITE_TOPIC,
        "INNER_",
        properties.CRC32,
    )
)


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
def find_key(data, at, end):
    """Return (position, length) of the unique key in properties; -1 if they are not typical.

    Typical properties are ASCII, have such a key of letters and digits, and ask for nothing but
    to wait for slaves.
    """
    key_at, key_length = np.int64(-1), np.int64(0)
    while at < end:
        if (
            begins(data, at, end, _DELAY)
            or begins(data, at, end, _TIMER)
            or begins(data, at, end, _HALF)
            or begins(data, at, end, _POP)
            or begins(data, at, end, _PRIORITY)
            or begins(data, at, end, _LITE)
            or begins(data, at, end, _INNER)
            or begins(data, at, end, _CRC)
            or _waits_not(data, at, end)
        ):
            return np.int64(-1), key_length
        is_key = begins(data, at, end, _UNIQUE_KEY)
        start = at + len(_UNIQUE_KEY) if is_key else at
        at = start
        plain = True
        while at < end:
            byte = load_u8(data, at)
            if byte == PAIR_END:
                break
            if byte >= 128:
                return np.int64(-1), key_length
            plain &= _is_plain(byte)
            at += 1
        if is_key:
            if not plain or at == start:
                return np.int64(-1), key_length
            key_at, key_length = start, at - start
        at += 1
    return key_at, key_length
