"""Bytes of any kind: answers may be empty, but come soon, and nothing is raised but our errors."""

from __future__ import annotations

import struct
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats.file_name import segment_name
from mqlake.storage.memory import MemoryDirectory
from mqlake.store.reader import StoreReader
from tests.golden import store
from tests.store.make_store import START, StoreMaker


def make() -> dict[str, bytes]:
    maker = StoreMaker()
    for number in range(60):
        keys = {"KEYS": f"k{number} all", "TAGS": "tag"}
        maker.append(queue_id=number % 2, time=START + number * 100, **keys)
    return {**maker.files(), "abort": b"1"}


FILES = make()


def ask_everything(files: dict[str, bytes]) -> None:
    with StoreReader.open(MemoryDirectory(files)) as reader:
        reader.inspect()
        for topic in reader.topics():
            for queue_id in reader.queues(topic):
                low, high = reader.queue(topic, queue_id)
                assert 0 <= low <= high
                found = reader.get(topic, queue_id, low, 1000, "tag")
                for record in found.records:
                    assert (record.topic, record.queue_id) == (topic, queue_id)
                reader.offset_by_time(topic, queue_id, START + 50)
                reader.offset_by_time(topic, queue_id, START + 50, "upper")
            reader.by_time_range(topic, START, START + 1000)
        for key in ("all", "k7"):
            for record in reader.by_key("T", key, max=1000).records:
                assert key in record.keys
        reader.by_key("T", "tag", index_type="T")


@settings(max_examples=150)
@given(data=st.data())
def test_mutated_files_are_reported_or_read(data: st.DataObject) -> None:
    files = dict(FILES)
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(sorted(files)))
        content = bytearray(files[path])
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        if data.draw(st.booleans()):
            content = content[:at]
        else:
            new = data.draw(st.binary(min_size=1, max_size=8))
            content[at : at + len(new)] = new
        files[path] = bytes(content)
    if data.draw(st.booleans()):
        files.pop("abort")
    ask_everything(files)


@given(
    entries=st.lists(
        st.tuples(
            st.integers(-(1 << 63), (1 << 63) - 1),
            st.integers(-(1 << 31), (1 << 31) - 1),
            st.integers(-5, 5),
        ),
        max_size=30,
    ),
    base=st.sampled_from([0, 20, 200, 20 << 57, (1 << 63) // 20 * 20 - 2000]),
)
def test_queue_files_full_of_nonsense(entries: list[tuple[int, int, int]], base: int) -> None:
    data = b"".join(struct.pack(">qiq", *entry) for entry in entries)
    ask_everything({**FILES, f"consumequeue/T/0/{segment_name(base)}": data})


@pytest.mark.timeout(60)
def test_queue_offsets_far_apart() -> None:
    """The checksum does not cover the queue offset, so it may be anything."""
    maker = StoreMaker()
    for queue_offset in (0, 1, 2, 1 << 40, (1 << 62) + 5):
        maker.append(queue_offset=queue_offset, time=START + (queue_offset >> 40))
    for files in (maker.log_files(), {**maker.log_files(), **_first_queue_file(maker)}):
        with StoreReader.open(MemoryDirectory(files)) as reader:
            assert reader.queue("T", 0) == (0, (1 << 62) + 6)
            assert [r.queue_offset for r in reader.get("T", 0, 0, 100).records] == [
                *(0, 1, 2, 1 << 40, (1 << 62) + 5)
            ]
            assert reader.offset_by_time("T", 0, START + 1) == 1 << 40
            assert reader.offset_by_time("T", 0, START, "upper") == 2
            assert len(reader.by_time_range("T", 0, 1 << 62).records) == 5


def _first_queue_file(maker: StoreMaker) -> dict[str, bytes]:
    small = StoreMaker()
    for _ in range(3):
        small.append()
    assert small.messages[1].physical_offset == maker.messages[1].physical_offset
    return small.queue_files()


@pytest.mark.parametrize("topic", ["", ".", "..", "../../etc", "a/b", "a\0b", "x" * 256, "\ud800"])
def test_topics_that_are_no_names_are_refused(topic: str) -> None:
    with StoreReader.open(MemoryDirectory(FILES)) as reader:
        for ask in (
            lambda: reader.get(topic, 0, 0),
            lambda: reader.queues(topic),
            lambda: reader.by_key(topic, "k"),
            lambda: reader.by_time_range(topic, 0, 1),
            lambda: reader.offset_by_time(topic, 0, 1),
        ):
            with pytest.raises(FormatError, match="not usable as the name of a topic's directory"):
                ask()


def test_small_questions_import_neither_numpy_nor_numba() -> None:
    """Their import takes longer than all the rest."""
    code = """
import sys
from mqlake.store.reader import StoreReader
with StoreReader.open(sys.argv[1]) as reader:
    assert reader.inspect().topics
    assert reader.by_key("TopicA", "dup-3").records
    assert reader.get("TopicA", 0, 0).records
    assert reader.by_time_range("TopicA", 0, 1 << 62).records
    assert reader.get("NoSuchTopic", 0, 0).records == []
print([name for name in ("numpy", "numba", "pyarrow", "pyspark") if name in sys.modules])
"""
    for name in ("rmq5-killed", "rmq5-default"):
        command = [sys.executable, "-c", code, str(store(name).path)]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        assert found.stdout == "[]\n"


def test_reports_are_text() -> None:
    """Whatever names and settings hold, JSON can be made of the report."""
    settings = {
        "config/consumerOffset.json": b'{"offsetTable": {"\\ud800@\\udfff": {"0": 1}}}',
        "config/subscriptionGroup.json": b'{"subscriptionGroupTable": {"\\ud800": {}}}',
        "index/\udcff": b"",
        "consumequeue/\udcff/0/1": b"",
    }
    with StoreReader.open(MemoryDirectory({**FILES, **settings})) as reader:
        report = msgspec.json.decode(msgspec.json.encode(reader.inspect()))
    assert {group["group"] for group in report["config"]["consumerGroups"]} == {"\ufffd"}
    assert report["damage"] == []


def test_a_record_before_the_first_entry_with_a_later_queue_offset() -> None:
    """What it was scanned for must not hide what later scans find."""
    maker = StoreMaker()
    for queue_offset in (20, *range(10, 31)):
        maker.append(time=START + 100 * queue_offset, queue_offset=queue_offset)
    files = maker.files(queue_file_size=200)
    for base, lost in ((200, slice(160, 200)), (400, slice(0, 120))):
        path = f"consumequeue/T/0/{segment_name(base)}"
        content = bytearray(files[path])
        content[lost] = bytes(lost.stop - lost.start)
        files[path] = bytes(content)
    with StoreReader.open(MemoryDirectory(files)) as reader:
        assert reader.queue("T", 0) == (10, 31)
        found = reader.get("T", 0, 10, 100)
        assert [one.queue_offset for one in found.records] == list(range(10, 31))
        assert reader.offset_by_time("T", 0, START + 2500) == 25
    ask_everything(files)
