"""Sizes and dialect, read off the files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.formats import checkpoint, index_file
from mqlake.formats.checkpoint import Checkpoint
from mqlake.formats.dialect import Dialect
from mqlake.storage.memory import MemoryDirectory
from mqlake.store.index import index_sizes
from mqlake.store.index.index_sizes import find_sizes
from mqlake.store.reader import StoreReader
from tests.golden import NAMES, store
from tests.store.make_store import START, StoreMaker


def make(count: int = 30) -> StoreMaker:
    maker = StoreMaker()
    for number in range(count):
        maker.append(time=START + number, KEYS=f"k{number} all", TAGS=f"tag{number % 3}")
    return maker


@given(slots=st.integers(1, 400), room=st.integers(30, 900), count=st.integers(2, 30))
def test_index_sizes_follow_from_the_entries(slots: int, room: int, count: int) -> None:
    """Also where slots and entries are in no usual proportion."""
    data, *_ = make(count).index_files(slots, room).values()
    found = find_sizes(memoryview(data), index_file.decode_header(data))
    assert found == (slots, room, True)


def test_empty_index_has_the_default_proportion() -> None:
    data = bytes(index_file.file_size(1000, 4000))
    assert find_sizes(memoryview(data), index_file.decode_header(data)) == (1000, 4000, False)
    assert find_sizes(memoryview(data[:-1]), index_file.decode_header(data)) is None


@pytest.mark.parametrize("name", NAMES)
def test_the_dialect_of_each_golden_store_is_detected(name: str) -> None:
    expected = {"rmq5": "5.5", "rmq533": "5.3", "rmq49": "4.9"}[name.partition("-")[0]]
    sizes = (5_000_000, 20_000_000) if name == "rmq5-default" else (1000, 4000)
    with StoreReader.open(store(name).path) as reader:
        report = reader.inspect()
    assert (report.dialect, report.detected_by) == (expected, "index entries")
    assert {(file.hash_slots, file.max_entries) for file in report.index} == {sizes}
    assert report.commit_log.file_size == (1 << 30 if name == "rmq5-default" else 1 << 20)
    assert report.queue_file_size == (6_000_000 if name == "rmq5-default" else 20_000)


def test_few_places_are_tried_for_the_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hostile bytes can hold the last entry's offset anywhere, and each trial walks chains."""
    header = index_file.IndexHeader(1, 1, 0x0101010101010101, 0x0101010101010101, 1, 5000)
    data = index_file.encode_header(header) + b"\x01" * 400_000
    trials: list[int] = []
    monkeypatch.setattr(
        index_sizes, "_agrees", lambda view, slots, *rest: bool(trials.append(slots))
    )
    assert find_sizes(memoryview(data), header) is None
    assert 0 < len(trials) <= 2 * 64


@pytest.mark.parametrize("dialect", [Dialect.V5_5, Dialect.V5_3])
def test_dialect_by_index(dialect: Dialect) -> None:
    files = make().files(dialect=dialect)
    files["checkpoint"] = checkpoint.encode(Checkpoint(1, 1, 1, 0, 5), Dialect.V5_5)
    with StoreReader.open(MemoryDirectory(files)) as reader:
        assert reader.dialect is dialect
    with StoreReader.open(MemoryDirectory(files), dialect=Dialect.V4_9) as reader:
        assert reader.dialect is Dialect.V4_9


@pytest.mark.parametrize("count", [1, 2])
def test_offsets_of_the_first_record_tell_no_dialect(count: int) -> None:
    """They are 0 in every release's checkpoint, whatever came after that was written."""
    known = checkpoint.encode(Checkpoint(START, START))
    files = {**make(count).log_files(), "checkpoint": known}
    with StoreReader.open(MemoryDirectory(files)) as reader:
        assert reader.inspect().detected_by == "assumption"
    files["timerwheel/x"] = b""
    with StoreReader.open(MemoryDirectory(files)) as reader:
        assert reader.dialect is Dialect.V5_3


@pytest.mark.parametrize(
    ("known", "more", "expected"),
    [
        (Checkpoint(1, 1, 1, 0, 0, 9), "x", ("5.5", "checkpoint")),
        (Checkpoint(1, 1, 1, 0, 9, 0), "x", ("5.3", "checkpoint")),
        (Checkpoint(START + 1, 1, 1, 0, 0, 0), "x", ("4.9", "checkpoint")),
        (Checkpoint(), "rocksdbstore/x", ("5.5", "other files")),
        (Checkpoint(), "timerwheel/x", ("5.3", "other files")),
        (Checkpoint(), "config/topics.json", ("4.9", "other files")),
        (Checkpoint(), "x", ("5.5", "assumption")),
    ],
)
def test_dialect_without_index(known: Checkpoint, more: str, expected: tuple[str, str]) -> None:
    files = {**make().log_files(), "checkpoint": checkpoint.encode(known), more: b""}
    with StoreReader.open(MemoryDirectory(files)) as reader:
        report = reader.inspect()
    assert (report.dialect, report.detected_by) == expected


@pytest.mark.parametrize("dialect", Dialect)
def test_tags_are_found_whether_indexed_or_not(dialect: Dialect) -> None:
    maker = make()
    expected = [m.physical_offset for m in maker.messages if m.properties["TAGS"] == "tag1"]
    with StoreReader.open(MemoryDirectory(maker.files(dialect=dialect))) as reader:
        found = reader.by_key("T", "tag1", index_type="T")
        assert [record.physical_offset for record in found.records] == expected
        assert reader.by_key("T", "tag1").records == []
        assert reader.by_key("T", "T#tag1").records == []
        newest = reader.by_key("T", "tag1", max=3, index_type="T")
    assert [record.physical_offset for record in newest.records] == expected[-3:]
    assert newest.truncated
