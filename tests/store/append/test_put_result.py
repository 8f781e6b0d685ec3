"""The message ids of large batches."""

from __future__ import annotations

import pytest

from mqlake.formats.message_id import encode_message_id
from mqlake.store.append.put_result import many_message_ids


@pytest.mark.parametrize("host_size", [8, 20])
@pytest.mark.parametrize("count", [1, 2, 999, 1000, 1001])
def test_ids_of_a_batch_are_those_of_its_single_messages(count: int, host_size: int) -> None:
    host = bytes(range(0xF0, 0xF0 + 8)) * 3
    offsets = [(number * 0x0123_4567_89AB_CDEF) & (1 << 63) - 1 for number in range(count)]
    expected = ",".join(encode_message_id(host[:host_size], offset) for offset in offsets)
    assert many_message_ids(host[:host_size], offsets) == expected
