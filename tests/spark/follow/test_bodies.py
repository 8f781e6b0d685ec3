"""Fields of bodies as columns of a table."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from mqlake.errors import FormatError, JobError
from mqlake.jobs.local import LocalEngine
from mqlake.lake.body_format import BodyFormat
from mqlake.lake.follow.accounting import check
from mqlake.lake.options import Format
from mqlake.spark.classic import ClassicSession
from mqlake.spark.follow.body_columns import parse_format
from mqlake.spark.follow.job import follow
from mqlake.spark.follow.replaying import replay
from mqlake.store import BlockingMessageStore, Message
from tests.lake.tables.tables import read
from tests.lake.union.kept_lake import union_rows
from tests.spark.follow.test_follow import options

spark = pytest.mark.spark

SCHEMA = "json:id bigint, size int, at timestamp, lines array<struct<sku string, count int>>"


def put(path: Path, *bodies: bytes, topic: str = "Orders") -> None:
    with BlockingMessageStore.open(path) as live:
        for body in bodies:
            live.put(Message(topic, body))


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("xml", {}, "--decode xml: unknown format; use json"),
        ("json", {}, "give the columns"),
        ("avro:x.avsc", {"mesage": "m"}, "the nearest is message"),
    ],
)
def test_wrong_formats(text: str, given: dict[str, str], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_format(text, given)


def test_a_schema_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "columns").write_text("id bigint")
    in_file = parse_format(f"json:{tmp_path / 'columns'}", {})
    assert in_file == BodyFormat("json", tmp_path / "columns")
    assert parse_format("json:id bigint", {}) == BodyFormat("json", "id bigint")
    assert parse_format(None, {}) is None


@spark
@pytest.mark.parametrize(
    "format_",
    [Format.DELTA, Format.ICEBERG, pytest.param(Format.PARQUET, marks=pytest.mark.nightly)],
)
def test_columns_of_bodies(session: ClassicSession, tmp_path: Path, format_: Format) -> None:
    path, out = tmp_path / "store", tmp_path / "table"
    put(
        path,
        b'{"id": 1, "size": 7, "at": "2026-01-02T03:04:05Z", "lines": [{"sku": "a", "count": 2}]}',
        b'{"id": "x"}',
        b"no JSON",
        b'{"size": 8}',
    )
    given = options(path, format_, out, columns=("topic", "queueOffset", "storeTimestamp"))
    given = msgspec.structs.replace(given, body=parse_format(SCHEMA, {}))
    assert follow(session, given).messages == 4
    rows = sorted(read(format_, out).to_pylist(), key=lambda row: row["queueOffset"])
    assert [row["id"] for row in rows] == [1, None, None, None]
    assert [row["body_size"] for row in rows] == [7, None, None, 8]
    assert [row["_corrupt"] for row in rows] == [None, b'{"id": "x"}', b"no JSON", None]
    assert rows[0]["lines"] == [{"sku": "a", "count": 2}]
    assert f"{rows[0]['at']:%Y-%m-%d %H:%M:%S}" == "2026-01-02 03:04:05"
    assert check(given, LocalEngine()).ok

    more = msgspec.structs.replace(given, body=parse_format(f"{SCHEMA}, note string", {}))
    put(path, b'{"id": 2, "note": "new"}')
    assert follow(session, more).messages == 1
    rows = sorted(read(format_, out).to_pylist(), key=lambda row: row["queueOffset"])
    assert [row.get("note") for row in rows] == [None] * 4 + ["new"]
    as_one = union_rows({"table": str(out), "columns": "queueOffset"})
    assert sorted(row["queueOffset"] for row in as_one) == list(range(5))


@spark
def test_refused_bodies_are_replayed(session: ClassicSession, tmp_path: Path) -> None:
    path, out = tmp_path / "store", tmp_path / "table"
    put(path, b'{"id": 1}')
    given = options(path, Format.DELTA, out, columns=("topic", "queueOffset", "storeTimestamp"))
    first = msgspec.structs.replace(given, body=parse_format("json:id bigint", {}))
    follow(session, first)
    put(path, b'{"id": 2}')
    other = msgspec.structs.replace(given, body=parse_format("json:id string", {}))
    assert follow(session, other).dead_letters == 1
    with pytest.raises(JobError, match="replay needs a session"):
        replay(first)
    assert replay(first, session).messages == 1
    assert sorted(read(Format.DELTA, out)["id"].to_pylist()) == [1, 2]
    assert check(first, LocalEngine()).ok


@spark
def test_fields_of_one_name(session: ClassicSession, tmp_path: Path) -> None:
    put(tmp_path / "store", b"{}")
    given = options(tmp_path / "store", Format.DELTA, tmp_path / "table")
    body = parse_format("json:size int, body_size int", {})
    with pytest.raises(FormatError, match="two columns would be called body_size"):
        follow(session, msgspec.structs.replace(given, body=body))
