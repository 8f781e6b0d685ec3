"""Parse the frame of a typical send whose header is JSON.

A header that is unusual in any way is not accepted, and is read by the code for single frames: it
has other members than a request has, white space, escapes besides those of the two separators of
properties, or bytes that are not ASCII.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.lane.compiled.send_header import (
    ACCESS_KEY,
    FIRST_LETTER,
    HEADER_AT,
    LETTERS,
    PROPERTIES,
    SIGNATURE,
    frame_limits,
    has_required,
    is_usual,
    read_numbers,
    read_small_number,
)
from mqlake.broker.lane.compiled.spans import begins, text_bytes
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import load_u8, store_u8
from mqlake.protocol import signature
from mqlake.protocol.command import Serialization

_JSON = int(Serialization.JSON)
_QUOTE, _BACKSLASH, _COLON, _COMMA = ord('"'), ord("\\"), ord(":"), ord(",")
_BEGIN, _END = ord("{"), ord("}")
_FIRST_PRINTABLE, _LAST_PRINTABLE = 32, 126
_ESCAPE = text_bytes("\\u000")
_ESCAPED_SIZE = 6
_ZERO, _NINE, _MINUS = ord("0"), ord("9"), ord("-")
_FIELD_AT = 6  # {"a":"
_ACCESS_KEY, _SIGNATURE = (
    text_bytes(f'"{name}":"') for name in (signature.ACCESS_KEY, signature.SIGNATURE)
)

_CODE, _FIELDS, _FLAG, _LANGUAGE, _OPAQUE, _REMARK, _KIND, _VERSION = (
    text_bytes(f'"{name}":')
    for name in (
        "code",
        "extFields",
        "flag",
        "language",
        "opaque",
        "remark",
        "serializeTypeCurrentRPC",
        "version",
    )
)
_HAS_CODE, _HAS_FIELDS, _HAS_FLAG, _HAS_LANGUAGE = 1, 2, 4, 8
_HAS_OPAQUE, _HAS_REMARK, _HAS_KIND, _HAS_VERSION = 16, 32, 64, 128
_NEEDED = _HAS_CODE | _HAS_FIELDS | _HAS_OPAQUE


@inlined
def _text_end(data, at, end, escapes):
    """Return the position of the quote that ends a text; -1 if the text is not typical.

    Args:
        escapes: whether the separators of properties may be in it, which JSON escapes.
    """
    while at < end:
        byte = load_u8(data, at)
        if byte == _QUOTE:
            return at
        if byte == _BACKSLASH:
            if not escapes or end - at < _ESCAPED_SIZE or not begins(data, at, end, _ESCAPE):
                return np.int64(-1)
            digit = load_u8(data, at + _ESCAPED_SIZE - 1) - _ZERO
            if digit != 1 and digit != 2:
                return np.int64(-1)
            at += _ESCAPED_SIZE
        elif byte < _FIRST_PRINTABLE or byte > _LAST_PRINTABLE:
            return np.int64(-1)
        else:
            at += 1
    return np.int64(-1)


@inlined
def unescape(data, at, length, target):
    """Write a text that was parsed to the beginning of `target`; return its length there."""
    end, to = at + length, np.int64(0)
    while at < end:
        byte = load_u8(data, at)
        if byte == _BACKSLASH:
            byte = load_u8(data, at + _ESCAPED_SIZE - 1) - _ZERO
            at += _ESCAPED_SIZE
        else:
            at += 1
        store_u8(target, to, byte)
        to += 1
    return to


@inlined
def _field(data, at, end):
    """Return (the row of the field whose name begins at a position, position of its text); -1 for a
    field that typical sends do not have.
    """
    if (
        load_u8(data, at) == _QUOTE
        and load_u8(data, at + 2) == _QUOTE
        and load_u8(data, at + 3) == _COLON
        and load_u8(data, at + 4) == _QUOTE
    ):
        letter = load_u8(data, at + 1) - FIRST_LETTER
        if 0 <= letter < LETTERS:
            return letter, at + _FIELD_AT - 1
    elif begins(data, at, end, _ACCESS_KEY):
        return np.int64(ACCESS_KEY), at + len(_ACCESS_KEY)
    elif begins(data, at, end, _SIGNATURE):
        return np.int64(SIGNATURE), at + len(_SIGNATURE)
    return np.int64(-1), at


@inlined
def _read_fields(data, at, end, starts, lengths):
    """Find the values of an object's members; return the position after the object, -1 if it has
    others than typical sends have.
    """
    lengths[:] = -1
    separator = _BEGIN
    while end - at > _FIELD_AT:
        if load_u8(data, at) != separator:
            break
        field, at = _field(data, at + 1, end)
        if field < 0 or lengths[field] >= 0:
            break
        text_end = _text_end(data, at, end, field == PROPERTIES)
        if text_end < 0 or text_end + 1 >= end:
            break
        starts[field], lengths[field] = at, text_end - at
        at = text_end + 1
        if load_u8(data, at) == _END:
            return at + 1
        separator = _COMMA
    return np.int64(-1)


@inlined
def _number_end(data, at, end):
    while at < end:
        byte = load_u8(data, at)
        if byte != _MINUS and (byte < _ZERO or byte > _NINE):
            break
        at += 1
    return at


@inlined
def _member(data, at, end):
    """Return (the bit of the member whose name begins at a position, position of its value)."""
    nothing = np.int64(0), np.int64(0)
    if begins(data, at, end, _CODE):
        return np.int64(_HAS_CODE), at + len(_CODE)
    if begins(data, at, end, _FIELDS):
        return np.int64(_HAS_FIELDS), at + len(_FIELDS)
    if begins(data, at, end, _FLAG):
        return np.int64(_HAS_FLAG), at + len(_FLAG)
    if begins(data, at, end, _LANGUAGE):
        return np.int64(_HAS_LANGUAGE), at + len(_LANGUAGE)
    if begins(data, at, end, _OPAQUE):
        return np.int64(_HAS_OPAQUE), at + len(_OPAQUE)
    if begins(data, at, end, _REMARK):
        return np.int64(_HAS_REMARK), at + len(_REMARK)
    if begins(data, at, end, _KIND):
        return np.int64(_HAS_KIND), at + len(_KIND)
    if begins(data, at, end, _VERSION):
        return np.int64(_HAS_VERSION), at + len(_VERSION)
    return nothing


@inlined
def _read_header(data, at, end, starts, lengths):
    """Find the fields of a header; return (whether it is typical, its request code, its opaque)."""
    atypical = False, np.int64(0), np.int64(0)
    found, code, opaque, separator = np.int64(0), np.int64(0), np.int64(0), _BEGIN
    while end - at > 1 and load_u8(data, at) == separator:
        member, at = _member(data, at + 1, end)
        if member == 0 or found & member != 0:
            return atypical
        found |= member
        if member == _HAS_FIELDS:
            at = _read_fields(data, at, end, starts, lengths)
            if at < 0:
                return atypical
        elif member & (_HAS_LANGUAGE | _HAS_REMARK | _HAS_KIND) != 0:
            if at >= end or load_u8(data, at) != _QUOTE:
                return atypical
            at = _text_end(data, at + 1, end, False) + 1
            if at == 0:
                return atypical
        else:
            following = _number_end(data, at, end)
            ok, number = read_small_number(data, at, following - at)
            if not ok or (member == _HAS_FLAG and number != 0):
                return atypical
            if member == _HAS_CODE:
                code = number
            elif member == _HAS_OPAQUE:
                opaque = number
            at = following
        separator = _COMMA
    is_whole = end - at == 1 and load_u8(data, at) == _END
    return is_whole and found & _NEEDED == _NEEDED, code, opaque


@inlined
def read_json_send(data, at, most, starts, lengths, numbers):
    """Return what `read_any_send` does, of a frame whose header is JSON."""
    zero = np.int64(0)
    nothing = zero, zero, zero, zero
    kind, body_at, following = frame_limits(data, at, most)
    if kind != _JSON:
        return nothing
    ok, code, opaque = _read_header(data, at + HEADER_AT, body_at, starts, lengths)
    if (
        not ok
        or not has_required(lengths)
        or not read_numbers(data, starts, lengths, numbers)
        or not is_usual(numbers)
    ):
        return nothing
    return body_at, following, code, opaque
