"""The CRC of two pieces, from the CRC of each."""

from __future__ import annotations

from zlib import crc32

import pytest

from mqlake.store.append.joined_crc import joined_crc


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 255, 256, 65_535, 1 << 20, (1 << 20) + 3])
@pytest.mark.parametrize("before", [b"", b"\0", b"a head", bytes(range(256))])
def test_the_crc_of_two_pieces_is_that_of_both_together(size: int, before: bytes) -> None:
    after = (bytes(range(1, 252)) * (size // 251 + 1))[:size]
    assert joined_crc(crc32(before), crc32(after), size) == crc32(before + after)
