"""Rows go to a file for each topic and day, in order, and few are kept in memory."""

from __future__ import annotations

import errno
import gc
import os
import random
import resource
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from mqlake.lake.files import partition_writer
from mqlake.lake.files.data_file import FileWriter
from mqlake.lake.files.lake_files import LakeFiles
from mqlake.lake.files.partition_writer import FileShape, PartitionWriter, write_all
from mqlake.lake.files.topic_shapes import TopicShapes
from mqlake.lake.tables.evolution import table_schema
from tests.lake.tables.tables import COLUMNS, batch, row

SCHEMA = table_schema([name for name in COLUMNS if name != "topic"])
OTHERS = ((0, 0), (0, 1 << 20), (3000, 2000), (3000, 1 << 20), (1 << 20, 0), (1 << 20, 2000))
"""Values of GATHERED and LEAST; `make test` has each value of either once."""


def shape(path: Path, target: int = 1 << 30) -> FileShape:
    return FileShape(str(path), SCHEMA, False, "mqlake-test", target)


@pytest.mark.parametrize(
    ("gathered", "least"),
    [
        (0, 2000),
        (3000, 0),
        (1 << 20, 1 << 20),
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in OTHERS),
    ],
)
def test_every_row_once_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gathered: int, least: int
) -> None:
    monkeypatch.setattr(partition_writer, "GATHERED", gathered)
    monkeypatch.setattr(partition_writer, "LEAST", least)
    chance = random.Random(0)
    names = ["Often"] * 30 + [f"T{number}" for number in range(30)]
    rows = [
        row(number, chance.choice(names), chance.choice((-3, 0, 20_000, 20_001)))
        for number in range(700)
    ]
    writer = PartitionWriter(shape(tmp_path))
    for start in range(0, len(rows), 150):
        writer.write(batch(rows[start : start + 150]))
    writer.write(batch([]))

    found: dict[tuple[str, str], list[int]] = {}
    for file in writer.finish():
        offsets = parquet.ParquetFile(file.path).read(["queueOffset"]).column(0).to_pylist()
        assert len(offsets) == file.rows
        found.setdefault((file.topic, file.day), []).extend(offsets)
    expected: dict[tuple[str, str], list[int]] = {}
    days = {-3: "1969-12-29", 0: "1970-01-01", 20_000: "2024-10-04", 20_001: "2024-10-05"}
    for one in rows:
        day = days[one["storeTimestamp"] // 86_400_000_000]
        expected.setdefault((one["topic"], day), []).append(one["queueOffset"])
    assert found == expected


def test_rare_topics_do_not_keep_the_rows_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_writer, "GATHERED", 1 << 20)
    monkeypatch.setattr(partition_writer, "LEAST", 1 << 16)
    writer = PartitionWriter(shape(tmp_path))
    before = pa.total_allocated_bytes()
    most = 0
    for number in range(60):
        rows = [row(0, "Often", body=bytes(1 << 10)) for _ in range(250)]
        writer.write(batch([*rows, row(0, f"Rare{number}")]))
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 4 << 20
    assert sum(file.rows for file in writer.finish()) == 60 * 251


def resident() -> int:
    """Return the bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_many_topics_take_little_more_than_their_rows(tmp_path: Path) -> None:
    topics, batches = 5000, 16
    rows = [batch([row(at, f"T{at}") for at in range(topics)]) for _ in range(batches)]
    writer = PartitionWriter(shape(tmp_path))
    writer.write(rows[0])
    before = resident()
    for one in rows:
        writer.write(one)
    assert resident() - before < 500 * topics * batches


def test_the_rows_of_topics_with_equal_schemas_are_kept_once(tmp_path: Path) -> None:
    shapes = {
        f"T{number}": replace(shape(tmp_path / str(number)), schema=pa.schema(list(SCHEMA)))
        for number in range(100)
    }
    rows = batch([row(0, f"T{number % 100}", body=bytes(100)) for number in range(1000)])
    writer = PartitionWriter(TopicShapes(shape(tmp_path), shapes))
    before = pa.total_allocated_bytes()
    writer.write(rows)
    assert pa.total_allocated_bytes() - before < 4 * rows.nbytes
    assert {file.rows for file in writer.finish()} == {10}


def test_a_file_ends_at_twice_the_target_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_writer, "GATHERED", 0)
    chance = random.Random(0)
    writer = PartitionWriter(shape(tmp_path, 100_000))
    for _ in range(60):
        writer.write(batch([row(0, body=chance.randbytes(10_000))]))
    sizes = [file.size for file in writer.finish()]
    assert len(sizes) == 3
    assert all(size >= 200_000 for size in sizes[:2])


def test_leaves_of_nested_columns_have_dictionaries(tmp_path: Path) -> None:
    """Decoded bodies may have any type."""
    kind = pa.struct([("tags", pa.list_(pa.string())), ("by", pa.map_(pa.string(), pa.int32()))])
    schema = pa.schema([("order", kind), ("body", pa.binary())])
    order = {"tags": ["a", "b"], "by": [("k", 1)]}
    rows = pa.RecordBatch.from_pylist([{"order": order, "body": b"x"}] * 100, schema=schema)
    writer = FileWriter(LakeFiles(), str(tmp_path), "mqlake-test", schema)
    writer.write([rows])
    file = writer.finish("T", "2026-01-01")

    paths = {one.path_in_schema for one in columns_of(file.path)}
    assert len(paths) == 4
    assert with_dictionary(file.path) == paths - {"body"}


def test_values_that_hardly_repeat_have_no_dictionary(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.string())
    schema = pa.schema([("keys", pa.list_(pa.string())), ("properties", kind)])
    rows = pa.RecordBatch.from_pylist([{"keys": ["k"], "properties": [("KEYS", "k")]}], schema)
    writer = FileWriter(LakeFiles(), str(tmp_path), "mqlake-test", schema)
    writer.write([rows])
    assert with_dictionary(writer.finish("T", "2026-01-01").path) == {"properties.key_value.key"}


def columns_of(path: str) -> list[Any]:
    group = parquet.ParquetFile(path).metadata.row_group(0)
    return [group.column(number) for number in range(group.num_columns)]


def with_dictionary(path: str) -> set[str]:
    return {one.path_in_schema for one in columns_of(path) if one.has_dictionary_page}


RANDOM = random.Random(0).randbytes(200_000)


@pytest.mark.parametrize(
    ("bodies", "codec"),
    [
        ([RANDOM[at : at + 1000] for at in range(0, len(RANDOM), 1000)], "SNAPPY"),
        ([RANDOM], "SNAPPY"),
        ([b'{"order": %d, "region": "north"}' % number for number in range(200)], "ZSTD"),
        ([b"", None, b"", b"x" * 100], "ZSTD"),
        ([None, b""], "ZSTD"),
    ],
    ids=["many", "one that is long", "JSON", "some empty", "all empty"],
)
def test_only_bodies_that_do_not_shrink_are_spared_zstandard(
    tmp_path: Path, bodies: list[bytes | None], codec: str
) -> None:
    schema = pa.schema([("tags", pa.string()), ("body", pa.binary())])
    rows = [{"tags": "T", "body": body} for body in bodies]
    writer = FileWriter(LakeFiles(), str(tmp_path), "mqlake-test", schema)
    writer.write([pa.RecordBatch.from_pylist(rows, schema)])
    file = writer.finish("T", "2026-01-01")
    tags, body = columns_of(file.path)
    assert (tags.compression, body.compression) == ("ZSTD", codec)
    assert parquet.read_table(file.path).to_pylist() == rows


def test_a_discarded_file_says_nothing_when_its_writer_is_destroyed(tmp_path: Path) -> None:
    raised: list[object] = []
    hook, sys.unraisablehook = sys.unraisablehook, raised.append
    try:
        writer = FileWriter(LakeFiles(), str(tmp_path), "mqlake-test", SCHEMA)
        writer.write([batch([row(0)]).select(SCHEMA.names)])
        writer.discard()
        del writer
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert raised == []
    assert list(tmp_path.iterdir()) == []


def test_removes_a_file_that_cannot_be_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, "the disk failed")

    raised: list[object] = []
    hook, sys.unraisablehook = sys.unraisablehook, raised.append
    try:
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="the disk failed"):
            write_all(shape(tmp_path), [batch([row(0, "A"), row(1, "B")])])
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert raised == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_record_in_two_batches_counts_once(tmp_path: Path) -> None:
    names = ["topic", "storeTimestamp", "physicalOffset", "size"]
    found = [(0, 100), (100, 300), (100, 300), (100, 300), (400, 7)]
    rows = [("T", datetime(2026, 1, 1, tzinfo=UTC), *each) for each in found]
    whole = pa.RecordBatch.from_pylist(
        [dict(zip(names, row, strict=True)) for row in rows], schema=table_schema(names)
    )
    schema = table_schema([name for name in names if name != "topic"])
    for cut in range(len(rows) + 1):
        place = tmp_path / str(cut)
        made = FileShape(str(place), schema, False, "mqlake-test", 1 << 30)
        parts = [whole.slice(0, cut), whole.slice(cut)]
        assert partition_writer.write_counted(made, parts).log_bytes == 407
