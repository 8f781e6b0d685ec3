"""Check signatures, which are Base64 of an HMAC-SHA1 (`mqlake.protocol.signature`).

A send whose text this does not know for sure, such as one that is not ASCII, counts as one with a
wrong signature: the ordinary path decides about both.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.broker.lane.compiled.send_header import (
    ACCESS_KEY,
    LETTERS,
    PROPERTIES,
    SIGNATURE,
)
from mqlake.broker.lane.layout import (
    END_USER,
    FIRST_USER,
    IS_OPEN,
    KEY_SIZE,
    SIGNER,
    TEXT_AT,
    USER_SIZE,
)
from mqlake.dispatch.compiled.put_sent import BODY_AT, BODY_SIZE
from mqlake.dispatch.compiled.queues import equal_bytes
from mqlake.kernels.jit import brief_kernel, inlined
from mqlake.kernels.memory import CHUNK, borrow, copy, copy_chunk, load_u8, store_i64, store_u8
from mqlake.kernels.sha1 import BLOCK, DIGEST, START, sha1_blocks
from mqlake.kernels.utf8 import is_ascii

OPEN, RIGHT, WRONG, UNKNOWN = range(4)
"""No signature is needed. It is right, or wrong. Who has signed is unknown."""

_NAME_AT = 8
_BASE64 = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
_SIZE = 28
"""Bytes of Base64 of a digest, of which the last one is `=`."""
_PAD, _FIRST_PAD, _LENGTH_SIZE = ord("="), 0x80, 8
_INNER_PAD, _OUTER_PAD = 0x36, 0x5C
_OUTER_AT = BLOCK
"""Where the state of the outer hash is in `text`. Before it is the block that this hashes last."""


@inlined
def _append(text, to, data, at, size):
    """Copy bytes, and perhaps what follows them, which is to be overwritten; return the end."""
    if size <= CHUNK and at + CHUNK <= len(data):
        copy_chunk(text, to, data, at)
    else:
        copy(text, to, data, at, size)
    return to + size


@inlined
def _pad(text, to, begin, hashed):
    """Pad a message that ends at `to`; return the position after its last block.

    Args:
        begin: where its blocks begin.
        hashed: how many bytes were hashed before these.
    """
    bits = 8 * (hashed + to - begin)
    store_u8(text, to, _FIRST_PAD)
    to += 1
    end = to + _LENGTH_SIZE
    end += (begin - end) & (BLOCK - 1)
    while to < end - _LENGTH_SIZE:
        store_u8(text, to, 0)
        to += 1
    store_i64(text, end - _LENGTH_SIZE, bits)
    return end


@inlined
def _hash(text, end, keys, key_at):
    """Write the HMAC of the padded text to _OUTER_AT."""
    copy(text, 0, keys, key_at, DIGEST)
    sha1_blocks(text, 0, text, TEXT_AT, (end - TEXT_AT) // BLOCK)
    _pad(text, DIGEST, 0, BLOCK)
    copy(text, _OUTER_AT, keys, key_at + DIGEST, DIGEST)
    sha1_blocks(text, _OUTER_AT, text, 0, 1)


@inlined
def _is_base64(data, at, text, digest_at):
    """Return whether _SIZE bytes are Base64 of a digest, in a time that does not tell where not."""
    different = load_u8(data, at + _SIZE - 1) ^ _PAD
    for place in range(_SIZE - 1):
        bit = 6 * place
        byte = digest_at + (bit >> 3)
        # The last digit has two bits of what follows the digest, which are 0.
        following = load_u8(text, byte + 1) if place < _SIZE - 2 else 0
        pair = load_u8(text, byte) << 8 | following
        digit = pair >> (10 - (bit & 7)) & 63
        different |= load_u8(data, at + place) ^ np.int64(_BASE64[digit])
    return different == 0


@inlined
def has_signed(text, to, keys, user, data, at):
    """Return whether the bytes at a position are the signature of a user, by its place.

    Args:
        text: what is signed is in it, from TEXT_AT to `to`. It has room for two more blocks.
    """
    end = _pad(text, to, TEXT_AT, BLOCK)
    _hash(text, end, keys, user * KEY_SIZE)
    return _is_base64(data, at, text, _OUTER_AT)


@inlined
def check_signature(state, data, fields, properties, message, users):
    """Return OPEN, RIGHT, WRONG or UNKNOWN.

    Args:
        state: the number of the user who has signed the last request of this connection, SIGNER.
        fields: starts and lengths; see `read_send`, as for properties and message.
        users: see `UserArrays`.
    """
    starts, lengths = fields
    numbers, names, name_sizes, keys, text = users
    size = lengths[ACCESS_KEY]
    if numbers[IS_OPEN] != 0:
        return OPEN if size < 0 and lengths[SIGNATURE] < 0 else WRONG
    if size <= 0 or lengths[SIGNATURE] != _SIZE:
        return WRONG
    number = state[SIGNER]
    if number < numbers[FIRST_USER] or number >= numbers[END_USER]:
        return UNKNOWN
    user = number - numbers[FIRST_USER]
    # Another user than before is noted on the ordinary path.
    if name_sizes[user] != size or not equal_bytes(
        data, starts[ACCESS_KEY], names, user * USER_SIZE + _NAME_AT, size
    ):
        return WRONG
    body_at, body_size = message[BODY_AT], message[BODY_SIZE]
    length = size + body_size
    for letter in range(LETTERS):
        length += max(lengths[letter], 0)
    if TEXT_AT + length + 2 * BLOCK > len(text):
        return WRONG
    # The names of the fields, sorted: the access key comes before the letters.
    to = _append(text, TEXT_AT, data, starts[ACCESS_KEY], size)
    for letter in range(LETTERS):
        if letter == PROPERTIES:
            to = _append(text, to, properties, 0, lengths[letter])
        elif lengths[letter] > 0:
            to = _append(text, to, data, starts[letter], lengths[letter])
    if not is_ascii(text, TEXT_AT, to):
        return WRONG
    copy(text, to, data, body_at, body_size)
    is_right = has_signed(text, to + body_size, keys, user, data, starts[SIGNATURE])
    return RIGHT if is_right else WRONG


@brief_kernel
def enter_key(keys, user, block):
    """Write the states of the inner and of the outer hash of a key.

    Args:
        keys: u1[n], in rows of KEY_SIZE.
        block: u1[BLOCK], the key, padded with zeros. It is overwritten.
    """
    keys, block, at = borrow(keys), borrow(block), user * KEY_SIZE
    for place in range(BLOCK):
        block[place] ^= _INNER_PAD
    copy(keys, at, START, 0, DIGEST)
    sha1_blocks(keys, at, block, 0, 1)
    for place in range(BLOCK):
        block[place] ^= _INNER_PAD ^ _OUTER_PAD
    copy(keys, at + DIGEST, START, 0, DIGEST)
    sha1_blocks(keys, at + DIGEST, block, 0, 1)
    block[:] = 0
