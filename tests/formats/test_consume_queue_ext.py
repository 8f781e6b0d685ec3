"""Consume-queue extension units: a file of RocketMQ's, against its queue and its log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import consume_queue, consume_queue_ext, record
from mqlake.formats.consume_queue_ext import END_BLANK_SIZE, HEAD, MIN_SIZE
from tests.formats.java_answers import content

UNITS = content("consume_queue_ext.bin")
QUEUE = content("consume_queue_with_ext.bin")
LOG = content("inner_batches.log")


def test_each_entry_leads_to_the_unit_of_its_record() -> None:
    walked = dict(consume_queue_ext.walk(UNITS))
    for number in range(40):
        entry = consume_queue.decode(QUEUE, number * consume_queue.ENTRY_SIZE)
        message = record.decode(LOG, entry.physical_offset)
        unit = walked[consume_queue_ext.address_offset(entry.tags_code)]

        assert (unit.tags_code, unit.store_timestamp) == (
            message.tags_code,
            message.store_timestamp,
        )
        has_map = number % 2 == 0
        assert unit.filter_bit_map == (bytes([number]) + b"\x0f\xa5\1\0\0\0\x40") * has_map
    assert len(walked) == 40


@given(st.integers(0, (1 << 63) - (1 << 31) - 1))
def test_address_round_trip(offset: int) -> None:
    address = consume_queue_ext.offset_address(offset)
    assert consume_queue_ext.is_address(address)
    assert consume_queue_ext.address_offset(address) == offset


def test_the_greatest_address_is_one_below_the_smallest_hash() -> None:
    assert consume_queue_ext.is_address(-(1 << 31) - 1)
    assert END_BLANK_SIZE == 4
    assert consume_queue_ext.offset_address(0) == -(1 << 63)


@pytest.mark.parametrize("code", [0, -1, -(1 << 31), (1 << 63) - 1])
def test_hashes_and_times_are_no_addresses(code: int) -> None:
    assert not consume_queue_ext.is_address(code)
    with pytest.raises(FormatError):
        consume_queue_ext.address_offset(code)


@pytest.mark.parametrize("offset", [-1, (1 << 63) - (1 << 31), 1 << 63])
def test_offsets_without_an_address(offset: int) -> None:
    with pytest.raises(FormatError):
        consume_queue_ext.offset_address(offset)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(MIN_SIZE),
        HEAD.pack(MIN_SIZE, 1, 2, 0)[:-1],
        HEAD.pack(MIN_SIZE + 1, 1, 2, 0) + b"x",
        HEAD.pack(MIN_SIZE + 8, 1, 2, 8) + b"seven..",
        HEAD.pack(-1, 1, 2, 0),
    ],
)
def test_damaged_units(data: bytes) -> None:
    with pytest.raises(FormatError):
        consume_queue_ext.decode(data)


def test_a_walk_ends_at_the_blank_end_and_at_the_files_end() -> None:
    unit = HEAD.pack(MIN_SIZE, 1, 2, 0)
    for end in (b"", b"\0", b"\xff" * END_BLANK_SIZE, bytes(30)):
        assert [at for at, _ in consume_queue_ext.walk(unit * 2 + end)] == [0, MIN_SIZE]


def test_a_walk_says_where_a_unit_is_damaged() -> None:
    unit = HEAD.pack(MIN_SIZE, 1, 2, 0)
    with pytest.raises(FormatError, match="byte 20"):
        list(consume_queue_ext.walk(unit + HEAD.pack(9, 1, 2, 0)))
