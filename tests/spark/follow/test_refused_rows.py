"""Rows that a table refuses become dead letters, and `--check` counts both, inside of a Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from mqlake.lake.follow.accounting import check
from mqlake.lake.options import FollowOptions, Format
from mqlake.lake.tables.evolution import SchemaConflictError
from mqlake.spark.classic import ClassicSession
from mqlake.spark.follow.job import follow
from mqlake.spark.follow.replaying import replay
from mqlake.store import BlockingMessageStore, Message
from tests.lake.tables.tables import iceberg, read
from tests.lake.tables.test_demands import Action, mapped, rewritten

pytestmark = [pytest.mark.spark]

SMALL = {"mappedFileSizeCommitLog": 1 << 16}


def constrained(state: Action) -> None:
    """Add constraints that delta-rs can read, but not add."""
    state["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 3}
    state["metaData"]["configuration"] |= {
        "delta.constraints.short": "length(body) < 3",
        "delta.constraints.tagged": "tags <> 'x'",
    }


def put(path: Path, *bodies: bytes, topic: str = "A") -> None:
    with BlockingMessageStore.open(path, SMALL) as live:
        for body in bodies:
            live.put(Message(topic, body, tags=body.decode() if body != b"none" else ""))


def options(path: Path, format_: Format, out: Path, **source: str) -> FollowOptions:
    return FollowOptions(
        store=path,
        format=format_,
        out=out,
        checkpoint=out / "_mqlake" / "checkpoint",
        source=source,
        once=True,
    )


def bodies(format_: Format, path: Path, column: str = "body") -> list[bytes]:
    return sorted(read(format_, path)[column].to_pylist())


def test_rows_that_violate_a_constraint_become_dead_letters(
    session: ClassicSession, tmp_path: Path
) -> None:
    path, out = tmp_path / "store", tmp_path / "table"
    given = options(path, Format.DELTA, out)
    put(path, b"1", b"2")
    follow(session, given)
    rewritten(out, constrained)
    put(path, b"3", b"four", b"x", b"none")  # the comparison with a null tag is null
    report = follow(session, given)
    assert (report.messages, report.dead_letters) == (1, 3)
    assert bodies(Format.DELTA, out) == [b"1", b"2", b"3"]
    letters = read(Format.DELTA, tmp_path / "table_dead_letters")
    assert set(letters["kind"].to_pylist()) == {"refused"}
    assert "CHECK constraint short (length(body) < 3)" in letters["reason"][0].as_py()
    found = check(given, session.engine)
    assert found.ok
    assert (found.rows.count, found.refused.count) == (3, 3)

    put(path, b"five5", b"6")
    strict = options(path, Format.DELTA, out, failOnDataLoss="true")
    with pytest.raises(SchemaConflictError, match="the row violates one of"):
        follow(session, strict)
    DeltaTable(out).alter.drop_constraint("short")
    DeltaTable(out).alter.drop_constraint("tagged")
    follow(session, given)
    assert replay(given).messages == 3
    everything = [b"1", b"2", b"3", b"four", b"x", b"none", b"five5", b"6"]
    assert bodies(Format.DELTA, out) == sorted(everything)
    assert check(given, session.engine).ok


def test_a_table_with_mapped_columns_gets_nothing(session: ClassicSession, tmp_path: Path) -> None:
    path, out = tmp_path / "store", tmp_path / "table"
    given = options(path, Format.DELTA, out)
    put(path, b"1")
    follow(session, given)
    rewritten(out, mapped)
    before = sorted(path.name for path in (out / "_delta_log").iterdir())
    put(path, b"2", b"3")
    for messages in (2, 0):
        report = follow(session, given)
        assert (report.messages, report.dead_letters) == (0, messages)
    assert sorted(path.name for path in (out / "_delta_log").iterdir()) == before
    letters = read(Format.DELTA, tmp_path / "table_dead_letters")
    assert "are mapped (delta.columnMapping.mode=name)" in letters["reason"][0].as_py()


def test_a_renamed_column_keeps_its_messages(session: ClassicSession, tmp_path: Path) -> None:
    path, out = tmp_path / "store", tmp_path / "table"
    given = options(path, Format.ICEBERG, out)
    put(path, b"1", b"2")
    follow(session, given)
    with iceberg(out).update_schema() as update:
        update.rename_column("body", "payload")
        update.rename_column("topic", "subject")
        update.delete_column("tags")
    put(path, b"3")
    follow(session, given)
    assert bodies(Format.ICEBERG, out, "payload") == [b"1", b"2", b"3"]
    names = read(Format.ICEBERG, out).column_names
    assert not {"body", "tags", "topic"} & set(names)
    found = check(given, session.engine)
    assert found.ok
    assert {"body", "topic"} <= set(found.columns)

    union = session.spark.read.format("rocketmq").option("table", str(out)).load(str(path))
    assert sorted(row.body for row in union.select("body").collect()) == [b"1", b"2", b"3"]
    assert union.where("topic = 'A'").count() == 3
