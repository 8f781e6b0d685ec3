"""Rows and dead letters are the log's records, by count and checksum, whatever is in the log."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field
from pyiceberg.types import LongType

from mqlake.errors import DiskError
from mqlake.jobs.local import LocalEngine
from mqlake.lake.follow.dead_letters import options_of
from mqlake.lake.tables.opening import open_table
from mqlake.spark.classic import ClassicSession
from mqlake.spark.follow import CheckReport, FollowOptions, Format, check, follow, replay
from mqlake.spark.follow.micro_batch import MicroBatches
from mqlake.store import BlockingMessageStore, Message, StoreReader
from tests.golden import store
from tests.lake.tables.tables import iceberg

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),  # several queries each
]

SMALL = {"mappedFileSizeCommitLog": 1 << 16}
NIGHTLY = pytest.mark.nightly


def options(path: Path, format_: Format, out: Path, **others: Any) -> FollowOptions:
    given = {"once": True, "source": {"maxOffsetsPerTrigger": "150"}, **others}
    return FollowOptions(
        store=path, format=format_, out=out, checkpoint=out / "_mqlake" / "checkpoint", **given
    )


def put(path: Path, first: int, last: int) -> None:
    with BlockingMessageStore.open(path, SMALL) as live:
        for number in range(first, last):
            live.put(Message("AB"[number % 2], b"%d" % number * 50, tags="t"))


def checked(given: FollowOptions) -> CheckReport:
    report = check(given, LocalEngine(2))
    assert report.ok, report
    return report


def letters(given: FollowOptions) -> list[dict[str, Any]]:
    table = open_table(options_of(given))
    columns = ("topic", "kind", "reason", "physicalOffset", "length", "raw")
    return [row for batch in table.scan(columns) for row in batch.to_pylist()]


def flip(path: Path, at: int) -> None:
    """Change a byte of the log of segments of 64 KiB."""
    segment = path / "commitlog" / f"{at >> 16 << 16:020d}"
    data = bytearray(segment.read_bytes())
    data[at & 0xFFFF] ^= 1
    segment.write_bytes(data)


@pytest.mark.parametrize(
    "format_",
    [
        pytest.param(Format.DELTA, marks=NIGHTLY),  # damage is noted below, too
        pytest.param(Format.ICEBERG, marks=NIGHTLY),  # and in tests/peer/test_dead_letters_on_s3.py
        Format.PARQUET,
    ],
)
def test_damage_goes_to_the_dead_letters_and_comes_back(
    session: ClassicSession, tmp_path: Path, format_: Format
) -> None:
    path = tmp_path / "store"
    put(path, 0, 300)
    given = options(path, format_, tmp_path / "table")
    with StoreReader.open(path) as reader:
        hit = [reader.get("A", 0, offset, 1).records[0] for offset in (20, 130, 131)]
    places = [(one.physical_offset, one.size) for one in hit]
    for offset, _ in places:
        flip(path, offset + 90)  # in the body

    report = follow(session, given)
    assert (report.messages, report.dead_letters) == (297, 3)
    checks = checked(given)
    assert (checks.records.count, checks.rows.count) == (297, 297)
    assert checks.damaged_bytes == checks.damaged_bytes_noted == sum(size for _, size in places)
    found = letters(given)
    assert sorted((one["physicalOffset"], one["length"]) for one in found) == places
    assert {one["kind"] for one in found} == {"damage"}
    assert all("checksum" in one["reason"] and one["raw"] for one in found)
    assert replay(given).left == 3  # still no records

    put(path, 300, 400)
    assert follow(session, given).messages == 100
    assert checked(given).rows.count == 397


@pytest.mark.parametrize(
    "format_",
    [pytest.param(Format.DELTA, marks=NIGHTLY), Format.ICEBERG],  # the next test refuses in Delta
)
def test_rows_that_the_table_refuses(
    session: ClassicSession, tmp_path: Path, format_: Format
) -> None:
    path = tmp_path / "store"
    columns = ("topic", "body", "storeTimestamp", "physicalOffset")
    given = options(path, format_, tmp_path / "table", columns=columns)
    put(path, 0, 100)
    follow(session, given)
    if format_ is Format.DELTA:
        DeltaTable(given.out).alter.add_columns([Field("tags", "long")])  # pyright: ignore[reportArgumentType]
    else:
        with iceberg(given.out).update_schema() as update:
            update.add_column("tags", LongType())
    put(path, 100, 300)
    wider = options(path, format_, given.out, columns=(*columns, "tags"))
    report = follow(session, wider)
    assert (report.messages, report.dead_letters) == (0, 200)
    checks = checked(wider)
    assert (checks.rows.count, checks.refused.count, checks.records.count) == (100, 200, 300)
    assert {one["kind"] for one in letters(wider)} == {"refused"}
    assert all("column tags is" in one["reason"] for one in letters(wider))

    again = replay(given)
    assert (again.messages, again.left) == (200, 0)
    assert letters(given) == []
    assert (checked(given).rows.count, checked(given).refused.count) == (300, 0)
    assert replay(given).messages == 0
    put(path, 300, 310)
    assert follow(session, given).messages == 10
    assert checked(given).rows.count == 310


def test_rows_refused_only_when_a_batch_runs_again(
    session: ClassicSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its damage is noted, `follow` is killed, and is started again with other columns."""
    path = tmp_path / "store"
    columns = ("topic", "body", "storeTimestamp", "physicalOffset")
    given = options(path, Format.DELTA, tmp_path / "table", columns=columns)
    put(path, 0, 100)
    follow(session, given)
    put(path, 100, 300)
    with StoreReader.open(path) as reader:
        hit = reader.get("A", 0, 60, 1).records[0]
    flip(path, hit.physical_offset + 90)  # in the body
    with monkeypatch.context() as patched:
        patched.setattr(MicroBatches, "_commit", killed)
        with pytest.raises(DiskError, match="killed"):
            follow(session, given)
    assert [one["kind"] for one in letters(given)] == ["damage"]

    DeltaTable(given.out).alter.add_columns([Field("tags", "long")])  # pyright: ignore[reportArgumentType]
    wider = options(path, Format.DELTA, given.out, columns=(*columns, "tags"))
    report = follow(session, wider)
    assert (report.messages, report.dead_letters) == (0, 199)
    checks = checked(wider)
    assert (checks.rows.count, checks.refused.count, checks.records.count) == (100, 199, 299)
    assert Counter(one["kind"] for one in letters(wider)) == {"damage": 1, "refused": 199}


def killed(*_: Any) -> None:
    raise DiskError("killed")


def test_what_a_log_lost_is_noted(session: ClassicSession, tmp_path: Path) -> None:
    path = tmp_path / "store"
    put(path, 0, 600)
    given = options(path, Format.DELTA, tmp_path / "table")
    follow(session, given)
    put(path, 600, 1400)
    segments = sorted((path / "commitlog").iterdir())
    assert len(segments) > 5
    for segment in segments[:4]:
        segment.unlink()
    follow(session, given)
    (gone,) = letters(given)
    assert (gone["kind"], gone["raw"]) == ("deleted", None)
    assert gone["physicalOffset"] + gone["length"] == int(segments[4].name)
    report = checked(given)
    assert report.older == 600


def test_missing_and_doubled_rows_are_found(session: ClassicSession, tmp_path: Path) -> None:
    given = options(store("rmq5-clean").path, Format.DELTA, tmp_path / "table", source={})
    follow(session, given)
    whole = checked(given).rows
    table = DeltaTable(given.out)
    rows = pa.table(table.to_pyarrow_table())
    table.delete(f"physicalOffset = {rows['physicalOffset'][5]}")
    report = check(given, LocalEngine(2))
    assert not report.ok
    assert report.rows.count == whole.count - 1
