"""Index files: RocketMQ's own against its own log, chains made to loop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import index_file, sys_flag
from mqlake.formats.dialect import Dialect
from mqlake.formats.index_file import (
    ENTRY_SIZE,
    HEADER_SIZE,
    SLOT,
    IndexEntry,
    IndexHeader,
    entry_at,
    slot_at,
    walk_slot,
)
from mqlake.formats.java_string import index_key_hash
from tests.formats.golden_log import golden, messages
from tests.formats.strategies import INT, LONG

SLOTS, MAX_ENTRIES = 1000, 4000
DIALECTS = {"rmq5-clean": Dialect.V5_5, "rmq533-clean": Dialect.V5_3, "rmq49-clean": Dialect.V4_9}


def index_files(name: str) -> list[bytes]:
    folder = golden(name).path / "index"
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def expected_entries(name: str) -> list[tuple[str, int, int]]:
    """Return (key text, physical offset, store timestamp) of each entry that dispatch makes."""
    return [
        (key, m["physicalOffset"], m["storeTimestamp"])
        for m in messages(name)
        if sys_flag.is_indexed(m["sysFlag"])
        for key in index_file.index_keys(m["topic"], m["properties"], DIALECTS[name])
    ]


@pytest.mark.parametrize("name", DIALECTS)
def test_every_entry_is_what_its_record_says(name: str) -> None:
    expected, begin = expected_entries(name), 0
    for data in index_files(name):
        assert len(data) == index_file.file_size(SLOTS, MAX_ENTRIES)
        header = index_file.decode_header(data)
        used, expected = expected[: header.index_count - 1], expected[header.index_count - 1 :]
        slots: dict[int, int] = {}
        for number, (key, offset, timestamp) in enumerate(used, 1):
            value = index_key_hash(key)
            seconds = index_file.seconds_since(begin, timestamp)
            begin = header.begin_timestamp
            previous = slots.get(value % SLOTS, 0)
            assert index_file.decode_entry(data, SLOTS, number) == (
                value,
                offset,
                seconds,
                previous,
            )
            slots[value % SLOTS] = number
        assert header == (
            used[0][2],
            used[-1][2],
            used[0][1],
            used[-1][1],
            len(slots),
            len(used) + 1,
        )
        for slot, number in slots.items():
            assert SLOT.unpack_from(data, slot_at(SLOTS, slot)) == (number,)
        begin = header.end_timestamp
    assert not expected


@pytest.mark.parametrize("name", DIALECTS)
def test_chains_lead_to_all_records_of_a_key(name: str) -> None:
    files = index_files(name)
    for query in golden(name).queries()["indexQueryOffset"]:
        value = index_key_hash(index_file.index_key(query["topic"], query["key"]))
        found = [
            entry.physical_offset
            for data in reversed(files)
            for entry in walk_slot(data, SLOTS, MAX_ENTRIES, value)
            if entry.key_hash == value
        ]
        assert found[: len(query["phyOffsets"])] == query["phyOffsets"]


def chain(*links: int) -> bytes:
    """Return a file of one slot whose entry n links to links[n]; links[0] is the slot's."""
    data = bytearray(index_file.file_size(1, len(links)))
    SLOT.pack_into(data, HEADER_SIZE, links[0])
    for number, previous in enumerate(links[1:], 1):
        entry = index_file.encode_entry(IndexEntry(7, 100 * number, 0, previous))
        data[entry_at(1, number) : entry_at(1, number) + ENTRY_SIZE] = entry
    return bytes(data)


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ((3, 0, 1, 2), [300, 200, 100]),
        ((3, 0, 0, 1), [300, 100]),
        ((0, 0, 1, 2), []),
        ((-1, 0, 1, 2), []),
        ((4, 0, 1, 2), []),
        ((1 << 30, 0, 1, 2), []),
        ((3, 0, 1, 3), [300]),  # to itself
        ((2, 3, 1, 2), [200, 100]),  # forwards
        ((3, 3, 1, 2), [300, 200, 100]),  # a loop
        ((3, 0, 1, -5), [300]),
    ],
)
def test_chains_that_are_damaged_end(links: tuple[int, ...], expected: list[int]) -> None:
    data = chain(*links)
    assert [entry.physical_offset for entry in walk_slot(data, 1, len(links), 7)] == expected


def test_other_hashes_of_a_slot_are_on_its_chain() -> None:
    assert [entry.key_hash for entry in walk_slot(chain(3, 0, 1, 2), 1, 4, 8)] == [7, 7, 7]


@given(st.binary(max_size=400), st.integers(-2, 40), st.integers(-2, 40), st.integers(-1, 1 << 31))
def test_any_bytes_give_a_bounded_walk(data: bytes, slots: int, entries: int, value: int) -> None:
    numbers = list(walk_slot(data, slots, entries, value))
    assert len(numbers) <= len(data) // ENTRY_SIZE


def test_a_short_file_gives_what_it_has() -> None:
    whole = chain(3, 0, 1, 2)
    for length in range(len(whole)):
        assert list(walk_slot(whole[:length], 1, 4, 7)) == []
    assert len(list(walk_slot(whole, 1, 4, 7))) == 3


@given(st.builds(IndexHeader, LONG, LONG, LONG, LONG, INT, st.integers(1, (1 << 31) - 1)))
def test_header_round_trip(header: IndexHeader) -> None:
    assert index_file.decode_header(index_file.encode_header(header)) == header


def test_an_empty_header_counts_from_1() -> None:
    assert index_file.decode_header(bytes(40)) == (0, 0, 0, 0, 0, 1)
    with pytest.raises(FormatError):
        index_file.decode_header(bytes(39))


@given(st.builds(IndexEntry, INT, LONG, INT, INT))
def test_entry_round_trip(entry: IndexEntry) -> None:
    data = bytes(entry_at(3, 1)) + index_file.encode_entry(entry)
    assert index_file.decode_entry(data, 3, 1) == entry
    data = bytes(entry_at(1, 2)) + index_file.encode_entry(entry)
    assert index_file.decode_entry(data, 1, 2) == entry


@pytest.mark.parametrize(("slots", "number"), [(0, 1), (-1, 1), (1, 0), (1, -1), (1, 1 << 40)])
def test_no_such_entry(slots: int, number: int) -> None:
    with pytest.raises(FormatError):
        index_file.decode_entry(bytes(200), slots, number)


@pytest.mark.parametrize(
    ("begin", "timestamp", "expected"),
    [
        (0, 5_000, 0),
        (-1, 5_000, 0),
        (1_000, 1_999, 0),
        (1_000, 2_000, 1),
        (1_000, 999, 0),
        (1_000, -5_000, 0),
        (1, 1 << 62, 0x7FFFFFFF),
        (1, 1 + 0x7FFFFFFF * 1000, 0x7FFFFFFF),
        (1, 0x7FFFFFFF * 1000, 0x7FFFFFFE),
        (2, -(1 << 63), 0x7FFFFFFF),  # the difference wraps
    ],
)
def test_seconds_since(begin: int, timestamp: int, expected: int) -> None:
    assert index_file.seconds_since(begin, timestamp) == expected


def test_default_size_is_400_megabytes() -> None:
    assert index_file.file_size() == 420_000_040


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        (Dialect.V4_9, ["T#u", "T#a", "T#b", "T#a"]),
        (Dialect.V5_3, ["T#u", "T#a", "T#b", "T#a"]),
        (Dialect.V5_5, ["T#u", "T#a", "T#b", "T#a", "T#T#x||y"]),
    ],
)
def test_index_keys(dialect: Dialect, expected: list[str]) -> None:
    props = {"KEYS": " a b  a", "UNIQ_KEY": "u", "TAGS": "x||y"}
    assert index_file.index_keys("T", props, dialect) == expected
    assert index_file.index_keys("T", {}, dialect) == []
