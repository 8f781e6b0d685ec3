"""The examples of docs/formats/kafka: their bytes are in the files, their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Any

import pytest

from mqlake.formats.kafka import (
    checkpoint_file,
    control_record,
    message_set,
    offset_index,
    partition_metadata,
    producer_snapshot,
    record_batch,
    snappy_stream,
    time_index,
    transaction_index,
    versions,
)
from tests import golden_kafka

PAGES = Path(__file__).parents[3] / "docs" / "formats" / "kafka"
MODULES = Path(record_batch.__file__).parent

_EXAMPLE = re.compile(r"Bytes (\d+) to (\d+) of `([^`]+)`:\n\n\|.*\n\|.*\n((?:\|.*\n?)+)")
_ROW = re.compile(r"\| `([0-9a-f ]+)` \| (.*) \| (.*) \|")


def example(page: str) -> tuple[bytes, list[str]]:
    """Return the bytes and the values of a page's example, after a comparison with the file."""
    match = _EXAMPLE.search((PAGES / f"{page}.md").read_text())
    assert match is not None
    start, end = int(match[1]), int(match[2])
    rows = [_ROW.fullmatch(line) for line in match[4].splitlines()]
    data = b"".join(bytes.fromhex(row[1]) for row in rows if row)
    assert all(rows)
    assert (golden_kafka.root() / match[3]).read_bytes()[start:end] == data
    return data, [row[3] for row in rows if row]


def structs(*parts: Struct) -> Callable[[bytes], Iterator[Any]]:
    def read(data: bytes) -> Iterator[Any]:
        at = 0
        for part in parts:
            yield from part.unpack_from(data, at)
            at += part.size

    return read


def batch(data: bytes) -> Iterator[Any]:
    yield from record_batch.HEADER.unpack_from(data)
    header = versions.read_header(data, 0, 0, len(data))
    assert header is not None
    versions.check(header, data)
    assert header.record_count == len(versions.decode_records(header, data))


def wrapper(data: bytes) -> Iterator[Any]:
    yield from message_set.HEADER_V1.unpack_from(data)
    header = versions.read_header(data, 0, 0, len(data))
    assert header is not None
    assert header.compression.name == "SNAPPY"
    versions.check(header, data)
    assert versions.decode_records(header, data)


@pytest.mark.parametrize(
    ("page", "read"),
    [
        ("record_batch", batch),
        ("message_set", wrapper),
        ("offset_index", structs(*[offset_index.ENTRY] * 3)),
        ("time_index", structs(*[time_index.ENTRY] * 2)),
        ("transaction_index", structs(transaction_index.ENTRY)),
        (
            "producer_snapshot",
            structs(producer_snapshot.HEADER, producer_snapshot.COUNT, producer_snapshot.ENTRY),
        ),
    ],
)
def test_examples(page: str, read: Callable[[bytes], Iterator[Any]]) -> None:
    data, values = example(page)
    found = [str(value) for value in read(data)]
    assert values[: len(found)] == found


def test_the_records_of_the_batch_example() -> None:
    data, values = example("record_batch")
    header = versions.read_header(data, 0, 0, len(data))
    assert header is not None
    for record in versions.decode_records(header, data):
        for text in (record.key, record.value, *dict(record.headers)):
            if text:
                assert repr(text if isinstance(text, str) else text.decode()) in values


def test_the_control_record_example() -> None:
    data, values = example("control_record")
    key, value = data[: control_record.KEY.size], data[control_record.KEY.size + 1 :]
    found = (*control_record.KEY.unpack(key), len(value), *control_record.MARKER.unpack(value))
    assert values == [str(number) for number in found]


def test_the_compression_example() -> None:
    data, values = example("compression")
    magic, version, lowest = snappy_stream.HEADER.unpack_from(data)
    assert magic == snappy_stream.MAGIC
    (length,) = snappy_stream.BLOCK_LENGTH.unpack_from(data, snappy_stream.HEADER.size)
    assert values[1:] == [str(version), str(lowest), str(length)]


@pytest.mark.parametrize("page", ["checkpoint_file", "partition_metadata"])
def test_the_text_examples(page: str) -> None:
    text = (PAGES / f"{page}.md").read_text()
    match = re.search(r"`(logs/[^`]+)`[^\n]*\n\n```text\n(.*?)```", text, re.DOTALL)
    assert match is not None
    data = (golden_kafka.root() / match[1]).read_bytes()
    assert data.decode().rstrip("\n") == match[2].rstrip("\n")
    if page == "checkpoint_file":
        assert len(checkpoint_file.decode_leader_epochs(data)) == 2
    else:
        assert partition_metadata.decode(data).version == 0


def test_code_and_pages_name_each_other() -> None:
    for page in PAGES.glob("*.md"):
        for name in re.findall(r"`(mqlake/[a-z/0-9_]+\.py)`", page.read_text()):
            assert (MODULES.parents[2] / name).exists(), (page.name, name)
    for module in MODULES.glob("*.py"):
        for name in re.findall(r"docs/(formats/kafka/[a-z_]+\.md)", module.read_text()):
            assert (PAGES.parents[1] / name).exists(), (module.name, name)


def test_fields_add_up() -> None:
    assert record_batch.HEADER_SIZE == 61
    assert message_set.HEADER_V1.size == 26
    assert (
        offset_index.ENTRY_SIZE,
        time_index.ENTRY_SIZE,
        transaction_index.ENTRY_SIZE,
        producer_snapshot.ENTRY.size,
    ) == (8, 12, 34, 46)
