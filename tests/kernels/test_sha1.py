from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mqlake.kernels import sha1 as module
from mqlake.kernels.jit import kernel

IMPLEMENTATIONS: dict[str, Any] = {"ordinary": module.sha1_ordinary}
if module.HAS_INSTRUCTIONS:
    IMPLEMENTATIONS["instructions"] = module.sha1_instructions

Hash = Callable[[bytes, int], bytes]


@pytest.fixture(scope="module", params=IMPLEMENTATIONS)
def sha1(request: pytest.FixtureRequest) -> Hash:
    implementation = IMPLEMENTATIONS[request.param]

    @kernel
    def call(state: Any, to: int, buffer: Any, at: int, count: int) -> None:
        implementation(state, to, buffer, at, count)

    def digest(message: bytes, at: int) -> bytes:
        zeros = -(len(message) + 9) % module.BLOCK
        padded = message + b"\x80" + bytes(zeros) + (8 * len(message)).to_bytes(8)
        state = np.full(at + module.DIGEST, 0xEE, np.uint8)
        state[at:] = module.START
        # Nothing follows the last block: the bounds-checked build would raise.
        buffer = np.frombuffer(bytes(at) + padded, np.uint8)
        call(state, at, buffer, at, len(padded) // module.BLOCK)
        assert state[:at].tobytes() == b"\xee" * at
        return state[at:].tobytes()

    return digest


def test_equals_hashlib_for_each_length_and_alignment(sha1: Hash) -> None:
    data = random.Random(1).randbytes(700)
    for length in range(300):
        for at in (0, 1, 3, 8, 17):
            message = data[at : at + length]
            assert sha1(message, at) == hashlib.sha1(message).digest(), (length, at)


@pytest.mark.parametrize("byte", [0, 0x55, 0xFF])
def test_equals_hashlib_for_uniform_messages(sha1: Hash, byte: int) -> None:
    for length in (0, 55, 56, 63, 64, 1000, 100_000):
        message = bytes([byte]) * length
        assert sha1(message, 0) == hashlib.sha1(message).digest()


def test_equals_hashlib_for_random_messages(sha1: Hash) -> None:
    chance = random.Random(2)
    for _ in range(2000):
        message = chance.randbytes(chance.randrange(2000))
        assert sha1(message, 0) == hashlib.sha1(message).digest()
