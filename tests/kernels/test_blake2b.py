"""BLAKE2b with a key equals hashlib's."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import pytest

from mqlake.kernels.blake2b import BLOCK, STATE, keyed_hash, keyed_start
from mqlake.kernels.jit import kernel


@kernel
def hash_at(key: Any, start: Any, state: Any, block: Any, buffer: Any, at: int, length: int) -> Any:
    keyed_start(start, key, block)
    return keyed_hash(start, buffer, at, length, state, block)


def digest(key: bytes, message: bytes, at: int = 0) -> bytes:
    start, state = np.full(STATE, 0xEE, np.uint8), np.full(STATE, 0xEE, np.uint8)
    # Nothing follows the message: the bounds-checked build would raise.
    buffer = np.frombuffer(bytes(at) + message, np.uint8)
    block = np.full(BLOCK, 0xEE, np.uint8)
    key_bytes = np.frombuffer(key, np.uint8)
    found = hash_at(key_bytes, start, state, block, buffer, at, len(message))
    return int(found).to_bytes(8)


def test_equals_hashlib_for_each_length_and_alignment() -> None:
    chance = random.Random(1)
    for length in range(1, 400):
        key, message = chance.randbytes(8), chance.randbytes(length)
        wanted = hashlib.blake2b(message, digest_size=8, key=key).digest()
        assert digest(key, message, length % 9) == wanted, length


@pytest.mark.parametrize("byte", [0, 0x55, 0xFF])
def test_equals_hashlib_for_uniform_messages(byte: int) -> None:
    for length in (1, 127, 128, 129, 256, 1024):
        key, message = bytes([byte]) * 8, bytes([byte]) * length
        assert digest(key, message) == hashlib.blake2b(message, digest_size=8, key=key).digest()
